// Decides whose time for a task is up, and when the next one's will be. Pure: time is an argument.
import { isInterrupted, isTerminal } from './a2a/task.ts'
import type { Cancel, Subscription, Watch } from './model.ts'
import { floorMs } from './policy.ts'
import { writeStep } from './steps.ts'

const second = 1000

/** No pause is unbounded: how long a task may wait for somebody where its subscription does not say. */
export const pauseSeconds = 24 * 60 * 60

/** One budget of one subscription, and when it is used up. */
type Deadline = {
  sub: Subscription
  budget: 'hop' | 'pause' | 'end_to_end'
  seconds: number
  at: number
}

/** What a look has to save and to tell because of the time it is. */
export type Times = {
  /** Steps that became true, for {@link Watch.owed}. */
  steps: string[]
  /** Marks that keep them from being told again, and a cancellation that was asked for. */
  saves: Pick<Watch, 'overdueAt' | 'cancel'>
  /** When the next budget or subscription ends, if any does. */
  next: number | undefined
}

/** The part of a watch that budgets go by. */
type Timed = Pick<Watch, 'rev' | 'state' | 'changed' | 'created' | 'fresh' | 'overdueAt' | 'cancel'>

/**
 * Judges all budgets of an open task.
 * @param watch as it is after the look: a task that just went on is not late
 * @param subs those who are on it
 * @param now milliseconds since 1970
 */
export function timesOf(watch: Timed, subs: readonly Subscription[], now: number): Times {
  if (isTerminal(watch.state)) return { steps: [], saves: {}, next: undefined }
  const deadlines = subs.flatMap(sub => deadlinesOf(watch, sub))
  const over = deadlines.filter(one => one.at <= now && isUntold(watch, one))
  const ends = subs.filter(sub => sub.scope === 'task')
  const late = over.find(({ sub }) => sub.onOverdue === 'cancel')
  const cancel: Cancel | undefined = late && {
    by: 'policy',
    why: `${late.budget} of ${late.sub.id}`,
    at: now,
  }
  // A cancellation is sent by the next look; one that cannot be sent is tried less and less often.
  const waiting = cancel ?? watch.cancel
  const soon = waiting === undefined ? [] : [now + floorMs(now - waiting.at)]
  const coming = [...deadlines.map(({ at }) => at), ...ends.map(({ expiresAt }) => expiresAt), ...soon]
  return {
    steps: [
      ...over.map(one => overdueStep(watch, one)),
      ...ends
        .filter(({ expiresAt }) => expiresAt <= now)
        .map(({ ref, expiresAt }) => writeStep(watch, 'subscription.expired', expiresAt, { sub: ref })),
    ],
    saves: { ...(over.length > 0 && { overdueAt: now }), ...(cancel !== undefined && { cancel }) },
    next: coming.filter(at => at > now).sort((a, b) => a - b)[0],
  }
}

/** Each deadline is told once: those until `overdueAt` were, but to somebody who was not told anything yet. */
const isUntold = (watch: Timed, { at, sub }: Deadline): boolean =>
  at > (watch.overdueAt ?? 0) || watch.fresh.includes(sub.ref)

/**
 * A hop begins anew with each change that a client could see, and so does a pause with each question; nobody's begins
 * before the subscription did. End to end counts from the subscription, for a whole agent's from the task.
 */
function deadlinesOf(watch: Timed, sub: Subscription): Deadline[] {
  const since = Math.max(watch.changed, sub.createdAt)
  const paused = isInterrupted(watch.state)
  const deadline = (budget: Deadline['budget'], from: number, seconds: number | undefined): Deadline[] =>
    seconds === undefined ? [] : [{ sub, budget, seconds, at: from + seconds * second }]
  return [
    ...(paused
      ? deadline('pause', since, sub.pauseTimeoutSeconds ?? pauseSeconds)
      : deadline('hop', since, sub.hopTimeoutSeconds)),
    ...deadline('end_to_end', sub.scope === 'task' ? sub.createdAt : watch.created, sub.endToEndSeconds),
  ]
}

function overdueStep(watch: Timed, { sub, budget, seconds, at }: Deadline): string {
  const action: Record<string, string> = sub.onOverdue === 'cancel' ? { action: 'cancel' } : {}
  const data = { budget, seconds: String(seconds), ...action }
  return writeStep(watch, 'task.overdue', at, { sub: sub.ref, data })
}
