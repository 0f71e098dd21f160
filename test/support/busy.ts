// An A2A 1.0 agent over JSON-RPC that takes its time with GetTask, and counts how many calls it had at once.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

export type BusyAgent = {
  url: string
  /** Tasks are in this state from now on. */
  state: string
  /** Answers with this status, whatever it is asked. */
  refuses: { status: number; retryAfter?: string } | undefined
  /** GetTask calls so far, and the most that were under way at once. */
  calls: number
  most: number
  /** Holds its answers until `release`. */
  hold: () => void
  release: () => void
  stop: () => Promise<void>
}

/** Starts it on a free port of the loopback. Calls that came together are answered together. */
export async function startBusyAgent(): Promise<BusyAgent> {
  const open = new Map<ServerResponse, { id: unknown; taskId: string }>()
  let holds = false
  const end = (response: ServerResponse, id: unknown, body: object): void => {
    const { status = 200, retryAfter } = agent.refuses ?? {}
    if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter)
    response.writeHead(status).end(status === 200 ? JSON.stringify({ jsonrpc: '2.0', id, ...body }) : '')
  }
  const answer = (): void => {
    if (holds) return
    for (const [response, { id, taskId }] of open) {
      const status = { state: `TASK_STATE_${agent.state}` }
      end(response, id, { result: { id: taskId, contextId: 'c', status } })
    }
    open.clear()
  }
  const server = createServer(async (request, response) => {
    const asked = await json(request).catch(() => undefined)
    const { id, method, params } = Object(asked)
    if (method !== 'GetTask') return end(response, id, { error: { code: -32003 } })
    agent.calls += 1
    open.set(response, { id, taskId: params.id })
    agent.most = Math.max(agent.most, open.size)
    if (open.size === 1) setTimeout(answer, 40)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const agent: BusyAgent = {
    url: `http://127.0.0.1:${port}`,
    state: 'WORKING',
    refuses: undefined,
    calls: 0,
    most: 0,
    hold: () => {
      holds = true
    },
    release: () => {
      holds = false
      answer()
    },
    stop: () => {
      server.closeAllConnections()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
  return agent
}
