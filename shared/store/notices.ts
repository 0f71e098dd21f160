// Keeps notices: the record that marks a push as seen is also the work that is pending.
import type { Notice } from '../model.ts'
import { noticeKey, slotOf } from './keys.ts'
import { get, put, type Table, update } from './table.ts'

/** Pending work outlives its dedupe time, or a crash would forget it. */
const keptSeconds = 14 * 24 * 60 * 60

/**
 * Accepts a push unless one like it was accepted and is still remembered. Of many copies one is accepted.
 * TTL deletes late, so an old record counts as absent once its own time is over.
 * @param due when to look for it again (ms); undefined when its loss would not hurt
 */
export async function acceptNotice(table: Table, notice: Notice, due: number | undefined): Promise<boolean> {
  const key = noticeKey(notice.key)
  const { ok } = await put(
    table,
    {
      ...key,
      ...notice,
      ttl: Math.ceil(Math.max(notice.seenUntil, notice.at) / 1000) + keptSeconds,
      ...(due !== undefined && { slot: slotOf(key.pk, table.shards), due, holds: 0 }),
    },
    'attribute_not_exists(#pk) OR #seenUntil < :now',
    { now: notice.at },
  )
  return ok
}

export const getNotice = (table: Table, key: string): Promise<Notice | undefined> =>
  get<Notice>(table, noticeKey(key))

/** Gives a notice a timer after all, because its message could not be queued. */
export const timeNotice = (table: Table, key: string, due: number) =>
  update<Notice>(
    table,
    noticeKey(key),
    'SET #slot = :slot, #due = :due, #holds = :zero',
    { slot: slotOf(noticeKey(key).pk, table.shards), due, zero: 0 },
    'attribute_exists(#pk)',
  )

/** Takes the timer off: a look that started after the push was published, or its outcome is stated. */
export const settleNotice = (table: Table, key: string, outcome: string) =>
  update<Notice>(
    table,
    noticeKey(key),
    'SET #outcome = :outcome REMOVE #slot, #due, #holds',
    { outcome },
    'attribute_exists(#slot)',
  )
