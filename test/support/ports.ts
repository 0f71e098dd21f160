// Finds ports that stay free while nobody listens on them, for a relay that is started again where it was.
import { createServer } from 'node:net'

/** Below the range that systems take ports for outgoing connections from: none of those may sit there meanwhile. */
const [first, last] = [12_000, 30_000]

/** Two ports of 127.0.0.1, as `startLocal` takes them. */
export const freePorts = async (): Promise<{ hook: number; api: number }> => ({
  hook: await freePort(),
  api: await freePort(),
})

async function freePort(): Promise<number> {
  for (;;) {
    const port = first + Math.floor(Math.random() * (last - first))
    if (await isFree(port)) return port
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
