// Reads what is due, shard by shard, and holds each entry while its work is under way.
import { dueIndex, type Key, readTimer, slotNamed, type Timer } from './keys.ts'
import { query, type Table, update } from './table.ts'

export type Due = { key: Key; timer: Timer; due: number; holds: number; group: string }

type Entry = Key & { due: number; holds?: number; group?: string }

/** One page of a shard's entries that are due, oldest first. */
export async function dueIn(table: Table, shard: number, now: number, limit: number): Promise<Due[]> {
  const { items } = await query<Entry>(table, {
    index: dueIndex,
    condition: '#slot = :slot AND #due <= :now',
    values: { slot: slotNamed(shard), now },
    limit,
  })
  return items.flatMap(({ pk, sk, due, holds = 0, group = pk }) => {
    const timer = readTimer({ pk, sk })
    return timer === undefined ? [] : [{ key: { pk, sk }, timer, due, holds, group }]
  })
}

/** Moves an entry that is still due as it was read; whoever set its timer meanwhile wins. */
export async function holdTimer(table: Table, { key, due, holds }: Due, until: number): Promise<boolean> {
  const { ok } = await update(
    table,
    key,
    'SET #due = :until, #holds = :holds',
    { until, holds: holds + 1, due },
    '#due = :due',
  )
  return ok
}
