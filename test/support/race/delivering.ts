// The door of the deliver queue, step for step as functions/deliver.ts has it: lease, send, record.
import { retryAfterMs } from '../../../shared/channels/channel.ts'
import type { Subscription } from '../../../shared/model.ts'
import { leaseMs, wants } from '../../../shared/policy.ts'
import { read } from './cells.ts'
import { isLive, shortLeaseMs } from './looking.ts'
import { leaseWake, type Outcome, recordWake } from './store.ts'
import { longestDelayMs, type Work } from './timeline.ts'
import {
  cellOf,
  type DeliverBody,
  type Entry,
  inboxOf,
  type Kept,
  type KeptWake,
  type Me,
  type World,
} from './world.ts'

type Handled = 'done' | 'again'

export function* deliver(world: World, me: Me, body: DeliverBody): Work<Handled> {
  const watch = yield* read(world.watch)
  if (watch === undefined) return 'done'
  const now = me.now()
  const seed: KeptWake | undefined = body.of && {
    ...body.of,
    status: 'pending',
    lease: 0,
    tries: 0,
    holds: 0,
  }
  const until = now + (world.rules.outlives ? leaseMs : shortLeaseMs)
  const leased = yield* leaseWake(world, body.id, { now, until }, seed)
  if (leased.kind === 'done') return 'done'
  if (leased.kind === 'busy') return 'again'
  if (leased.kind === 'leased') return yield* attempt(world, me, watch, body, leased.wake)
  yield
  world.deliver.send(body, leased.next - now)
  return 'done'
}

function* attempt(world: World, me: Me, watch: Kept, body: DeliverBody, wake: KeptWake): Work<Handled> {
  const end = (outcome: Outcome): Work<Handled> => record(world, me, body, wake, outcome)
  const sub = yield* read(cellOf(world.subs, wake.sub))
  if (!isLive(sub, me.now())) return yield* end({ status: 'dropped', tries: wake.tries })
  const newer = watch.rev > wake.rev && watch.woken === watch.rev
  if (newer && watch.state !== undefined && wants(sub, watch.state))
    return yield* end({ status: 'superseded', tries: wake.tries })
  // Its target's record, and the call.
  yield
  yield world.chance.of(0.9) ? undefined : world.chance.between(200, 15_000)
  const heard = !world.happens('unheard')
  hint(world, body.id, sub, wake, heard)
  const tries = wake.tries + 1
  if (heard) return yield* end({ status: 'delivered', tries })
  const after = retryAfterMs(tries, 0.5)
  if (after === undefined) return yield* end({ status: 'failed', tries })
  const next = me.now() + after
  return yield* end({ status: 'pending', tries, next, parked: after > longestDelayMs })
}

function hint(world: World, id: string, sub: Subscription, { rev, shows }: KeptWake, heard: boolean): void {
  const at = world.timeline.now()
  const found = readInbox(world, sub.client ?? '', at).some(entry => entry.rev === rev)
  world.note(() => `${heard ? 'heard' : 'unheard'} hint to ${sub.ref}: rev ${rev}, state ${shows}`)
  world.hints.push({ id, sub: sub.ref, rev, shows, at, heard, found })
}

const gapMs = 10_000

/** All that a reader is shown who starts now: up to a gap that a slow writer may still fill. */
function readInbox(world: World, client: string, now: number): Entry[] {
  const entries: Entry[] = []
  let next = 1
  for (const [seq, { item }] of [...inboxOf(world, client).places].sort(([a], [b]) => a - b)) {
    if (item === undefined) continue
    if (seq > next && now - item.before <= gapMs) break
    entries.push(item)
    next = seq + 1
  }
  return entries
}

function* record(world: World, me: Me, body: DeliverBody, wake: KeptWake, outcome: Outcome): Work<Handled> {
  const mine = yield* recordWake(world, body.id, wake, outcome)
  if (!mine || outcome.next === undefined || outcome.parked === true) return 'done'
  yield
  world.deliver.send({ id: body.id }, outcome.next - me.now())
  return 'done'
}
