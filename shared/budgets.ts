// Decides whose time for a task is up, and when the next one's will be. Pure: time is an argument.
import { isInterrupted, isTerminal } from './a2a/task.ts'
import type { Cancel, Subscription, Watch } from './model.ts'
import { floorMs } from './policy.ts'
import { writeStep } from './steps.ts'
import { standingOf, type Wishes } from './wishes.ts'

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
  saves: Pick<Watch, 'overdue' | 'overdueCancel'>
  /** When the next budget or subscription ends, if any does. */
  next: number | undefined
}

/** The part of a watch that budgets go by. */
export type Timed = Pick<
  Watch,
  'agent' | 'taskId' | 'rev' | 'state' | 'changed' | 'created' | 'overdue' | 'refusedAt' | keyof Wishes
>

/** An open task below one: its name, and since when it is watched. */
export type Below = { name: string; created: number }

/**
 * True when a budget from end to end depends on the tasks below: the task has ended before it was used up, or it is
 * used up now and what is still open is to be named.
 */
export const countsTree = (watch: Timed, subs: readonly Subscription[], now: number): boolean =>
  subs
    .flatMap(sub => deadlinesOf(watch, sub))
    .some(one => covers(one) && isUntold(watch, one) && (isTerminal(watch.state) || one.at <= now))

/**
 * Judges all budgets of a task that is open, or that has ended while tasks below it are open: then those that cover them.
 * @param watch as it is after the look: a task that just went on is not late
 * @param subs those who are on it
 * @param now milliseconds since 1970
 * @param below the open tasks below it: a budget that was over before one came does not cover it
 */
export function timesOf(
  watch: Timed,
  subs: readonly Subscription[],
  now: number,
  below: readonly Below[] = [],
): Times {
  const ended = isTerminal(watch.state)
  if (ended && below.length === 0) return { steps: [], saves: {}, next: undefined }
  const deadlines = subs.flatMap(sub => deadlinesOf(watch, sub)).filter(one => !ended || covers(one))
  const openAt = (at: number) => below.filter(({ created }) => created <= at).map(({ name }) => name)
  const over = deadlines.filter(
    one =>
      one.at <= now &&
      isUntold(watch, one) &&
      !isBeingCanceled(watch, subs, one) &&
      (!ended || openAt(one.at).length > 0),
  )
  const ends = ended ? [] : subs.filter(sub => sub.scope === 'task')
  const late = over.filter(({ sub }) => cancels(watch, sub))
  const overdueCancel = joinWish(watch.overdueCancel, late, subs, now)
  const namesAt = (at: number) =>
    [...(ended ? [] : [nameOf(watch)]), ...openAt(at)].slice(0, mostNamed).join(' ')
  // A cancellation is sent by the next look; one that cannot be sent is tried less and less often.
  const waiting = ended ? undefined : standingOf({ ...watch, ...(overdueCancel && { overdueCancel }) }, subs)
  const soon = waiting === undefined ? [] : [now + floorMs(now - waiting.at)]
  const coming = [...deadlines.map(({ at }) => at), ...ends.map(({ expiresAt }) => expiresAt), ...soon]
  return {
    steps: [
      ...over.map(one => overdueStep(watch, one, namesAt(one.at))),
      ...ends
        .filter(({ expiresAt }) => expiresAt <= now)
        .map(({ ref, expiresAt }) => writeStep(watch, 'subscription.expired', expiresAt, { sub: ref })),
    ],
    saves: {
      ...(over.length > 0 && { overdue: { ...toldTo(watch, subs), ...toldNow(over, now) } }),
      ...(overdueCancel !== undefined && { overdueCancel }),
    },
    next: coming.filter(at => at > now).sort((a, b) => a - b)[0],
  }
}

/**
 * The wish of budgets, with those that ran out now. One that stands is joined, not replaced: it would lose its tries, and
 * with it the others' that were told of it.
 * @returns undefined if none ran out
 */
function joinWish(
  wish: Cancel | undefined,
  late: readonly Deadline[],
  subs: readonly Subscription[],
  now: number,
): Cancel | undefined {
  const [first] = late
  if (first === undefined) return undefined
  const standing = wish && standingOf({ overdueCancel: wish }, subs)
  const made: Cancel = { by: 'policy', why: `${first.budget} of ${first.sub.id}`, at: now }
  const owners = [...(standing?.subscriptions ?? []), ...late.map(({ sub }) => sub.id)]
  return { ...(standing ?? made), subscriptions: [...new Set(owners)] }
}

/** So many open tasks are named at most. */
const mostNamed = 10

/** A task as it stands in paths of the API, so that names can be told apart by blanks. */
export const nameOf = ({ agent, taskId }: Pick<Watch, 'agent' | 'taskId'>): string =>
  `${agent}/${encodeURIComponent(taskId)}`

/** Whether a budget covers the tasks below, too. */
const covers = ({ budget }: Deadline): boolean => budget === 'end_to_end'

/** Each deadline is told once: those until its subscription's mark were. */
const isUntold = ({ overdue }: Timed, { at, sub }: Deadline): boolean => at > (overdue?.[sub.ref] ?? 0)

/** The marks of those who are on it still. */
const toldTo = ({ overdue = {} }: Timed, subs: readonly Subscription[]): Record<string, number> =>
  Object.fromEntries(Object.entries(overdue).filter(([ref]) => subs.some(sub => sub.ref === ref)))

const toldNow = (over: readonly Deadline[], now: number): Record<string, number> =>
  Object.fromEntries(over.map(({ sub }) => [sub.ref, now]))

/** While a budget has the task canceled it does not begin anew: asking for that makes changes of its own. */
const isBeingCanceled = (watch: Timed, subs: readonly Subscription[], one: Deadline): boolean => {
  const { overdueCancel } = watch
  const standing = overdueCancel && standingOf({ overdueCancel }, subs)
  return !covers(one) && standing?.subscriptions?.includes(one.sub.id) === true
}

/** Only a task that is open is canceled, and not for those who were on it when its agent would not do that. */
const cancels = ({ state, refusedAt = 0 }: Timed, sub: Subscription): boolean =>
  sub.onOverdue === 'cancel' &&
  !isTerminal(state) &&
  Math.max(sub.createdAt, sub.credentialsAt ?? 0) > refusedAt

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

function overdueStep(watch: Timed, one: Deadline, open: string): string {
  const { sub, budget, seconds, at } = one
  const data = {
    ...{ budget, seconds },
    ...(cancels(watch, sub) && { action: 'cancel' }),
    ...(covers(one) && { open }),
  }
  return writeStep(watch, 'task.overdue', at, { sub: sub.ref, data })
}
