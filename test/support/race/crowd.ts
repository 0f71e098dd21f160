// Other tasks of the same agent, which all end within a minute, and a spell in which that agent answers nobody: what its breaker and its limit of calls are for. Judges nothing.
import type { Chance } from './timeline.ts'

/** Calls that the agent takes at a time, while there is a crowd. */
export const callsAtOnce = 2

/** One GetTask at the agent, with when it came and was over there. */
export type Exchange = {
  from: number
  until: number
  /** Whether the agent answered. */
  answered: boolean
  /** Whoever sent it had stood still for seconds, and may have lost its slot over that. */
  late: boolean
}

export type Crowd = {
  /** When each task ends, by its id. */
  ends: ReadonlyMap<string, number>
  /** From when until when the agent answers nobody. */
  down: { from: number; until: number }
  /** From when on somebody was promised to be told of each. */
  owed: Map<string, number>
  /** Those whose end was pushed, and taken with 2xx. */
  taken: Set<string>
  exchanges: Exchange[]
}

const minute = 60_000
const size = 6

/** No tasks, and an agent that answers. */
export const nobody = (): Crowd => ({
  ends: new Map(),
  down: { from: 0, until: 0 },
  owed: new Map(),
  taken: new Set(),
  exchanges: [],
})

/** @param start when the tasks are there, at the latest */
export function gather(chance: Chance, start: number): Crowd {
  const at = start + chance.between(0, 10 * minute)
  const ids = Array.from({ length: size }, (_, n) => `crowd-${n}`)
  const from = at + chance.between(-5 * minute, minute)
  // No longer than a state lasts that has to be told.
  const until = chance.of(0.5) ? from : from + chance.between(5 * minute, 15 * minute)
  return {
    ...nobody(),
    ends: new Map(ids.map(id => [id, at + chance.between(0, minute)])),
    down: { from, until },
  }
}

/** What the agent tells of one of them; undefined when it is none of them. */
export function taskOfCrowd({ ends }: Crowd, id: unknown, now: number): object | undefined {
  const end = ends.get(String(id))
  if (end === undefined) return undefined
  const over = now >= end
  const timestamp = new Date(over ? end : 0).toISOString()
  return { id, status: { state: over ? 'completed' : 'working', timestamp } }
}

export const isDown = ({ down }: Crowd, now: number): boolean => now >= down.from && now < down.until
