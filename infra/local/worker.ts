// Runs fauxqs in a thread of its own, where the clock can be bent and the server kept on the loopback address.
import { Server } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { bentNow } from './clock.ts'

const { offset, dir }: { offset: SharedArrayBuffer; dir: string | undefined } = workerData

Date.now = () => bentNow(offset)

// fauxqs listens on every address whatever it is told.
const listen = Server.prototype.listen
Server.prototype.listen = function (this: Server, options: unknown, ...rest: unknown[]) {
  const bound = typeof options === 'object' && options !== null ? { ...options, host: '127.0.0.1' } : options
  return Reflect.apply(listen, this, [bound, ...rest])
}

const { startFauxqs } = await import('fauxqs')
const server = await startFauxqs({ port: 0, logger: false, ...(dir !== undefined && { dataDir: dir }) })
parentPort?.once('message', async () => {
  await server.stop()
  process.exit(0)
})
parentPort?.postMessage(server.port)
