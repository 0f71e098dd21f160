// Lets each call of a door under test go well or wrong as its cell says, ends the door where it is to be killed, and notes what was written.
import { randomUUID } from 'node:crypto'
import type { Call, Fault, Outcome } from '../../../infra/local/wire.ts'
import type { Answer } from '../../support/receiver.ts'
import { type Cell, isKill } from './cells.ts'
import { agentOf, fetchKeys, kindOf, lease, message, nameOf, nthOf, record } from './steps.ts'

/** One cell while it is played. */
export type Play = {
  /** Names its agent, its task and its doors. */
  id: string
  cell: Cell
  /** Requests begun since the weather turned: 1 during the first push, 0 before. */
  request: number
  /** What the first push after that waited for, in order: the id of each call, and its name. */
  calls: Map<string, string>
  /** How often the planned fault struck. */
  struck: number
  /** A record of the push was stored, and how many messages were queued. */
  recorded: boolean
  queued: number
  /** Answers in order, 0 where the connection broke. */
  answers: number[]
  /** Whether a 2xx came while neither record nor message was there. */
  uncovered: boolean
  /** Ends the door that serves it now, and resolves when it is gone. */
  kill: () => Promise<void>
  /** While a request is under way: resolves when it was answered. */
  answered: Promise<unknown> | undefined
}

export type Fate = {
  plays: Map<string, Play>
  faults: (call: Call) => Fault | undefined | Promise<Fault | undefined>
  onCall: (call: Call, outcome: Outcome) => void
  keysOf: (agent: string) => Answer | undefined
}

/** A door's access key id: its cell's and its own number. Those that are dead have no effect any more. */
export const whoOf = ({ id }: Play, instance: number): string => `${id}i${instance}`

export function createFate(dead: ReadonlySet<string>): Fate {
  const plays = new Map<string, Play>()
  const playOf = (who: string): Play | undefined => plays.get(/^(c\d+)i\d+$/.exec(who)?.[1] ?? '')
  const struckBy = new Map<Call, Play>()
  /** Registration fetches the keys; where nobody ever did, it could not. */
  const isUnfetched = (call: Call): boolean => {
    const scene = plays.get(agentOf(call) ?? '')?.cell.scene
    return (scene === 'signed' || scene === 'new rule') && nameOf(call) === lease
  }
  return {
    plays,
    faults: async call => {
      if (call.who === 'api') return isUnfetched(call) ? 'throttle' : undefined
      const play = playOf(call.who)
      if (play === undefined) return undefined
      if (dead.has(call.who)) return 'throttle'
      if (isPlanned(play, noteCall(play, call.id, nameOf(call)))) {
        struckBy.set(call, play)
        return strike(play)
      }
      return isAway(play, call.service) ? 'throttle' : undefined
    },
    onCall: (call, { status }) => {
      const play = playOf(call.who)
      if (play === undefined) return
      if (play.request > 0 && status === 200) note(play, call)
      // The effect is there, the answer is not: a process that ends now knows nothing of it.
      if (struckBy.delete(call) && play.cell.how === 'kill after') void play.kill()
    },
    keysOf: agent => {
      const play = plays.get(agent)
      if (play === undefined) return undefined
      if (play.answered === undefined) return undefined
      if (isPlanned(play, noteCall(play, randomUUID(), fetchKeys))) return fetched(play)
      return play.cell.scene === 'host down' && play.request === 1 ? { status: 503 } : undefined
    },
  }
}

/** Names a call, by its id the same for each attempt at it, and keeps what the first push after the weather turned waits for. */
export function noteCall({ calls, request }: Play, id: string, name: string): string | undefined {
  if (request !== 1) return undefined
  const known = calls.get(id)
  if (known !== undefined) return known
  const before = [...calls.values()].filter(step => kindOf(step) === name).length
  const step = nthOf(name, before + 1)
  calls.set(id, step)
  return step
}

const isPlanned = ({ cell }: Play, step: string | undefined): boolean =>
  step !== undefined && cell.step === step

/** Bad weather lasts until after the first repeat. */
function isAway({ cell: { weather }, request }: Play, service: Call['service']): boolean {
  if (request < 1 || request > 2) return false
  return weather === 'both away' || weather === (service === 'sqs' ? 'queue away' : 'table away')
}

async function strike(play: Play): Promise<Fault | undefined> {
  play.struck += 1
  switch (play.cell.how) {
    case 'blip before':
      return play.struck === 1 ? 'throttle' : undefined
    case 'blip after':
      return play.struck === 1 ? 'fail_after' : undefined
    case 'fail before':
      return 'throttle'
    case 'fail after':
      return 'fail_after'
    case 'kill before':
      await play.kill()
      return 'throttle'
    case 'kill after':
      return 'fail_after'
    case 'late':
      await play.answered
      return undefined
    case 'nothing':
      return undefined
  }
}

/** What the key host does when the fetch is what goes wrong. */
function fetched(play: Play): Answer {
  play.struck += 1
  if (isKill(play.cell)) void play.kill()
  const { how } = play.cell
  if (how === 'fail before') return { status: 503 }
  return { fault: how === 'fail after' ? 'cut' : 'hang' }
}

function note(play: Play, call: Call): void {
  const name = nameOf(call)
  if (name === record) play.recorded = true
  if (name === message) play.queued += 1
}
