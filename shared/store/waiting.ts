// Keeps the wakes that wait for a paused target: a list of their own in the index, so that waiting costs nothing.
import type { TargetName } from './gates.ts'
import {
  dueIndex,
  failedSlot,
  type Key,
  readTimer,
  shardOf,
  slotOf,
  spread,
  targetGroup,
  waitingSlot,
} from './keys.ts'
import { query, type Table, update } from './table.ts'

/** A wake that waits; `waiters` names those for which the newest speaks. */
export type Waiting = { key: Key; subject: string; id: string; slot: string; at: number; waiters: string }

type Entry = Key & { due: number; group?: string }

const pageSize = 500

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

/** Ends a wake that waits: a newer one speaks for it, or its target is no more. One that is under way is left alone. */
export async function endWaiting(
  table: Table,
  tenant: string,
  { key, id, slot, at }: Waiting,
  status: 'superseded' | 'failed' | 'dropped',
  now: number,
): Promise<boolean> {
  const failed = status === 'failed' && failedSlot(tenant, shardOf(id, spread))
  const { ok } = await update(
    table,
    key,
    failed
      ? 'SET #status = :status, #slot = :failed, #due = :at REMOVE #holds'
      : 'SET #status = :status REMOVE #slot, #due, #holds, #group',
    { status, slot, now, pending: 'pending', ...(failed && { failed, at }) },
    '#slot = :slot AND #status = :pending AND #lease <= :now',
  )
  return ok
}
