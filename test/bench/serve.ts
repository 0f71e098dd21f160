// Serves one door over HTTP on the loopback address, in this process alone, before a stand-in for AWS; tells its port, and its CPU time when asked.
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { openUrl } from '../../infra/local/http.ts'
import { listen } from '../../infra/local/wire.ts'
import { readStatus, worker, writer } from './floor.ts'
import { rival } from './rival.ts'
import type { Scene } from './scene.ts'
import { floorParts, ourDoor } from './variants.ts'

const [name = '', path = ''] = process.argv.slice(2)
const scene: Scene = JSON.parse(readFileSync(path, 'utf8'))
Object.assign(process.env, scene.env)

/** What a server makes of a push: the status, and perhaps the body, of its answer. */
type Answer = { statusCode: number; body?: string }

const serveHttp = (answer: (request: IncomingMessage, body: Buffer) => Promise<Answer>): Promise<number> => {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { statusCode, body = '{"status":"accepted"}' } = await answer(request, Buffer.concat(chunks))
    response.writeHead(statusCode, { 'content-type': 'application/json' }).end(body)
  })
  return listen(server, 0)
}

/** Each opens a port and gives its number. */
const servers: Record<string, () => Promise<number>> = {
  // As little between node:http and the door as it takes.
  ours: () => {
    const { handler } = ourDoor(scene)
    const [like] = scene.pushes.RS256
    if (like === undefined) throw new Error('There are no pushes')
    return serveHttp(({ url = '', headers }, body) => {
      const sent = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
      return handler({ ...like, rawPath: url, headers: sent, body: body.toString('base64') })
    })
  },
  // As `npm start` serves it: a Function URL in full.
  ground: async () => {
    const { handler, now } = ourDoor(scene)
    const limit = { name: 'receive', timeoutSeconds: 5 }
    const { port } = await openUrl({ limit, port: 0, handler, now, onFailure: console.error })
    return port
  },
  // No check at all, only the writes: no server does less.
  bare: () => {
    const { clients, options } = floorParts(scene)
    const write = writer(clients, options)
    return serveHttp(async ({ url = '' }, body) => {
      await write({ key: url, ...readStatus(body.toString()) })
      return { statusCode: 202 }
    })
  },
  express: async () => {
    const { clients, options } = floorParts(scene)
    const { createApp } = await rival('express')
    return listen(createServer(createApp(worker(clients, options))), 0)
  },
}

const port = await servers[name]?.()
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.(user + system)
})
// The parent is gone.
process.on('disconnect', () => process.exit())
process.send?.(port)
