// Decides when a trouble that lasts is told, and as what. Pure: time is an argument.
import type { Lasting, Trouble, Watch } from './model.ts'
import { aheadTries } from './policy.ts'

/** What everybody on a task is told of a trouble that stays. The next look that sees it takes it back: the state is told again. */
export type TaskAlarm = 'task.lost_access' | 'task.orphaned' | 'task.too_large'

/** The same, or what is told to those alone whose credentials they are. */
export type Alarm = TaskAlarm | 'subscription.credentials_expired'

/** How long a task that was seen may be missing before it counts as orphaned: agents restart and move their stores. */
export const orphanMs = 10 * 60_000

/** Answers of which nothing can be made, whatever credentials and task. */
const unusable: ReadonlySet<Trouble> = new Set(['wrong_task', 'unreadable', 'unsupported_version', 'failed'])

const missing: ReadonlySet<Trouble> = new Set(['not_found', 'forbidden'])

/** Troubles that one fault may show in turn, as replicas do that are not alike. */
const families: readonly ReadonlySet<Trouble>[] = [
  missing,
  unusable,
  new Set<Trouble>(['unauthorized', 'credentials_expired']),
]

const areAkin = (one: Trouble, other: Trouble): boolean =>
  one === other || families.some(family => family.has(one) && family.has(other))

/** So long an agent may answer in unlike kinds, each of which says that the task cannot be had, before that is told. */
const mixedMs = 60 * 60_000

/**
 * True when an agent has given nothing but unusable answers about a task for long, or answers that contradict each other:
 * that is no client's news, and no breaker sees it, for it answers.
 * @param met with the look at `now` counted
 * @param troubleSince since when no look has seen the task
 */
export const isUnusable = (
  { trouble, since, times, row }: Lasting,
  troubleSince: number,
  now: number,
): boolean =>
  times === row || unusable.has(trouble)
    ? unusable.has(trouble) && times >= aheadTries && now - since >= orphanMs
    : row >= 2 * aheadTries && now - troubleSince >= mixedMs

/** Counts one more look that met a lasting trouble; one that is not akin begins anew, one that passes does not count. */
export const metAgain = (met: Lasting | undefined, trouble: Trouble, now: number): Lasting => {
  const row = (met?.row ?? 0) + 1
  return met !== undefined && areAkin(met.trouble, trouble)
    ? { ...met, trouble, times: met.times + 1, row }
    : { trouble, since: now, times: 1, row }
}

/**
 * @param met with the look at `now` counted
 * @returns what the trouble has come to by now; undefined while it may still pass
 */
export function alarmOf(
  watch: Pick<Watch, 'rev'>,
  { trouble, since, times }: Lasting,
  now: number,
): Alarm | undefined {
  // Asked again, it would be no smaller: who waits for the task is to look himself.
  if (trouble === 'too_large') return 'task.too_large'
  if (trouble === 'credentials_expired') return 'subscription.credentials_expired'
  if (trouble === 'unauthorized') return times > 1 ? 'subscription.credentials_expired' : undefined
  if (!missing.has(trouble) || times < aheadTries) return undefined
  // A2A 1.0 section 13.1: "not found" is also the answer to whoever may not see the task.
  if (watch.rev === 0) return 'task.lost_access'
  if (now - since < orphanMs) return undefined
  return trouble === 'forbidden' ? 'task.lost_access' : 'task.orphaned'
}
