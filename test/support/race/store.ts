// The writes of shared/store, condition for condition, on a model's cells. Each is one step.
import { isTerminal } from '../../../shared/a2a/task.ts'
import type { Subscription } from '../../../shared/model.ts'
import { type Written, write } from './cells.ts'
import { taskId } from './story.ts'
import type { Work } from './timeline.ts'
import { cellOf, type Entry, inboxOf, type Kept, type KeptWake, type Me, type World } from './world.ts'

/** Opens the watch, or finds it open; with a `ref` the subscription joins it. */
export function* openWatch(
  world: World,
  at: { now: number; due: number },
  ref?: string,
): Work<Kept | undefined> {
  const written = yield* write(
    world,
    world.watch,
    item => ref === undefined || item === undefined || !item.subs.includes(ref),
    item => {
      const open: Kept = item ?? {
        key: 'watch',
        tenant: 't',
        agent: 'a',
        principal: 'agent',
        taskId,
        created: at.now,
        changed: at.now,
        ...{
          subs: [],
          fresh: [],
          owed: [],
          ring: [],
          rev: 0,
          woken: 0,
          looked: 0,
          lookAt: 0,
          lease: 0,
          again: 0,
        },
        holds: 0,
        shows: -1,
      }
      const joined = ref === undefined ? [] : [ref]
      return {
        ...open,
        due: open.due ?? at.due,
        subs: [...open.subs, ...joined],
        fresh: [...open.fresh, ...joined],
      }
    },
  )
  return ref === undefined || written.item?.subs.includes(ref) ? written.item : undefined
}

const updateWatch = (
  world: World,
  when: (item: Kept) => boolean,
  change: (item: Kept) => Kept,
): Work<Written<Kept>> =>
  write(
    world,
    world.watch,
    item => item !== undefined && when(item),
    item => item && change(item),
  )

const without = (list: string[], gone: string[]): string[] => list.filter(one => !gone.includes(one))

export function* leaveWatch(world: World, ref: string): Work<void> {
  const left = yield* updateWatch(
    world,
    () => true,
    item => ({ ...item, subs: without(item.subs, [ref]), fresh: without(item.fresh, [ref]) }),
  )
  if (left.ok && left.item?.subs.length === 0) yield* endWatch(world)
}

export const endWatch = (world: World): Work<Written<Kept>> =>
  updateWatch(
    world,
    item => item.subs.length === 0,
    ({ due: _, ...item }) => item,
  )

export const dropWatch = (world: World, start: number): Work<Written<Kept>> =>
  write(
    world,
    world.watch,
    item => item !== undefined && item.subs.length === 0 && item.lookAt === start,
    () => undefined,
  )

let holders = 0

export function* leaseWatch(
  world: World,
  seen: Kept,
  at: { now: number; start: number; until: number },
): Work<Kept | undefined> {
  holders += 1
  const holder = holders
  const { ok, item } = yield* updateWatch(
    world,
    item => item.lookAt === seen.lookAt && (item.lease < at.now || !world.rules.fence),
    item => ({ ...item, lookAt: at.start, lease: at.until, holder }),
  )
  // Our own first attempt may have gone through, and somebody written something else before the second.
  return ok || item?.holder === holder ? item : undefined
}

/** What a look saves. Fields left out stay as they are, but `backSince` goes. */
export type Seen = Pick<
  Kept,
  'digest' | 'ring' | 'rev' | 'changed' | 'woken' | 'looked' | 'lease' | 'state' | 'stamp' | 'shows'
> & { backSince?: number; due?: number }

export function* saveLook(world: World, watch: Kept, seen: Seen): Work<Kept | undefined> {
  const { fence, timerStays } = world.rules
  const saved = yield* updateWatch(
    world,
    item => item.lookAt === watch.lookAt || !fence,
    ({ backSince: _, failures: __, due, ...item }) => {
      const stays = due !== undefined && (timerStays || !isTerminal(seen.state))
      return { ...item, ...(stays && { due }), ...seen, holds: 0 }
    },
  )
  return saved.ok ? saved.item : undefined
}

export function* saveTrouble(
  world: World,
  watch: Kept,
  fault: { failures: number; due: number | undefined },
): Work<void> {
  yield* updateWatch(
    world,
    item => item.lookAt === watch.lookAt,
    item => ({
      ...item,
      failures: fault.failures,
      lease: 0,
      ...(fault.due !== undefined && { due: fault.due }),
    }),
  )
}

export const publishedWatch = (
  world: World,
  watch: Kept,
  done: { told: string[]; over: boolean },
): Work<Written<Kept>> =>
  updateWatch(
    world,
    item => (item.lookAt === watch.lookAt && item.rev === watch.rev) || !world.rules.fence,
    ({ due, ...item }) => {
      const fresh = without(item.fresh, done.told)
      const stays = !done.over || (world.rules.joiners && fresh.length > 0)
      return { ...item, ...(due !== undefined && stays && { due }), woken: watch.rev, lease: 0, fresh }
    },
  )

export const markAgain = (world: World, again: number): Work<Written<Kept>> =>
  updateWatch(
    world,
    () => true,
    item => ({ ...item, again }),
  )

export const bindSubscription = (world: World, ref: string): Work<Written<Subscription>> =>
  write(
    world,
    cellOf(world.subs, ref),
    sub =>
      sub !== undefined && sub.status === 'active' && (sub.taskId === undefined || sub.taskId === taskId),
    sub => sub && { ...sub, taskId },
  )

/** Appends an entry once, by its number first and its place second. */
export function* appendEntry(
  world: World,
  me: Me,
  client: string,
  entry: Omit<Entry, 'before'>,
): Work<number> {
  const { counter, places } = inboxOf(world, client)
  yield
  for (const [seq, place] of places) if (place.item?.id === entry.id) return seq
  for (;;) {
    const taken = me.now()
    const counted = yield* write(
      world,
      counter,
      () => true,
      item => ({ seq: (item?.seq ?? 0) + 1, before: item?.taken ?? 0, taken }),
    )
    const { seq = 0, before = 0 } = counted.item ?? {}
    const placed = yield* write(
      world,
      cellOf(places, seq),
      item => item === undefined,
      () => ({ ...entry, before: world.rules.gapsAge ? before : me.now() }),
    )
    if (placed.ok) return seq
  }
}

export type Leased =
  | { kind: 'leased'; wake: KeptWake }
  | { kind: 'busy' }
  | { kind: 'done' }
  | { kind: 'early'; next: number }

export function* leaseWake(
  world: World,
  id: string,
  at: { now: number; until: number },
  seed?: KeptWake,
): Work<Leased> {
  const cell = cellOf(world.wakes, id)
  if (seed !== undefined) {
    const made = yield* write(
      world,
      cell,
      item => item === undefined,
      () => ({ ...seed, lease: at.until }),
    )
    if (made.ok) return { kind: 'leased', wake: { ...seed, lease: at.until } }
    if (made.item?.status !== 'pending') return { kind: 'done' }
  }
  const leased = yield* write(
    world,
    cell,
    item =>
      item?.status === 'pending' && item.lease < at.now && (item.next === undefined || item.next <= at.now),
    item => item && { ...item, lease: at.until },
  )
  if (leased.ok && leased.item !== undefined) return { kind: 'leased', wake: leased.item }
  if (leased.item?.status !== 'pending') return { kind: 'done' }
  return leased.item.lease >= at.now ? { kind: 'busy' } : { kind: 'early', next: leased.item.next ?? at.now }
}

/** What an attempt came to. A retry has a timer: a parked one its own time, one that rides on the queue a backstop. */
export type Outcome = Pick<KeptWake, 'status' | 'tries' | 'next'> & { parked?: boolean }

const backstopMs = 5 * 60_000

/** Records an attempt under its lease. */
export function* recordWake(
  world: World,
  id: string,
  wake: KeptWake,
  { parked = false, ...outcome }: Outcome,
): Work<boolean> {
  const due = outcome.next !== undefined && { due: outcome.next + (parked ? 0 : backstopMs) }
  const recorded = yield* write(
    world,
    cellOf(world.wakes, id),
    item => item?.lease === wake.lease,
    item => {
      if (item === undefined) return undefined
      const { next: _, due: __, ...rest } = item
      return { ...rest, ...outcome, ...due, holds: 0, lease: 0 }
    },
  )
  return recorded.ok
}
