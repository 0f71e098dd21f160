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

/** Each opens a port and gives its number. */
const servers: Record<string, () => Promise<number>> = {
  ours: async () => {
    const { handler, now } = ourDoor(scene)
    const limit = { name: 'receive', timeoutSeconds: 5 }
    const { port } = await openUrl({ limit, port: 0, handler, now, onFailure: console.error })
    return port
  },
  // No check at all, only the writes: no server does less.
  bare: () => {
    const { clients, options } = floorParts(scene)
    const write = writer(clients, options)
    const server = createServer(async (request, response) => {
      await write({ key: request.url ?? '', ...readStatus(await textOf(request)) })
      response.writeHead(202).end()
    })
    return listen(server, 0)
  },
  express: async () => {
    const { clients, options } = floorParts(scene)
    const { createApp } = await rival('express')
    return listen(createServer(createApp(worker(clients, options))), 0)
  },
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const port = await servers[name]?.()
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.(user + system)
})
process.send?.(port)
