// One function in a process of its own: is handed events by its parent, as Lambda would hand them over, and tells what they cost. It runs one door and reaches table and queues over the wire.

import { createRelay, type Relay } from '../../shared/relay.ts'

/** What a process has used since it started. */
export type Used = {
  /** CPU time in ms, memory in bytes. `heap` is what is reachable, where the process may collect its garbage. */
  cpuMs: number
  resident: number
  heap: number
  logLines: number
  logBytes: number
}

/** `event` of the door's own shape, and the time by the ground's clock. Without an event the process tells what it used. */
export type Asked = { id: number; now: number; event?: never }
export type Told = { id: number; answer?: unknown; fault?: string }

type Door = (relay: Relay) => (event: never) => Promise<unknown>

/** Only one is loaded: another's modules would be counted as its memory. */
const doors: Record<string, () => Promise<{ door: Door }>> = {
  receive: () => import('../../functions/receive.ts'),
  api: () => import('../../functions/api/app.ts'),
  look: () => import('../../functions/look.ts'),
  deliver: () => import('../../functions/deliver.ts'),
  tick: () => import('../../functions/tick.ts'),
}

const [name = ''] = process.argv.slice(2)
const log = { lines: 0, bytes: 0 }
let time = 0
const relay = createRelay(name, process.env, {
  now: () => time,
  write: line => {
    log.lines += 1
    log.bytes += Buffer.byteLength(line) + 1
  },
})
const opening = doors[name]?.().then(({ door }) => door(relay))

function used(): Used {
  globalThis.gc?.()
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  return {
    cpuMs: (user + system) / 1000,
    resident: rss,
    heap: heapUsed,
    logLines: log.lines,
    logBytes: log.bytes,
  }
}

async function answer({ id, now, event }: Asked): Promise<Told> {
  if (event === undefined) return { id, answer: used() }
  time = now
  try {
    return { id, answer: await (await opening)?.(event) }
  } catch (error) {
    return { id, fault: String(error) }
  }
}

process.on('message', async (asked: Asked) => process.send?.(await answer(asked)))
// The parent is gone: nobody waits for an answer.
process.on('disconnect', () => process.exit())
