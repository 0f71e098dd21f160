// Keeps wakes: one target to be told of one thing, with a lease for the delivery in progress and its last attempts.

import { readWakeId } from '../names.ts'
import type { Attempt, Wake, WakeStatus } from '../telling.ts'
import {
  dueIndex,
  failedSlot,
  type Key,
  readWakeSk,
  shardOf,
  slotOf,
  spread,
  targetGroup,
  waitingSlot,
  wakeKey,
  wakePrefix,
} from './keys.ts'
import { get, put, query, type Table, update } from './table.ts'

const keptSeconds = 30 * 24 * 60 * 60
const attemptsKept = 10

type Leased =
  | { kind: 'leased'; wake: Wake }
  | { kind: 'busy' }
  | { kind: 'done' }
  | { kind: 'early'; next: number; wake: Wake }

/**
 * Leases a wake for one attempt, making its record at the first. Of two copies of a message one attempts.
 * @param seed the record to make, when the message brings all that it needs
 */
export async function leaseWake(
  table: Table,
  subject: string,
  id: string,
  at: { now: number; until: number },
  seed?: Wake,
): Promise<Leased> {
  const key = wakeKey(subject, id)
  if (seed !== undefined) {
    const ttl = Math.ceil(at.now / 1000) + keptSeconds
    const made = await put<Wake>(
      table,
      { ...key, ...seed, lease: at.until, ttl, group: targetGroup(seed.tenant, seed.target) },
      'attribute_not_exists(#pk)',
    )
    if (made.ok) return { kind: 'leased', wake: { ...seed, lease: at.until } }
    if (made.old !== undefined && made.old.status !== 'pending') return { kind: 'done' }
  }
  const leased = await update<Wake>(
    table,
    key,
    'SET #lease = :until',
    { ...at, pending: 'pending' },
    '#status = :pending AND #lease < :now AND (attribute_not_exists(#next) OR #next <= :now)',
  )
  if (leased.ok && leased.item) return { kind: 'leased', wake: leased.item }
  const old = leased.ok ? undefined : leased.old
  if (old === undefined || old.status !== 'pending') return { kind: 'done' }
  if (old.lease >= at.now) return { kind: 'busy' }
  return { kind: 'early', next: old.next ?? at.now, wake: old }
}

/** What a wake is when its lease ends; with `parked` the table alone wakes it again, else the queue's own delay comes first. */
export type Standing = {
  status: WakeStatus
  /** The attempt that was made, if one was, and how many there were then. */
  attempt?: Attempt
  tries?: number
  next?: number
  parked?: boolean
  /** How often in a row its target had no room. */
  turns?: number
  /** Set while it waits for a paused target: those for which the newest of its kind speaks, and since when. */
  waiters?: string
  waits?: number
}

/** Records what a wake is now, under its lease; false when the lease was lost. */
export async function recordWake(
  table: Table,
  subject: string,
  id: string,
  wake: Wake,
  standing: Standing,
): Promise<boolean> {
  const key = wakeKey(subject, id)
  const attempts = [...wake.attempts, ...(standing.attempt ? [standing.attempt] : [])].slice(-attemptsKept)
  const timer = timerOf(key, wake, standing, table.shards)
  const group = standing.waiters ?? targetGroup(wake.tenant, wake.target)
  const kept = { tries: wake.tries, ...standing, ...timer, attempts, lease: 0, group }
  const set = [
    'status',
    'attempts',
    'tries',
    'turns',
    'lease',
    'next',
    'slot',
    'due',
    'holds',
    'group',
    'waits',
  ] as const
  const [present, gone] = [set.filter(name => name in kept), set.filter(name => !(name in kept))]
  const { ok } = await update<Wake>(
    table,
    key,
    [
      `SET ${present.map(name => `#${name} = :${name}`).join(', ')}`,
      gone.length > 0 ? `REMOVE ${gone.map(name => `#${name}`).join(', ')}` : '',
    ].join(' '),
    { ...kept, mine: wake.lease },
    '#lease = :mine',
  )
  return ok
}

/** How long after its time a retry that rides on the queue is looked for in the table. */
const backstopMs = 5 * 60 * 1000

/**
 * A retry has a timer: a parked one its own time, one that rides on the queue's delay a backstop. One that waits for a
 * paused target stands in the target's list, whose timer is the target's; a failed one in its tenant's list of failures.
 */
function timerOf(
  { pk, sk }: Key,
  wake: Wake,
  standing: Standing,
  shards: number,
): { slot?: string; due?: number; holds?: number } {
  if (standing.next !== undefined)
    return { slot: slotOf(pk, shards), due: standing.next + (standing.parked ? 0 : backstopMs), holds: 0 }
  const shard = shardOf(readWakeSk(sk), spread)
  if (standing.waiters !== undefined)
    return { slot: waitingSlot(wake.tenant, wake.target, shard), due: wake.at, holds: 0 }
  if (standing.status === 'failed') return { slot: failedSlot(wake.tenant, shard), due: wake.at }
  return {}
}

/**
 * Lets a wake that came to an end be tried from the start, under its own id. Its timer stands with it: whoever queues it
 * may die before that.
 * @param only the end that it must have come to; any unless given
 * @returns false if it is on its way already, or unknown
 */
export async function reviveWake(
  table: Table,
  wake: Wake,
  { now, only }: { now: number; only?: WakeStatus },
): Promise<boolean> {
  const name = readWakeId(wake.id)
  if (name === undefined) return false
  const key = wakeKey(name.subject, name.id)
  const { ok } = await update<Wake>(
    table,
    key,
    'SET #status = :pending, #tries = :none, #lease = :none, #next = :now, #slot = :slot, #due = :due, #holds = :none, #group = :group, #ttl = :ttl REMOVE #turns',
    {
      pending: 'pending',
      none: 0,
      now,
      slot: slotOf(key.pk, table.shards),
      due: now + backstopMs,
      group: targetGroup(wake.tenant, wake.target),
      ttl: Math.ceil(now / 1000) + keptSeconds,
      ...(only !== undefined && { only }),
    },
    only === undefined ? 'attribute_exists(#pk) AND #status <> :pending' : '#status = :only',
  )
  return ok
}

export const getWake = (table: Table, subject: string, id: string): Promise<Wake | undefined> =>
  get<Wake>(table, wakeKey(subject, id))

export type Wakes = { wakes: Wake[]; next: string | undefined }

/** The wakes of one subject, a page of them. */
export async function listWakes(
  table: Table,
  subject: string,
  limit: number,
  after?: string,
): Promise<Wakes> {
  const page = await query<Wake>(table, {
    condition: '#pk = :pk AND begins_with(#sk, :prefix)',
    values: { pk: wakeKey(subject, '').pk, prefix: wakePrefix },
    limit,
    ...(after !== undefined && { after: wakeKey(subject, after) }),
  })
  return { wakes: page.items, next: page.next && readWakeSk(page.next.sk) }
}

/** When what the wakes that are meant tell became so, in ms; both ends count. */
export type Period = { since: number; until: number }

/** All time. */
export const always: Period = { since: 0, until: Number.MAX_SAFE_INTEGER }

/** A tenant's failed wakes, a page of them: one shard of the list after the other, each from the oldest on. */
export async function listFailed(
  table: Table,
  tenant: string,
  { since, until }: Period,
  limit: number,
  after?: string,
): Promise<Wakes> {
  const wakes: Wake[] = []
  let { shard, key } = readPlace(after)
  while (shard < spread) {
    const page = await query<Key & { due: number }>(table, {
      index: dueIndex,
      condition: '#slot = :slot AND #due BETWEEN :since AND :until',
      values: { slot: failedSlot(tenant, shard), since, until },
      limit: limit - wakes.length,
      ...(key !== undefined && { after: key }),
    })
    const read = page.items.map(({ pk, sk }) => get<Wake>(table, { pk, sk }))
    const found = (await Promise.all(read)).filter(wake => wake !== undefined)
    wakes.push(...found.filter(wake => wake.status === 'failed'))
    key = page.next
    if (key === undefined) shard += 1
    if (wakes.length >= limit) break
  }
  return { wakes, next: shard < spread ? writePlace({ shard, key }) : undefined }
}

/** Where a list in several shards goes on. */
type Place = { shard: number; key: Key | undefined }

const writePlace = (place: Place): string => Buffer.from(JSON.stringify(place)).toString('base64url')

const readPlace = (after: string | undefined): Place =>
  after === undefined ? { shard: 0, key: undefined } : JSON.parse(Buffer.from(after, 'base64url').toString())
