// Lists the wakes that failed at a target and come again at a time of their own, so that they can be called back once it is well. A pointer may be stale: the wake itself says what it waits for.
import type { TargetName } from './gates.ts'
import { type Key, retryKey, retryPrefix, shardOf, spread, targetKey, waitingSlot, wakeKey } from './keys.ts'
import { put, query, remove, type Table, update } from './table.ts'
import type { Waiting } from './waiting.ts'

/** So long after its time a pointer is of no use. */
const keptSeconds = 3600
const pageSize = 200

/** A wake that comes again at `next`; `at`, `waiters`: as of one that waits. `noted` is when it failed. */
export type Retry = Pick<Waiting, 'subject' | 'id' | 'at' | 'waiters'> & { next: number; noted: number }

/** Notes a retry; a later one of the same wake takes its place. */
export const noteRetry = (table: Table, { tenant, target }: TargetName, retry: Retry) =>
  put(table, {
    ...retryKey(tenant, target, retry.subject, retry.id),
    ...retry,
    ttl: Math.ceil(retry.next / 1000) + keptSeconds,
  })

/** Retries of a target that were noted before a time. */
export async function retriesOf(
  table: Table,
  { tenant, target }: TargetName,
  before: number,
  most: number,
): Promise<{ retries: Retry[]; all: boolean }> {
  const { pk } = targetKey(tenant, target)
  const retries: Retry[] = []
  let after: Key | undefined
  do {
    if (retries.length >= most) return { retries, all: false }
    const page = await query<Retry>(table, {
      condition: '#pk = :pk AND begins_with(#sk, :prefix)',
      values: { pk, prefix: retryPrefix },
      limit: pageSize,
      ...(after !== undefined && { after }),
    })
    retries.push(...page.items.filter(({ noted }) => noted < before))
    after = page.next
  } while (after !== undefined)
  return { retries, all: true }
}

/**
 * Puts a wake that waits for its next try among those that wait for its target, unless it is under way, over, or noted
 * anew meanwhile. Its message or timer of before then finds it there, or done.
 */
export async function callBack(
  table: Table,
  { tenant, target }: TargetName,
  { subject, id, at, next, waiters }: Retry,
  now: number,
): Promise<Waiting | undefined> {
  const key = wakeKey(subject, id)
  const slot = waitingSlot(tenant, target, shardOf(id, spread))
  const { ok } = await update(
    table,
    key,
    'SET #slot = :slot, #due = :at, #holds = :zero, #group = :waiters REMOVE #next',
    { slot, at, waiters, next, now, pending: 'pending', zero: 0 },
    '#status = :pending AND #next = :next AND #lease < :now',
  )
  await remove(table, retryKey(tenant, target, subject, id), '#next = :next', { next })
  return ok ? { key, subject, id, slot, at, waiters } : undefined
}
