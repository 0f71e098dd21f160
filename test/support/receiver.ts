// A receiver that answers as it is told, well or badly, and keeps what it was sent. Binds the loopback only.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import * as http from 'node:http'
import * as https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'

/** How to answer; by default 200 with an empty body. */
export type Answer = {
  status?: number
  headers?: http.OutgoingHttpHeaders
  /** A whole body, or pieces that are made as fast as they are read; an endless one is fine. */
  body?: string | Uint8Array | Iterable<Uint8Array>
  /** Milliseconds before the answer starts. */
  delayMs?: number
  /**
   * `hang`: no answer at all. `trickle`: head, then the body (or a dot) again and again, for ever, a little at a
   * time. `reset`: connection reset before the answer. `cut`: connection closed within the body.
   */
  fault?: 'hang' | 'trickle' | 'reset' | 'cut'
  /** Bytes to put on the wire instead of an HTTP answer; then the connection is closed. */
  raw?: string
}

type Received = { method: string; url: string; headers: http.IncomingHttpHeaders; body: string }

export type Receiver = {
  /** `http://127.0.0.1:port`, or https. */
  origin: string
  port: number
  /** Whole requests, in order. */
  requests: Received[]
  /** Connections accepted so far, requests or not. */
  connections: () => number
  /** Answers every request from now on. */
  answer: (next: Answer | ((request: Received) => Answer)) => void
  /** Resolves once that many requests have arrived. */
  arrived: (count: number) => Promise<void>
  /** Resolves once no connection is open. */
  idle: () => Promise<void>
  stop: () => Promise<void>
}

/** A key and two certificates made for tests: `hooks.example` and 127.0.0.1 until 2120, and one that ran out in 2020. */
export const certificates = {
  key: read('key.pem'),
  good: read('cert.pem'),
  expired: read('expired.pem'),
}

function read(name: string): string {
  return readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url), 'utf8')
}

/** Starts a receiver on a free port; `tls` makes it speak https. */
export async function startReceiver(tls?: https.ServerOptions): Promise<Receiver> {
  let answer: Answer | ((request: Received) => Answer) = {}
  let accepted = 0
  const open = new Set<Socket>()
  const requests: Received[] = []
  const handle = async (asked: http.IncomingMessage, reply: http.ServerResponse): Promise<void> => {
    const body = (await buffer(asked)).toString()
    const request = { method: asked.method ?? '', url: asked.url ?? '', headers: asked.headers, body }
    requests.push(request)
    server.emit('arrived')
    const how = typeof answer === 'function' ? answer(request) : answer
    if (how.delayMs === undefined) give(how, reply)
    else setTimeout(() => give(how, reply), how.delayMs).unref()
  }
  const listener: http.RequestListener = (asked, reply) => void handle(asked, reply).catch(() => undefined)
  const server = tls ? https.createServer(tls, listener) : http.createServer(listener)
  server.on('connection', (socket: Socket) => {
    accepted += 1
    open.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      open.delete(socket)
      if (open.size === 0) server.emit('idle')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    origin: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    requests,
    connections: () => accepted,
    answer: next => {
      answer = next
    },
    arrived: async count => {
      while (requests.length < count) await once(server, 'arrived')
    },
    idle: async () => {
      if (open.size > 0) await once(server, 'idle')
    },
    stop: async () => {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function give(
  { status = 200, headers = {}, body = '', fault, raw }: Answer,
  reply: http.ServerResponse,
): void {
  const socket = reply.socket
  if (fault === 'hang' || socket === null) return
  if (fault === 'reset') return void socket.resetAndDestroy()
  if (raw !== undefined) return void socket.end(raw)
  reply.writeHead(status, headers)
  if (fault === 'trickle') {
    const drop = typeof body === 'string' || body instanceof Uint8Array ? body : ''
    const drip = setInterval(() => reply.write(drop.length > 0 ? drop : '.'), 5)
    reply.on('close', () => clearInterval(drip))
  } else if (fault === 'cut') reply.write('half', () => socket.destroy())
  else if (typeof body === 'string' || body instanceof Uint8Array) reply.end(body)
  else Readable.from(body).pipe(reply)
}
