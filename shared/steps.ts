// Steps: what is told of a task though no revision says it, such as a budget that ran out. Writes each as one text and reads it. Pure.
import { eventType, type TaskState, taskStates } from './a2a/task.ts'
import type { Watch } from './model.ts'
import type { Facts } from './telling.ts'

/** Steps of a task, by the type of their event. */
export type StepType =
  /** A time budget ran out: `budget`, `seconds`, `action` if the task is canceled for it. */
  | 'task.overdue'
  | 'task.disputed'
  /** Its agent would not cancel it: `by`, `why`, `reason`. */
  | 'task.cancel_refused'
  | 'task.orphaned'
  | 'task.lost_access'
  /** The agent's answers are too large, and do not show its state within what is read of them. */
  | 'task.too_large'
  | 'subscription.expired'
  | 'subscription.credentials_expired'
  /** The state of a task that was told as lost, for those who did not ask for that state. */
  | ReturnType<typeof eventType>

/** One step as it is told; everything in it is settled when it becomes true, so that a repeat tells the same. */
export type Step = {
  type: string
  /** When it became true (ms). */
  at: number
  /** What was known of the task then. A task that was never seen has no state, and rev 0. */
  rev: number
  state?: TaskState
  /** Ref of the one subscription that is told; everybody on the watch unless given. */
  sub?: string
  /** More fields of the event. */
  data: Facts
}

/** Names that `data` may not use. */
const own = new Set(['type', 'at', 'rev', 'state', 'sub'])
/** Stands before the name of a number. */
const numeric = '#'

/**
 * Writes a step that became true of a watch, as the watch owes it. The same step gives the same text: it is what the
 * ids of its entries and wakes are made of, so `at` must be settled by the write that makes it true.
 */
export function writeStep(
  watch: Pick<Watch, 'rev' | 'state'>,
  type: StepType,
  at: number,
  more: { sub?: string; data?: Facts } = {},
): string {
  const fields = new URLSearchParams({ type, at: String(at), rev: String(watch.rev) })
  if (watch.state !== undefined) fields.set('state', watch.state)
  if (more.sub !== undefined) fields.set('sub', more.sub)
  for (const [name, value] of Object.entries(more.data ?? {}))
    if (!own.has(name)) fields.set(typeof value === 'number' ? numeric + name : name, String(value))
  return fields.toString()
}

/** Reads a step. One of a later version's type is told as well: its text holds all that is needed. */
export function readStep(text: string): Step {
  const fields = new URLSearchParams(text)
  const state = taskStates.find(one => one === fields.get('state'))
  const sub = fields.get('sub')
  return {
    type: fields.get('type') ?? '',
    at: Number(fields.get('at')),
    rev: Number(fields.get('rev')),
    ...(state !== undefined && { state }),
    ...(sub !== null && { sub }),
    data: Object.fromEntries([...fields].filter(([name]) => !own.has(name)).map(readFact)),
  }
}

const alarms: ReadonlySet<string> = new Set(['task.lost_access', 'task.orphaned', 'task.too_large'])

/**
 * What the id of a step's entry in an inbox is made of. What is told of the task itself is one entry of a client, through
 * however many of its subscriptions, and the state is that of its revision if the same look found that.
 */
export function entryNameOf(watch: Pick<Watch, 'rev' | 'changed'>, text: string): string | number {
  const { type, state, rev, at } = readStep(text)
  const tellsState = state !== undefined && type === eventType(state)
  if (tellsState && rev === watch.rev && at === watch.changed) return rev
  if (!tellsState && !alarms.has(type)) return text
  const fields = new URLSearchParams(text)
  fields.delete('sub')
  return fields.toString()
}

const readFact = ([name, value]: [string, string]): [string, string | number] =>
  name.startsWith(numeric) ? [name.slice(numeric.length), Number(value)] : [name, value]
