// Keeps each client's feed: an entry takes a number, then its place; the reader never steps over a place that may still be taken.
import type { InboxEntry } from '../telling.ts'
import { entryPrefix, inboxEntryKey, inboxKey, readEntrySeq } from './keys.ts'
import { put, query, type Table, update } from './table.ts'

const keptSeconds = 30 * 24 * 60 * 60
/** How many entries back an append looks for itself, and how many if it may have been made long ago. */
const nearBack = 20
const farBack = 500
/** What is told for the first time is told within this, in ms: after a death, or to who joins, it is told later. */
const firstMs = 10_000
/**
 * After this a gap is closed by a void; a slower writer takes a new number. Longer than the SDK repeats a write, and
 * shorter than whoever publishes in a dead one's stead may come after it: a hint shall not point behind a gap.
 */
const gapMs = 5000
/** After this no writer can be left: what is missing has expired, and is stepped over. */
const overMs = 60_000

/** `before`: when the number before its own was taken, and with it every number of a gap below. */
type Stored = { sk: string; before: number; id?: string; void?: boolean } & Partial<InboxEntry> & {
    from?: Origin
  }

const ttlOf = (nowMs: number): number => Math.ceil(nowMs / 1000) + keptSeconds

const partition = (tenant: string, client: string): string => inboxKey(tenant, client).pk

const entries = (table: Table, pk: string, after: string, limit: number) =>
  query<Stored>(table, { condition: '#pk = :pk AND #sk > :after', values: { pk, after }, limit })

/**
 * Appends an entry once, as far back as it looks for itself: behind many others it stands again, under the same id.
 * @param now tells the time, in ms
 * @returns its number; the number it has already when it was appended before (a look that ran again after a crash)
 */
export async function appendEntry(
  table: Table,
  tenant: string,
  client: string,
  entry: Omit<InboxEntry, 'seq'> & { from: Origin },
  now: () => number,
): Promise<number> {
  const twin = await findTwin(table, partition(tenant, client), entry, now())
  if (twin !== undefined) return readEntrySeq(twin.sk)
  for (;;) {
    const taken = now()
    const counted = await update<{ seq: number; before: number }>(
      table,
      inboxKey(tenant, client),
      'SET #before = if_not_exists(#taken, :none), #taken = :taken ADD #seq :one',
      { one: 1, none: 0, taken },
    )
    const { seq = 0, before = 0 } = (counted.ok && counted.item) || {}
    const placed = await put(
      table,
      { ...inboxEntryKey(tenant, client, seq), ...entry, seq, before, ttl: ttlOf(taken) },
      'attribute_not_exists(#sk)',
    )
    if (placed.ok) return seq
  }
}

/** The same entry, if it was appended before. Nobody did before what it tells was so. */
async function findTwin(
  table: Table,
  pk: string,
  { id, at }: Pick<InboxEntry, 'id' | 'at'>,
  now: number,
): Promise<Stored | undefined> {
  const back = {
    condition: '#pk = :pk AND #sk > :after',
    values: { pk, after: entryPrefix },
    backwards: true,
  }
  const near = await query<Stored>(table, { ...back, limit: nearBack })
  const twin = near.items.find(item => item.id === id)
  const oldest = near.next && near.items.at(-1)
  if (twin !== undefined || oldest === undefined) return twin
  if (now - at < firstMs || oldest.before < at - overMs) return undefined
  const far = await query<Stored>(table, { ...back, limit: farBack, lazy: true })
  return far.items.find(item => item.id === id)
}

/** What an entry was told by: a watch at a revision or a step, for a subscription (its ref). Wakes of it have ids made of these. */
export type Origin = { watch: string; name: number | string; sub: string }

export type Feed = {
  entries: (InboxEntry & { from?: Origin })[]
  next: number
  /** Whether anything stands behind `next`, if only behind a gap. */
  more: boolean
}

/**
 * Reads on from a number. Stops before a gap that a slow writer may still fill, closes an older one, and steps
 * over one that expiry left, so that no later read finds an entry at or below a cursor that was given out.
 * @param after the last number the reader has
 * @returns entries in order, and the cursor to read on from
 */
export async function readInbox(
  table: Table,
  tenant: string,
  client: string,
  ask: { after: number; limit: number; now: number },
): Promise<Feed> {
  const pk = partition(tenant, client)
  const begin = inboxEntryKey(tenant, client, ask.after).sk
  // One more than is meant, to know whether any follows.
  const { items, next } = await entries(table, pk, begin, ask.limit + 1)
  const feed: Feed = { entries: [], next: ask.after, more: items.length > 0 }
  for (const [index, item] of items.slice(0, ask.limit).entries()) {
    const seq = readEntrySeq(item.sk)
    const age = ask.now - item.before
    const closed =
      seq === feed.next + 1 ||
      age > overMs ||
      (age > gapMs && (await closeGap(table, tenant, client, feed.next + 1, seq - 1, ask.now)))
    if (!closed) break
    const { void: isVoid, ...rest } = item
    if (!isVoid)
      feed.entries.push({ ...entryOf(rest), seq, ...(rest.from !== undefined && { from: rest.from }) })
    feed.next = seq
    feed.more = index < items.length - 1 || next !== undefined
  }
  return feed
}

/** Puts voids on free numbers; false when one was taken meanwhile, which the next read will then find. */
async function closeGap(
  table: Table,
  tenant: string,
  client: string,
  from: number,
  to: number,
  now: number,
): Promise<boolean> {
  for (let seq = from; seq <= to; seq++) {
    const { ok } = await put(
      table,
      {
        ...inboxEntryKey(tenant, client, seq),
        void: true,
        before: now,
        ttl: ttlOf(now),
      },
      'attribute_not_exists(#sk)',
    )
    if (!ok) return false
  }
  return true
}

const entryOf = (stored: Partial<InboxEntry>): Omit<InboxEntry, 'seq'> => ({
  id: stored.id ?? '',
  type: stored.type ?? '',
  agent: stored.agent ?? '',
  taskId: stored.taskId ?? '',
  ...(stored.contextId !== undefined && { contextId: stored.contextId }),
  ...(stored.state !== undefined && { state: stored.state }),
  rev: stored.rev ?? 0,
  ...(stored.tooLarge !== undefined && { tooLarge: stored.tooLarge }),
  at: stored.at ?? 0,
  subscription: stored.subscription ?? '',
  ...(stored.data !== undefined && { data: stored.data }),
})
