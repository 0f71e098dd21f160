// The doors to the look queue and around it, step for step as functions/ has them: receive, look, tick, and the API's subscribing.
import { isNews, isTerminal } from '../../../shared/a2a/task.ts'
import type { Subscription } from '../../../shared/model.ts'
import {
  aheadTries,
  floorMs,
  holdMs,
  isOver,
  noticeTimerMs,
  ridesAlong,
  trailingMs,
  windowMs,
} from '../../../shared/policy.ts'
import { read, write } from './cells.ts'
import { isLive, type Looked, lookAt, putOff } from './looking.ts'
import { openWatch } from './store.ts'
import type { Moment } from './story.ts'
import type { Work } from './timeline.ts'
import { cellOf, type Kept, type LookBody, type Me, type World } from './world.ts'

type Handled = 'done' | 'again'
type NoticeBody = LookBody & { kind: 'notice' }
type WatchBody = LookBody & { kind: 'watch' }

export type Push = { key: string; sub: string; moment: Moment; memoryMs: number }

/** Takes a push. @returns whether it was answered with 2xx */
export function* receive(world: World, me: Me, push: Push): Work<boolean> {
  const at = me.now()
  const sub = yield* read(cellOf(world.subs, push.sub))
  if (!isLive(sub, at)) return false
  const { state } = push.moment
  const cell = cellOf(world.notices, push.key)
  const timer = world.rules.noticeTimers && (isNews(state) || sub.taskId === undefined)
  const due = at + noticeTimerMs
  const accepted = yield* write(
    world,
    cell,
    item => item === undefined || item.seenUntil < at,
    () => ({
      ...{ key: push.key, sub: push.sub, state, at, seenUntil: at + push.memoryMs, holds: 0 },
      ...(timer && { due }),
    }),
  )
  if (!accepted.ok) return true
  yield
  if (!world.happens('refused')) {
    world.look.send({ kind: 'notice', notice: push.key, timer, sub: push.sub, state, at })
    return true
  }
  if (timer || !world.rules.noticeTimers) return true
  yield* write(
    world,
    cell,
    item => item !== undefined,
    item => item && { ...item, due, holds: 0 },
  )
  return true
}

export function* look(world: World, me: Me, body: LookBody): Work<Handled> {
  if (body.kind === 'notice') return yield* lookForNotice(world, me, body)
  if (body.kind === 'watch') return yield* lookForWatch(world, me, body)
  const notice = yield* read(cellOf(world.notices, body.notice))
  if (notice === undefined) return 'done'
  const { sub, state, at } = notice
  return yield* lookForNotice(world, me, {
    kind: 'notice',
    notice: body.notice,
    timer: true,
    sub,
    state,
    at,
  })
}

function* lookForNotice(world: World, me: Me, body: NoticeBody): Work<Handled> {
  const sub = yield* read(cellOf(world.subs, body.sub))
  if (!isLive(sub, me.now())) return yield* settle(world, body)
  const unbound = sub.taskId === undefined
  const watch = yield* watchFor(world, me, sub, !unbound)
  if (watch === undefined) return yield* settle(world, body)
  const looked = yield* lookAt(world, me, watch, {
    cause: { at: body.at, state: body.state },
    own: isOwn(watch, body),
    patient: world.rules.patience && (body.tries ?? 0) < aheadTries,
    ...(unbound && { unbound: sub }),
  })
  return yield* afterNotice(world, me, { watch, body, unbound }, looked)
}

function* watchFor(world: World, me: Me, sub: Subscription, joins: boolean): Work<Kept | undefined> {
  const watch = yield* read(world.watch)
  if (watch !== undefined && (!joins || watch.subs.includes(sub.ref))) return watch
  const now = me.now()
  return yield* openWatch(world, { now, due: now + floorMs(0) }, joins ? sub.ref : undefined)
}

type Noticed = { watch: Kept; body: NoticeBody; unbound: boolean }

function* afterNotice(world: World, me: Me, noticed: Noticed, looked: Looked): Work<Handled> {
  const { watch, body, unbound } = noticed
  const tries = body.tries ?? 0
  switch (looked.kind) {
    case 'shown':
    case 'dropped':
      return yield* settle(world, body)
    case 'waits':
      if (!(unbound && world.rules.unboundLooks) && !isOwn(watch, body) && ridesAlong(watch, body, me.now()))
        return 'done'
      return yield* later(world, me, body, trailingMs(looked.ms, body))
    case 'ahead': {
      const at = world.rules.sharesLooks ? me.now() : body.at
      return yield* later(world, me, { ...body, tries: tries + 1, at }, windowMs * 2 ** tries)
    }
    case 'trouble':
      if (looked.lasting && tries >= aheadTries) return yield* settle(world, body)
      if (looked.watched) return looked.lasting ? yield* settle(world, body) : 'done'
      if (tries >= aheadTries) return 'done'
      return yield* later(world, me, { ...body, tries: tries + 1 }, looked.afterMs)
  }
}

function* lookForWatch(world: World, me: Me, body: WatchBody): Work<Handled> {
  const watch = yield* read(world.watch)
  if (watch === undefined) return 'done'
  if (body.looked !== undefined && body.looked !== watch.looked) return 'done'
  const own = isOwn(watch, body)
  const looked = yield* lookAt(world, me, watch, { fired: body.fired === true, own })
  const over = world.rules.lateWaits ? isOver(watch) : isTerminal(watch.state)
  if (looked.kind !== 'waits' || over) return 'done'
  if (watch.again >= me.now() && !own) return 'done'
  return yield* later(world, me, body, looked.ms)
}

function* later(world: World, me: Me, body: NoticeBody | WatchBody, delayMs: number): Work<Handled> {
  yield* putOff(world, me, body, delayMs)
  return 'done'
}

/** True when the mark of a trailing look is this message's own. */
const isOwn = (watch: Kept, { mark }: NoticeBody | WatchBody): boolean =>
  mark !== undefined && mark === watch.again

function* settle(world: World, body: NoticeBody): Work<Handled> {
  if (body.notice !== undefined && body.timer === true)
    yield* write(
      world,
      cellOf(world.notices, body.notice),
      item => item?.due !== undefined,
      item => {
        if (item === undefined) return undefined
        const { due: _, ...settled } = item
        return settled
      },
    )
  return 'done'
}

/** Queues whatever is due, then holds it. */
export function* tick(world: World, me: Me): Work<void> {
  world.counts.ticks += 1
  yield
  const now = me.now()
  for (const [name, cell] of world.notices)
    yield* queueAndHold(world, me, cell, now, () => world.look.send({ kind: 'pending', notice: name }))
  yield* queueAndHold(world, me, world.watch, now, () => world.look.send({ kind: 'watch', fired: true }))
  for (const [id, cell] of world.wakes)
    yield* queueAndHold(world, me, cell, now, () => world.deliver.send({ id }))
}

type Timed = { due?: number; holds: number }

function* queueAndHold<T extends Timed>(
  world: World,
  me: Me,
  cell: { item: (T & { req: number }) | undefined },
  now: number,
  queue: () => void,
): Work<void> {
  const seen = cell.item
  if (seen?.due === undefined || seen.due > now) return
  const { due, holds } = seen
  yield
  queue()
  const until = me.now() + holdMs(holds)
  yield* write(
    world,
    cell,
    item => item?.due === due,
    item => item && { ...item, due: until, holds: holds + 1 },
  )
}

/** Makes a subscription live and has the agent push to it, as the API does; whoever asked has its 2xx at the end. */
export function* subscribe(world: World, me: Me, sub: Subscription): Work<void> {
  yield* write(
    world,
    cellOf(world.subs, sub.ref),
    item => item === undefined,
    () => sub,
  )
  if (sub.taskId === undefined) {
    world.pushed.add(sub.ref)
    return
  }
  const now = me.now()
  yield* openWatch(world, { now, due: now + floorMs(0) }, sub.ref)
  yield world.chance.between(5, 300)
  world.pushed.add(sub.ref)
  yield world.chance.between(5, 300)
  yield
  world.look.send({ kind: 'watch' })
}
