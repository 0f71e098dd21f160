// What happens to the one task of a run, as its agent tells it: states, when they begin, and what GetTask answers at a time.
import { isInterrupted, isTerminal, type TaskState } from '../../../shared/a2a/task.ts'
import type { Chance } from './timeline.ts'

export const taskId = 'task'

/** One state of the task. `n` counts them; `look` is equal for those that a client cannot tell apart. */
export type Moment = { n: number; at: number; until: number; state: TaskState; look: string; raw: object }

export type Story = {
  moments: Moment[]
  /** Whether the agent writes when each state began. */
  stamped: boolean
  last: Moment
  /** The state at a time; undefined before the task exists. */
  at: (time: number) => Moment | undefined
}

const minute = 60_000
const long = [30 * minute, 180 * minute] as const

/**
 * `mixed`: mostly bursts and seconds, at times minutes, seldom hours, but often before the end. `brisk`: many states,
 * each about as long as a window. `flapping`: questions that are taken back at once, then hours of work.
 */
export type Pace = 'mixed' | 'brief' | 'brisk' | 'flapping'

/** Tells a story that begins at `start`. */
export function tellStory(chance: Chance, start: number, pace: Pace): Story {
  const style = { stamped: chance.of(0.5), worded: chance.of(0.6) }
  const states = statesOf(chance, pace)
  let at = start
  const begun = states.map((state, n) => {
    if (n > 0) at += gaps[pace](chance, n === states.length - 1)
    return { n, at, state, ...lookOf(state, n, at, style) }
  })
  const moments = begun.map((moment, n) => ({
    ...moment,
    until: begun[n + 1]?.at ?? Number.POSITIVE_INFINITY,
  }))
  const last = moments.at(-1)
  if (last === undefined) throw new Error('A story has an end.')
  return { moments, last, stamped: style.stamped, at: time => moments.findLast(moment => moment.at <= time) }
}

function statesOf(chance: Chance, pace: Pace): TaskState[] {
  const states: TaskState[] = [chance.pick('submitted', 'working')]
  if (pace === 'flapping') {
    for (let flap = 0; flap < 30; flap++) states.push('input-required', 'working')
    return [...states, 'completed']
  }
  const most = { mixed: 6, brief: 2, brisk: 16 }[pace]
  for (let more = Math.floor(chance.between(pace === 'brief' ? 0 : 1, most)); more > 0; more--)
    states.push(
      isInterrupted(states.at(-1)) ? 'working' : chance.pick('input-required', 'working', 'auth-required'),
    )
  const end = chance.pick<TaskState>('completed', 'completed', 'failed', 'canceled', 'input-required')
  return states.at(-1) === end ? states : [...states, end]
}

type Gap = (chance: Chance, isLast: boolean) => number

const mixed: Gap = (chance, isLast) => {
  if (isLast && chance.of(0.4)) return chance.between(...long)
  if (chance.of(0.4)) return chance.between(5, 80)
  if (chance.of(0.8)) return chance.between(300, 4000)
  return chance.of(0.8) ? chance.between(5000, 5 * minute) : chance.between(...long)
}

/** How long a state lasts, or the last one is waited for. */
const gaps: Record<Pace, Gap> = {
  mixed,
  brief: mixed,
  brisk: chance => chance.between(100, 1500),
  flapping: (chance, isLast) => (isLast ? chance.between(...long) : chance.between(5, 100)),
}

/** The task as GetTask answers it. Some agents write no time, and some ask without a message. */
function lookOf(
  state: TaskState,
  n: number,
  at: number,
  { stamped, worded }: { stamped: boolean; worded: boolean },
): { look: string; raw: object } {
  const timestamp = stamped ? new Date(at).toISOString() : undefined
  const message = worded && (isInterrupted(state) || isTerminal(state)) ? { messageId: `m${n}` } : undefined
  const status = { state, ...(timestamp && { timestamp }), ...(message && { message }) }
  const told = isInterrupted(state) && message === undefined ? timestamp : undefined
  return {
    look: [state, message?.messageId, told].join(' '),
    raw: { id: taskId, status },
  }
}
