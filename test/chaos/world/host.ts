// A process that runs the doors, as an instance of Lambda does, to be killed at any moment: takes invocations and the clock by message, and answers them.
import { door as api } from '../../../functions/api/app.ts'
import { door as deliver } from '../../../functions/deliver.ts'
import { door as look } from '../../../functions/look.ts'
import { door as receive } from '../../../functions/receive.ts'
import { door as tick } from '../../../functions/tick.ts'
import { createRelay, type Relay } from '../../../shared/relay.ts'
import type { Order, Word } from './hosts.ts'

const [id = '', settings = '{}', haste = '1'] = process.argv.slice(2)
let offset = 0
let fatal: string | undefined

/** Targets that never answer have 15 s. */
const patienceMs = 15_000
/** From half a second on a time-out is one of an AWS call or an agent; what is shorter is a pause before a call is repeated. */
const shortestMs = 500

/**
 * Nothing hangs here but targets that are meant to, and 15 s are long beside a bent clock. All other time-outs only tell
 * how busy this machine is.
 */
const realTimeout = setTimeout
const bendTimeout = (milliseconds: number): number => {
  if (milliseconds >= patienceMs) return milliseconds / Number(haste)
  return milliseconds >= shortestMs ? milliseconds * 8 : milliseconds
}
Object.assign(globalThis, {
  setTimeout: (work: () => void, milliseconds = 0) => realTimeout(work, bendTimeout(milliseconds)),
})

const doors = { receive, api, look, deliver, tick }
type DoorName = keyof typeof doors
type Handler = (event: never) => Promise<unknown>
const handlers = new Map<DoorName, Handler>()

function relayFor(name: DoorName): Relay {
  const env = { ...JSON.parse(settings), AWS_ACCESS_KEY_ID: `${name}.${id}` }
  const write = (line: string): void => {
    if (fatal !== undefined && line.includes(`"step":"${fatal}"`)) process.kill(process.pid, 'SIGKILL')
  }
  return createRelay(name, env, { now: () => Date.now() + offset, write })
}

function handlerOf(name: DoorName): Handler {
  const known = handlers.get(name)
  if (known !== undefined) return known
  const made: Handler = doors[name](relayFor(name))
  handlers.set(name, made)
  return made
}

const say = (word: Word): void => {
  process.send?.(word)
}

process.on('message', (order: Order) => {
  if (order.kind === 'clock') offset = order.offset
  else if (order.kind === 'die') fatal = order.step
  else
    handlerOf(order.door)(order.event as never).then(
      answer => say({ n: order.n, answer }),
      error => say({ n: order.n, error: String(error) }),
    )
})
// Whoever would kill it is gone.
process.once('disconnect', () => process.exit())
say({ ready: true })
