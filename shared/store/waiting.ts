// Keeps the wakes that wait for a paused target: a list of their own in the index, so that waiting costs nothing.

import type { Wake } from '../telling.ts'
import type { TargetName } from './gates.ts'
import {
  dueIndex,
  failedSlot,
  type Key,
  readTimer,
  shardOf,
  slotOf,
  spokenSlot,
  spread,
  targetGroup,
  waitingSlot,
} from './keys.ts'
import { get, query, type Table, update } from './table.ts'
import type { Period } from './wakes.ts'

/** A wake that waits; `waiters` names those for which the newest speaks. */
export type Waiting = { key: Key; subject: string; id: string; slot: string; at: number; waiters: string }

type Entry = Key & { due: number; group?: string }

const pageSize = 500
/** Of a shard; the index lags, so that the newest may be over. */
const spokenPage = 10

/**
 * Those who wait for a target, the newest of each shard first. The index lags: one who just came may be missing.
 * @returns `all` is false when there were more than `most`
 */
export async function waitingFor(
  table: Table,
  { tenant, target }: TargetName,
  most: number,
): Promise<{ waiting: Waiting[]; all: boolean }> {
  const waiting: Waiting[] = []
  for (let shard = 0; shard < spread; shard++) {
    const slot = waitingSlot(tenant, target, shard)
    let after: Key | undefined
    do {
      if (waiting.length >= most) return { waiting, all: false }
      const page = await query<Entry>(table, {
        index: dueIndex,
        condition: '#slot = :slot',
        values: { slot },
        limit: pageSize,
        backwards: true,
        ...(after !== undefined && { after }),
      })
      waiting.push(...page.items.flatMap(entry => waitingOf(entry, slot)))
      after = page.next
    } while (after !== undefined)
  }
  return { waiting, all: true }
}

function waitingOf({ pk, sk, due, group = pk }: Entry, slot: string): Waiting[] {
  const timer = readTimer({ pk, sk })
  if (timer?.of !== 'wake') return []
  return [{ key: { pk, sk }, subject: timer.subject, id: timer.id, slot, at: due, waiters: group }]
}

/** Takes a wake off the list to be sent; its timer finds it if its message is lost. One that is on its way already stays. */
export async function releaseWaiting(
  table: Table,
  { tenant, target }: TargetName,
  { key, slot }: Waiting,
  due: number,
): Promise<boolean> {
  const { ok } = await update(
    table,
    key,
    'SET #slot = :free, #due = :due, #holds = :zero, #group = :group',
    { slot, free: slotOf(key.pk, table.shards), due, zero: 0, group: targetGroup(tenant, target) },
    '#slot = :slot',
  )
  return ok
}

/** How a wake ends that waits, and the list that it stands in from then on. */
type Ending = { status: 'superseded' | 'failed' | 'dropped'; list?: string; speaks?: true }

/** Its target failed for good: it stands among its tenant's failures. */
export const asFailed = (tenant: string, { id }: Waiting): Ending => ({
  status: 'failed',
  list: failedSlot(tenant, shardOf(id, spread)),
})

/** A newer one speaks for it: it can be found if that one ends unsent. */
export const asSpoken = ({ tenant, target }: TargetName, { id, waiters }: Waiting): Ending => ({
  status: 'superseded',
  list: spokenSlot(tenant, target, waiters, shardOf(id, spread)),
  speaks: true,
})

/**
 * Ends a wake that waits. One that is under way is left alone.
 * @param before also one that came to wait no earlier; one that was called back has waited all along
 */
export async function endWaiting(
  table: Table,
  { key, slot, at }: Waiting,
  { status, list, speaks }: Ending,
  now: number,
  before?: number,
): Promise<boolean> {
  const { ok } = await update(
    table,
    key,
    [
      `SET #status = :status${list === undefined ? '' : ', #slot = :list, #due = :at'}${speaks ? ', #speaks = :speaks' : ''}`,
      `REMOVE #holds, #group${list === undefined ? ', #slot, #due' : ''}`,
    ].join(' '),
    {
      status,
      slot,
      now,
      before,
      pending: 'pending',
      ...(list !== undefined && { list, at }),
      ...(speaks && { speaks }),
    },
    `#slot = :slot AND #status = :pending AND #lease <= :now${before === undefined ? '' : ' AND (attribute_not_exists(#waits) OR #waits < :before)'}`,
  )
  return ok
}

/** Marks a wake that waits as one that speaks for others; false when it waits no more. */
export async function markSpeaker(table: Table, { key, slot }: Waiting): Promise<boolean> {
  const { ok } = await update(
    table,
    key,
    'SET #speaks = :speaks',
    { slot, speaks: true, pending: 'pending' },
    '#slot = :slot AND #status = :pending',
  )
  return ok
}

/** A wake that waits, as it stands now; undefined when it waits no more. */
export async function waitingWake(table: Table, { key, slot }: Waiting): Promise<Wake | undefined> {
  const wake = await get<Wake & { slot?: string }>(table, key)
  return wake?.slot === slot && wake.status === 'pending' ? wake : undefined
}

/** Some of those that ended since another of the same waiters spoke for them, the newest first. */
export async function spokenFor(
  table: Table,
  { tenant, target }: TargetName,
  waiters: string,
  { since, until }: Period,
): Promise<Waiting[]> {
  const slots = Array.from({ length: spread }, (_, shard) => spokenSlot(tenant, target, waiters, shard))
  const pages = await Promise.all(
    slots.map(async slot => {
      const page = await query<Entry>(table, {
        index: dueIndex,
        condition: '#slot = :slot AND #due BETWEEN :since AND :until',
        values: { slot, since, until },
        limit: spokenPage,
        backwards: true,
      })
      return page.items.flatMap(entry => waitingOf(entry, slot))
    }),
  )
  return pages.flat().toSorted((one, other) => other.at - one.at)
}
