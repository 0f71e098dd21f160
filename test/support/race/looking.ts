// One look, step for step as shared/watching.ts, shared/saving.ts and shared/publish.ts make it, deciding by shared/policy.ts.
import { isNews, isTerminal, type Task, type TaskState } from '../../../shared/a2a/task.ts'
import type { Subscription } from '../../../shared/model.ts'
import {
  aheadTries,
  type Cause,
  compare,
  covered,
  entryIdOf,
  floorMs,
  isAhead,
  isOver,
  isSettled,
  isUnpublished,
  leaseMs,
  pollMs,
  startAfter,
  troubleMs,
  waitMs,
  wakeIdOf,
  wants,
  windowMs,
} from '../../../shared/policy.ts'
import { read } from './cells.ts'
import {
  appendEntry,
  bindSubscription,
  dropWatch,
  endWatch,
  leaseWatch,
  leaveWatch,
  markAgain,
  openWatch,
  publishedWatch,
  saveLook,
  saveTrouble,
} from './store.ts'
import type { Moment } from './story.ts'
import { longestDelayMs, type Work } from './timeline.ts'
import { cellOf, type Kept, type LookBody, type Me, type World } from './world.ts'

export type Ask = { cause?: Cause; patient?: boolean; unbound?: Subscription; fired?: boolean; own?: boolean }

export type Looked =
  | { kind: 'shown' }
  | { kind: 'waits'; ms: number }
  | { kind: 'ahead' }
  | { kind: 'dropped' }
  | { kind: 'trouble'; lasting: boolean; watched: boolean; afterMs: number }

type Audience = { live: Subscription[]; gone: string[] }
type Looking = { world: World; me: Me; ask: Ask; audience: Audience }

/** A lease that its holder may outlive: a function runs for 30 s. */
export const shortLeaseMs = 25_000

export const isLive = (sub: Subscription | undefined, now: number): sub is Subscription =>
  sub !== undefined && sub.status === 'active' && sub.expiresAt > now

export function* lookAt(world: World, me: Me, watch: Kept, ask: Ask): Work<Looked> {
  const { rules } = world
  const { cause } = ask
  const ahead = cause !== undefined && ask.patient === true && isAhead(cause.state, watch)
  const binds = rules.unboundLooks && ask.unbound !== undefined
  if (!binds && isOver(watch)) return { kind: 'shown' }
  const seen = rules.completed ? watch : { ...watch, looked: watch.lookAt }
  const untold = rules.publishFirst && isUnpublished(watch)
  if (!binds && cause !== undefined && !untold && isSettled(seen, covered(watch, cause, ask.own === true))) {
    if (!ahead) return { kind: 'shown' }
    if (rules.sharesLooks) return { kind: 'ahead' }
  }
  const now = me.now()
  const wait = waitMs(rules.fence ? watch : { ...watch, lease: 0 }, now)
  if (wait > 0) return { kind: 'waits', ms: wait }
  const at = { now, start: startAfter(watch, now), until: now + (rules.outlives ? leaseMs : shortLeaseMs) }
  const leased = yield* leaseWatch(world, watch, at)
  if (leased === undefined) return { kind: 'waits', ms: windowMs }
  return yield* lookUnderLease({ world, me, ask, audience: yield* audienceOf(world, me, leased) }, leased)
}

function* audienceOf(world: World, me: Me, watch: Kept): Work<Audience> {
  const live: Subscription[] = []
  for (const ref of watch.subs) {
    const sub = yield* read(cellOf(world.subs, ref))
    if (isLive(sub, me.now())) live.push(sub)
  }
  const alive = new Set(live.map(sub => sub.ref))
  return { live, gone: watch.subs.filter(ref => !alive.has(ref)) }
}

function* lookUnderLease(looking: Looking, watch: Kept): Work<Looked> {
  const { world, ask, audience } = looking
  for (const ref of audience.gone) yield* leaveWatch(world, ref)
  const untold = world.rules.publishFirst && isUnpublished(watch)
  const first = untold || (ask.unbound === undefined && isTerminal(watch.state))
  if (first && audience.live.length > 0) {
    yield* tell(looking, watch)
    const shown = ask.unbound === undefined && isTerminal(watch.state)
    return shown ? { kind: 'shown' } : { kind: 'waits', ms: windowMs }
  }
  if (ask.unbound !== undefined) audience.live.push(ask.unbound)
  if (audience.live.length === 0) {
    yield* endWatch(world)
    return { kind: 'dropped' }
  }
  const seen = yield* getTask(world)
  if (typeof seen === 'string') return yield* inTrouble(looking, watch, seen === 'not_found')
  if (ask.unbound === undefined) return yield* save(looking, watch, seen)
  const bound = yield* bind(looking, watch, ask.unbound)
  return bound === undefined ? { kind: 'dropped' } : yield* save(looking, bound, seen)
}

/** Asks the agent. A replica answers what was true some time ago. */
function* getTask(world: World): Work<Moment | 'not_found' | 'unreachable'> {
  const { chance, timeline, happens, story } = world
  yield chance.between(2, 60)
  world.counts.looks += 1
  if (happens('outage')) {
    yield chance.pick(chance.between(1, 50), 10_000)
    return 'unreachable'
  }
  const seen = story.at(timeline.now() - (happens('replica') ? chance.between(0, world.replicaMs) : 0))
  yield happens('slow') ? chance.between(400, 6000) : chance.between(2, 400)
  return seen ?? 'not_found'
}

function* bind({ world, me }: Looking, watch: Kept, sub: Subscription): Work<Kept | undefined> {
  const bound = yield* bindSubscription(world, sub.ref)
  if (!bound.ok) {
    yield* dropWatch(world, watch.lookAt)
    return undefined
  }
  const now = me.now()
  const joined = yield* openWatch(world, { now, due: now + floorMs(0) }, sub.ref)
  return joined && { ...joined, lookAt: watch.lookAt, lease: watch.lease }
}

const concerns = ({ live }: Audience, state: TaskState): boolean => live.some(sub => wants(sub, state))

/** Judges an answer, by as much of what is known as the rules heed. */
function judge({ rules }: World, { stamp, ...watch }: Kept, task: Task, now: number) {
  const dated = rules.stamps && stamp !== undefined ? { ...watch, stamp } : watch
  return compare(rules.ring ? dated : { ...dated, ring: [] }, task, now)
}

function* save(looking: Looking, watch: Kept, seen: Moment): Work<Looked> {
  const { world, me, ask, audience } = looking
  const { rules } = world
  const now = me.now()
  const { change, digest, ring } = judge(world, watch, seen.task, now)
  const isNew = change === 'new'
  const rev = isNew ? watch.rev + 1 : watch.rev
  const keeps = change === 'back' || (rules.endStays && change === 'none')
  const state = keeps ? watch.state : seen.state
  const told = isNew && concerns(audience, seen.state)
  // The snapshot, which decides nothing.
  if (told || (isNew && isNews(seen.state))) yield
  const changed = isNew ? now : watch.changed
  const publishes =
    told || watch.fresh.length > 0 || isTerminal(state) || (rules.publishFirst && isUnpublished(watch))
  const due = nextTimer(
    world,
    watch,
    now,
    change === 'back' && rules.backSoon ? now : changed,
    ask.fired === true,
  )
  const saved = yield* saveLook(world, watch, {
    ...(state !== undefined && { state }),
    digest: isNew ? digest : (watch.digest ?? digest),
    ring,
    rev,
    changed,
    woken: publishes ? watch.woken : rev,
    looked: watch.lookAt,
    lease: publishes ? watch.lease : 0,
    ...(isNew && seen.task.timestamp !== undefined && { stamp: seen.task.timestamp }),
    ...(change === 'back' && { backSince: watch.backSince ?? now }),
    ...(due !== undefined && { due }),
    shows: isNew ? seen.n : watch.shows,
  })
  if (saved === undefined) return { kind: 'waits', ms: windowMs }
  if (publishes) yield* tell(looking, saved)
  if (world.road === 'poll' && !isTerminal(saved.state)) {
    yield
    world.look.send({ kind: 'watch', looked: saved.looked }, pollMs(now - changed))
  }
  return ask.cause !== undefined && ask.patient === true && isAhead(ask.cause.state, saved)
    ? { kind: 'ahead' }
    : { kind: 'shown' }
}

function* tell(looking: Looking, watch: Kept): Work<void> {
  const { world } = looking
  const heard = looking.audience.live.map(sub => sub.ref)
  const told = world.rules.joiners ? watch.fresh.filter(ref => heard.includes(ref)) : watch.fresh
  const done = { told, over: isTerminal(watch.state) }
  if (!world.rules.queueFirst) yield* publishedWatch(world, watch, done)
  yield* publish(looking, watch)
  if (world.rules.queueFirst) yield* publishedWatch(world, watch, done)
}

/** Inbox entries first, then wakes. */
function* publish({ world, me, audience }: Looking, watch: Kept): Work<void> {
  const { state, rev, shows, changed } = watch
  if (state === undefined) return
  const everybody = watch.rev > watch.woken
  for (const sub of audience.live) {
    if (!(everybody || watch.fresh.includes(sub.ref)) || !wants(sub, state)) continue
    const client = sub.client ?? ''
    yield* appendEntry(world, me, client, { id: entryIdOf(watch, rev, client), rev, shows, at: changed })
    for (const target of sub.targets) {
      yield
      world.deliver.send({
        id: wakeIdOf(watch, rev, sub.ref, target),
        of: { sub: sub.ref, target, state, rev, shows },
      })
    }
  }
}

function nextTimer(
  { road }: World,
  watch: Kept,
  now: number,
  changed: number,
  fired: boolean,
): number | undefined {
  const silence = now - changed
  const next = now + (road === 'poll' ? 2 * pollMs(silence) + 5 * 60_000 : floorMs(silence))
  return fired || (watch.due !== undefined && next < watch.due) ? next : undefined
}

/** Queues a message for later, then marks that a look will come. */
export function* putOff(world: World, me: Me, body: LookBody, delayMs: number): Work<void> {
  const wholeMs = Math.ceil(Math.min(delayMs, longestDelayMs) / 1000) * 1000
  const mark = me.now() + wholeMs
  yield
  world.look.send(world.rules.marks ? { ...body, mark } : body, wholeMs)
  yield* markAgain(world, mark)
}

/** The agent did not answer. One chain of repeats, whatever the number of pushes. */
function* inTrouble({ world, me, ask }: Looking, watch: Kept, lasting: boolean): Work<Looked> {
  const now = me.now()
  const failures = (watch.failures ?? 0) + 1
  const afterMs = troubleMs(failures)
  if (watch.subs.length === 0) {
    yield* dropWatch(world, watch.lookAt)
    return { kind: 'trouble', lasting, watched: false, afterMs }
  }
  const due = ask.fired === true ? nextTimer(world, watch, now, watch.changed, true) : undefined
  yield* saveTrouble(world, watch, { failures, due })
  if ((watch.again <= now || ask.own === true) && (failures < 2 * aheadTries || world.road === 'poll'))
    yield* putOff(world, me, { kind: 'watch', looked: watch.looked }, afterMs)
  // The chain goes on for those who are on the watch; one that is not bound has only its push.
  const watched = ask.unbound === undefined || !world.rules.unboundLooks
  return { kind: 'trouble', lasting, watched, afterMs }
}
