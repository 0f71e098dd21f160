// Webhooks that answer as they are told and keep what arrived: for loads that checking each signature would be too slow for.
import { createServer } from 'node:http'
import { close, listen } from '../../infra/local/wire.ts'

/** `at` by the ground's clock, `ms` by the machine's. */
export type Arrived = { at: number; ms: number; wakeId: string; taskId: string; state: string; rev: number }

export type FastTarget = {
  origin: string
  /** Webhooks that arrived, by path. */
  told: Map<string, Arrived[]>
  /** How a path answers from now on; 200 unless said. `never` keeps whoever calls waiting. */
  answer: (path: string, how: number | 'never') => void
  /** The most calls of a path that were under way at a time. */
  most: (path: string) => number
  stop: () => Promise<void>
}

/** @param now the time by which arrivals are noted, ms */
export async function startTarget(now: () => number): Promise<FastTarget> {
  const told = new Map<string, Arrived[]>()
  const answers = new Map<string, number | 'never'>()
  const under = new Map<string, number>()
  const most = new Map<string, number>()
  const server = createServer(async (asked, reply) => {
    const path = asked.url ?? ''
    const count = (change: number): void => {
      const next = (under.get(path) ?? 0) + change
      under.set(path, next)
      most.set(path, Math.max(most.get(path) ?? 0, next))
    }
    count(1)
    reply.on('close', () => count(-1))
    const { data } = JSON.parse(Buffer.concat(await asked.toArray()).toString())
    const { wakeId, taskId, state, rev } = data
    const before = told.get(path) ?? []
    before.push({ at: now(), ms: performance.now(), wakeId, taskId, state, rev })
    told.set(path, before)
    const how = answers.get(path) ?? 200
    if (how !== 'never') reply.writeHead(how).end()
  })
  const port = await listen(server, 0)
  return {
    origin: `http://127.0.0.1:${port}`,
    told,
    answer: (path, how) => answers.set(path, how),
    most: path => most.get(path) ?? 0,
    stop: () => close(server),
  }
}
