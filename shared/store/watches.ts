// Keeps watches: what we know of a task, who is to be told, and the lease that lets one look at a time save. What it saves is looks.ts's.
import { limits } from '../limits.ts'
import type { Subscription, Watch } from '../model.ts'
import { agentGroup, slotOf, watchKey, watchOf } from './keys.ts'
import { get, remove, type Table, update } from './table.ts'
import { below, pointAt, readParent, writeParent } from './trees.ts'

/** How long a watch is kept after it ended: so long the same end is the same wake. */
export const keptSeconds = 400 * 24 * 60 * 60
/** Principal of subscriptions that name none. */
export const usualPrincipal = 'agent'

/** A watch as its item holds it: DynamoDB has no empty sets. */
export type Stored = Omit<Watch, 'subs' | 'fresh' | 'owed'> & {
  subs?: Set<string>
  fresh?: Set<string>
  owed?: Set<string>
  /** States that signed pushes named and whose dispute was owed or told, alone and with the ref of each whom that was. */
  disputed?: Set<string>
  /** Mark of the lease's holder: two may lease in the same millisecond. */
  holder?: string
}

/** The watch that an item holds. */
export const read = (key: string, { subs, fresh, owed, disputed: _, ...stored }: Stored): Watch => ({
  ...stored,
  key,
  subs: [...(subs ?? [])],
  fresh: [...(fresh ?? [])],
  owed: [...(owed ?? [])],
})

export async function getWatch(table: Table, watch: string): Promise<Watch | undefined> {
  const stored = await get<Stored>(table, watchKey(watch))
  return stored && read(watch, stored)
}

export type Watched = {
  tenant: string
  agent: string
  principal: string
  taskId: string
  /** The task that it was delegated from, as `agent/task`. */
  parent?: string
  /** Whoever joins wants the content of unfinished work withheld. */
  withheld?: true
}

/** A task as a subscription sees it. */
export const watchedBy = (
  { tenant, agent, principal, parentTask, partialWork }: Subscription,
  taskId: string,
): Watched => ({
  ...{ tenant, agent, principal, taskId },
  ...(partialWork === 'withhold' && { withheld: true }),
  ...(parentTask !== undefined && { parent: writeParent(parentTask) }),
})

/**
 * Opens a watch, or finds it open, and gives it a timer if it has none. With a `ref` the subscription joins it and
 * is marked as not yet told; joining twice changes nothing.
 * @returns undefined when the watch has its full number of subscriptions
 */
export async function openWatch(
  table: Table,
  { tenant, agent, principal, taskId, parent: named, withheld }: Watched,
  at: { now: number; due: number },
  ref?: string,
): Promise<Watch | undefined> {
  const watch = watchOf(tenant, agent, principal, taskId)
  const key = watchKey(watch)
  // Only a subscription that joins says where the task stands: one that was pushed to may not be bound to it.
  const parent = ref === undefined ? undefined : named
  const withholds = ref !== undefined && withheld === true
  const once = ['tenant', 'agent', 'principal', 'taskId', 'group', 'created', 'changed', 'slot', 'due']
  const zeros = ['rev', 'woken', 'looked', 'lookAt', 'lease', 'again', 'holds']
  const set = [
    ...once.map(name => `#${name} = if_not_exists(#${name}, :${name})`),
    ...zeros.map(name => `#${name} = if_not_exists(#${name}, :zero)`),
    '#ring = if_not_exists(#ring, :none)',
    ...(parent === undefined ? [] : ['#parent = if_not_exists(#parent, :parent)']),
    ...(withholds ? ['#withheld = :withheld'] : []),
  ].join(', ')
  // The watch of the usual principal is found by its name; others are listed, so that a task's are known.
  if (ref !== undefined && principal !== usualPrincipal)
    await pointAt(
      table,
      { tenant, listing: { kind: 'tasks', by: 'agent', of: agent, task: taskId }, id: principal },
      watch,
      at.now,
    )
  const above = readParent(parent ?? '')
  if (above !== undefined) await pointAt(table, { tenant, listing: below(above), id: watch }, watch, at.now)
  const written = await update<Stored>(
    table,
    key,
    `SET ${set} REMOVE #ttl${ref === undefined ? '' : ' ADD #subs :ref, #fresh :ref'}`,
    {
      tenant,
      agent,
      principal,
      taskId,
      group: agentGroup(tenant, agent),
      created: at.now,
      changed: at.now,
      slot: slotOf(key.pk, table.shards),
      due: at.due,
      zero: 0,
      none: [],
      ...(parent !== undefined && { parent }),
      ...(withholds && { withheld }),
      ...(ref !== undefined && { ref: new Set([ref]), refText: ref, limit: limits.subscriptionsOfTask }),
    },
    ref === undefined
      ? undefined
      : 'attribute_not_exists(#subs) OR (NOT contains(#subs, :refText) AND size(#subs) < :limit)',
  )
  const stored = written.ok ? written.item : written.old
  if (stored === undefined) return undefined
  const result = read(watch, stored)
  return ref === undefined || result.subs.includes(ref) ? result : undefined
}

/** Takes a subscription off; the watch ends with its last one. */
export async function leaveWatch(table: Table, watch: string, ref: string, now: number): Promise<void> {
  const left = await update<Stored>(
    table,
    watchKey(watch),
    'DELETE #subs :ref, #fresh :ref',
    { ref: new Set([ref]) },
    'attribute_exists(#pk)',
  )
  if (!left.ok || left.item === undefined) return
  const { rev, alarms, lost, subs } = left.item
  // It was told as a task that is not to be had: whoever has it listed yet does not begin with it anew at once.
  if (rev === 0 && alarms?.[ref] !== undefined) await noteLost(table, { key: watch, lost }, ref, now)
  if (subs === undefined) await endAnyLook(table, watch, now)
}

/** Notes when the agent last showed nothing of the task to whoever was taken off it. Of two at the same time one is noted. */
export const noteLost = (
  table: Table,
  { key, lost }: { key: string; lost?: Watch['lost'] | undefined },
  ref: string,
  now: number,
) =>
  update<Stored>(
    table,
    watchKey(key),
    'SET #lost = :lost',
    { lost: { ...lost, [ref]: now } },
    'attribute_exists(#pk)',
  )

/** What is known of a look that failed. Whoever comes later begins anew, with what the agent says then. */
export const troubled = [
  'trouble',
  'troubleSince',
  'lasting',
  'failures',
  'alarms',
  'expired',
  'restored',
  'tried',
  'raised',
] as const

/** What of it was told: only the task itself takes it back, not an older answer. */
export const alarmed: ReadonlySet<string> = new Set(['lasting', 'alarms'])

/** Ends a watch nobody is subscribed to: no timer, nothing to be told or asked for, kept for a while. Somebody who joins meanwhile wins. */
export const endWatch = (table: Table, watch: string, now: number) => end(table, watch, now, '')

/** The same, and a look under way saves nothing to it any more: what it met is none of theirs who come later. */
const endAnyLook = (table: Table, watch: string, now: number) =>
  end(table, watch, now, ', #lookAt = #lookAt + :one, #lease = :none')

const end = (table: Table, watch: string, now: number, more: string) =>
  update<Stored>(
    table,
    watchKey(watch),
    `SET #ttl = :ttl, #woken = if_not_exists(#rev, :none)${more} REMOVE #slot, #due, #owed, #disputed, #cancel, #overdueCancel, ${troubled.map(name => `#${name}`).join(', ')}`,
    { ttl: Math.ceil(now / 1000) + keptSeconds, none: 0, ...(more !== '' && { one: 1 }) },
    'attribute_exists(#pk) AND attribute_not_exists(#subs)',
  )

/**
 * Gives up a watch that was leased for a push which nothing came of, and its lease in any case. What is known from before
 * is kept, so that nobody is told the same again as another revision. Somebody who is on it wins.
 */
export async function dropWatch(table: Table, watch: Watch, now: number): Promise<void> {
  const { key, rev, lost, lookAt: start } = watch
  if (rev > 0 || lost !== undefined) await endWatch(table, key, now)
  else if (await remove(table, watchKey(key), 'attribute_not_exists(#subs) AND #lookAt = :start', { start }))
    return
  await freeWatch(table, watch)
}

/**
 * Leases the watch for one look. Of two that read the same state one gets it.
 * @param start must be later than `seen.lookAt`; it is the fence of everything saved under this lease
 */
export async function leaseWatch(
  table: Table,
  seen: Watch,
  at: { now: number; start: number; until: number },
): Promise<Watch | undefined> {
  const holder = table.nonce()
  const leased = await update<Stored>(
    table,
    watchKey(seen.key),
    'SET #lookAt = :start, #lease = :until, #holder = :holder',
    { ...at, seen: seen.lookAt, holder },
    '#lookAt = :seen AND #lease < :now',
  )
  const item = leased.ok ? leased.item : leased.old
  // Our own first attempt went through, and somebody wrote something else before the SDK's second.
  const ours = leased.ok || item?.holder === holder
  return ours && item ? read(seen.key, item) : undefined
}

/** Ends a lease under which nothing came to be saved. */
export const freeWatch = (table: Table, watch: Watch) =>
  update<Stored>(
    table,
    watchKey(watch.key),
    'SET #lease = :zero',
    { zero: 0, start: watch.lookAt },
    '#lookAt = :start',
  )

/** Moves a timer to an earlier time, or one that fired to a later one; whoever moved it further, or took it off, wins. */
export const timeWatch = (table: Table, watch: string, due: number, now: number) =>
  update<Stored>(
    table,
    watchKey(watch),
    'SET #due = :due',
    { due, now },
    'attribute_exists(#slot) AND (#due > :due OR #due <= :now)',
  )

/**
 * Gives the watch of an ended task a timer again that fires now, if somebody is on it and it has none.
 * @returns false when a look holds it: what that read before would take the timer off again
 */
export async function retimeWatch(table: Table, { key }: Watch, now: number): Promise<boolean> {
  const timed = await update<Stored>(
    table,
    watchKey(key),
    'SET #slot = :slot, #due = :now',
    { slot: slotOf(watchKey(key).pk, table.shards), now },
    'attribute_exists(#subs) AND attribute_not_exists(#slot) AND #lease < :now',
  )
  return timed.ok || timed.old?.subs === undefined || timed.old.lease < now
}

/**
 * Owes a step that no look found, and gives the watch a timer if it has none, so that it is told even if nothing else
 * happens. The same step again changes nothing.
 * @param at.disputed marks that it leaves, so that the same is not owed as another step: only if the first of them is new
 */
export const oweStep = (
  table: Table,
  watch: string,
  step: string,
  { due, disputed: [mark, ...more] = [] }: { due: number; disputed?: string[] },
) =>
  update<Stored>(
    table,
    watchKey(watch),
    `SET #slot = if_not_exists(#slot, :slot), #due = if_not_exists(#due, :due) ADD #owed :steps${mark === undefined ? '' : ', #disputed :marks'}`,
    {
      steps: new Set([step]),
      slot: slotOf(watchKey(watch).pk, table.shards),
      due,
      ...(mark !== undefined && { marks: new Set([mark, ...more]), mark }),
    },
    `attribute_exists(#pk)${mark === undefined ? '' : ' AND (attribute_not_exists(#disputed) OR NOT contains(#disputed, :mark))'}`,
  )

/**
 * Marks that a trailing look is queued. It was queued first: a mark without a message would lose the edge.
 * @param sub whose push it is for, if for one
 */
export const markAgain = (table: Table, watch: string, again: number, sub: string | undefined) =>
  update<Stored>(
    table,
    watchKey(watch),
    `SET #again = :again${sub === undefined ? ' REMOVE #againFor' : ', #againFor = :sub'}`,
    { again, sub },
    'attribute_exists(#pk)',
  )
