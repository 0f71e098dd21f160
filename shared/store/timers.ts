// Reads what is due, shard by shard, and holds each entry while its work is under way.
import { dueIndex, type Key, readTimer, slotNamed, type Timer } from './keys.ts'
import { query, type Table, update } from './table.ts'

export type Due = { key: Key; timer: Timer; due: number; tries: number; group: string }

type Entry = Key & { due: number; tries?: number; group?: string }

/** One page of a shard's entries that are due, oldest first. */
export async function dueIn(table: Table, shard: number, now: number, limit: number): Promise<Due[]> {
  const { items } = await query<Entry>(table, {
    index: dueIndex,
    condition: '#slot = :slot AND #due <= :now',
    values: { slot: slotNamed(shard), now },
    limit,
  })
  return items.flatMap(({ pk, sk, due, tries = 0, group = pk }) => {
    const timer = readTimer({ pk, sk })
    return timer === undefined ? [] : [{ key: { pk, sk }, timer, due, tries, group }]
  })
}

/** Moves an entry that is still due as it was read; whoever set its timer meanwhile wins. */
export async function holdTimer(table: Table, { key, due, tries }: Due, until: number): Promise<boolean> {
  const { ok } = await update(
    table,
    key,
    'SET #due = :until, #tries = :tries',
    { until, tries: tries + 1, due },
    '#due = :due',
  )
  return ok
}
