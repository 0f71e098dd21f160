// Decides when a trouble that lasts is told, and as what. Pure: time is an argument.
import type { Lasting, Trouble, Watch } from './model.ts'
import { aheadTries } from './policy.ts'

/** What is told of a trouble that stays. The next look that sees the task takes it back: the state is told again. */
export type Alarm =
  | 'task.lost_access'
  | 'task.orphaned'
  | 'task.too_large'
  | 'subscription.credentials_expired'

/** How long a task that was seen may be missing before it counts as orphaned: agents restart and move their stores. */
export const orphanMs = 10 * 60_000

/** Answers of which nothing can be made, whatever credentials and task. */
const unusable: ReadonlySet<Trouble> = new Set(['wrong_task', 'unreadable', 'unsupported_version', 'failed'])

/**
 * True when an agent has given nothing but unusable answers of one kind about a task for long: that is no client's news,
 * and no breaker sees it, for it answers.
 * @param met with the look at `now` counted
 */
export const isUnusable = ({ trouble, since, times }: Lasting, now: number): boolean =>
  unusable.has(trouble) && times >= aheadTries && now - since >= orphanMs

/** Counts one more look that met a lasting trouble; another kind of it begins anew, one that passes does not count. */
export const metAgain = (met: Lasting | undefined, trouble: Trouble, now: number): Lasting =>
  met?.trouble === trouble ? { ...met, times: met.times + 1 } : { trouble, since: now, times: 1 }

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
  if ((trouble !== 'not_found' && trouble !== 'forbidden') || times < aheadTries) return undefined
  // A2A 1.0 section 13.1: "not found" is also the answer to whoever may not see the task.
  if (watch.rev === 0) return 'task.lost_access'
  if (now - since < orphanMs) return undefined
  return trouble === 'forbidden' ? 'task.lost_access' : 'task.orphaned'
}
