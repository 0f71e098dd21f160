// Judges what must come though no state says it: that a task cannot be had by any credentials, that one whose time is up is canceled, or not. If it never came, nobody would notice. Pure.
import { isTerminal } from '../../../shared/a2a/task.ts'
import { present, type Task } from './agents.ts'
import type { Entry, Interest } from './cast.ts'
import { expired, lost, type Violation } from './judge.ts'
import { isBarred } from './kinds.ts'

const minute = 60_000
/**
 * So long the relay may take. A look by deadline comes within six hours, and what is lost is told after five looks and ten
 * minutes; looks find no room meanwhile, and the clock leaps over most of the times that they are due.
 */
const patienceMs = 24 * 60 * minute

/** Judges one task. @param now when all that was told by then has been read */
export function judgeUnsaid(task: Task, interests: readonly Interest[], now: number): Violation[] {
  const live = interests.filter(({ ending }) => ending === undefined)
  // Whose credentials may come to something leaves hope to the others, and whoever is not bound may have no task yet.
  if (!live.every(({ how, pass }) => how === 'bound' && pass !== undefined && isBarred(pass))) return []
  const left = Math.max(0, ...interests.filter(one => !live.includes(one)).map(goneAt))
  // An end that somebody may have seen before is no task that was lost.
  const { state, at } = present(task)
  if (isTerminal(state) && at < left + minute) return []
  return live
    .map(interest => ({ interest, since: Math.max(left, interest.begun) }))
    .filter(({ since }) => now - since > patienceMs)
    .filter(({ interest, since }) => !isTold(task, interest, since))
    .map(({ interest, since }) => unsaid(task, interest, since))
}

/** A deletion that is not over yet leaves its subscription where it was. */
const goneAt = ({ deletedAt = Number.POSITIVE_INFINITY }: Interest): number => deletedAt

function isTold(task: Task, { client, id, pass }: Interest, since: number): boolean {
  const entries = client.byTask.get(task.id) ?? []
  // The same credentials are told once, whenever that was.
  if (pass?.how === 'refuse')
    return entries.some(({ type, subscription }) => type === expired && subscription === id)
  const isAlarm = ({ type }: Entry): boolean => lost.includes(type)
  // That a task is lost is one entry of a client, which names the first of its subscriptions. What was told before stands,
  // unless the task was seen and told again.
  return entries.some(entry => isAlarm(entry) && (entry.at >= since - minute || entries.at(-1) === entry))
}

/** The same of a budget, which runs out within the first hour of a rest. */
const restMs = 12 * 60 * minute

/**
 * Judges a task that goes on without a change for longer than its budget: its agent must have been asked to cancel it, and
 * who wished it be told if it would not.
 */
export function judgeOverdue(task: Task, interests: readonly Interest[], now: number): Violation[] {
  const { cancels } = task.agent.kind
  const { state, at } = present(task)
  if (cancels === undefined || state !== 'working' || now - at < restMs) return []
  const isToldSo = ({ client }: Interest): boolean =>
    cancels === 'refuses' &&
    client.byTask.get(task.id)?.some(({ type }) => type === 'task.cancel_refused') === true
  return interests
    .filter(({ how, begun, ending }) => how === 'bound' && begun < at && ending === undefined)
    .filter(interest => !isToldSo(interest))
    .map(({ id, client }) => ({
      ...{ rule: 'unsaid', task: task.id },
      says: `the budget of ${id} ran out, ${cancels === 'heeds' ? 'and the task goes on' : `inbox ${client.name} does not say that it goes on`}`,
    }))
}

function unsaid(task: Task, { id, client, pass }: Interest, since: number): Violation {
  const told = (client.byTask.get(task.id) ?? []).map(
    ({ type, subscription }) => `${type} to ${subscription}`,
  )
  const says = [
    `inbox ${client.name} has no alarm for ${id}, whose credentials (${pass?.name}) show nothing`,
    `since ${new Date(since).toISOString()} at ${task.agent.name}: ${told.join(', ') || 'nothing told'}`,
  ].join(' ')
  return { rule: 'unsaid', task: task.id, says }
}
