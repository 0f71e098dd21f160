// One look at one task: lease, GetTask, then what saving and failing make of the answer. Queues nothing itself.
import { getTask } from './a2a/client.ts'
import { isTerminal } from './a2a/task.ts'
import { type Ask, idsOf, type Looked } from './asking.ts'
import { endpointFor } from './calling.ts'
import { inTrouble } from './failing.ts'
import type { Subscription, Watch } from './model.ts'
import {
  covered,
  floorMs,
  isAhead,
  isOver,
  isSettled,
  isUnpublished,
  leaseMs,
  startAfter,
  waitMs,
  windowMs,
} from './policy.ts'
import { audienceOf } from './publish.ts'
import { type Relay, within } from './relay.ts'
import { save, tell } from './saving.ts'
import { getAgent } from './store/agents.ts'
import { bindSubscription } from './store/subscriptions.ts'
import { dropWatch, endWatch, leaseWatch, leaveWatch, openWatch } from './store/watches.ts'

/** Looks at a task unless that is needless now. */
export async function lookAt(relay: Relay, watch: Watch, ask: Ask): Promise<Looked> {
  const { cause } = ask
  const ahead = cause !== undefined && ask.patient === true && isAhead(cause.state, watch)
  // Only a look of its own binds an unbound subscription, however much is known already.
  const binds = ask.unbound !== undefined
  if (!binds && isOver(watch)) return { kind: 'shown' }
  if (
    !binds &&
    cause !== undefined &&
    !isUnpublished(watch) &&
    isSettled(watch, covered(watch, cause, ask.own === true))
  )
    return { kind: ahead ? 'ahead' : 'shown' }
  const now = relay.now()
  const wait = waitMs(watch, now)
  if (wait > 0) return { kind: 'waits', ms: wait }
  const leased = await leaseWatch(relay.table, watch, {
    now,
    start: startAfter(watch, now),
    until: now + leaseMs,
  })
  if (leased === undefined) return { kind: 'waits', ms: windowMs }
  return lookUnderLease(relay, leased, ask)
}

async function lookUnderLease(world: Relay, watch: Watch, ask: Ask): Promise<Looked> {
  const audience = await audienceOf(world, watch)
  const trace = world.trace ?? audience.live.find(sub => sub.traceparent !== undefined)?.traceparent
  const relay = within(world, { trace, parent: watch.parent })
  for (const ref of audience.gone) await leaveWatch(relay.table, watch.key, ref, relay.now())
  const ended = ask.unbound === undefined && isTerminal(watch.state)
  if ((isUnpublished(watch) || ended) && audience.live.length > 0) {
    // What a crash left untold, or a late subscriber waits for, comes first; the task itself is looked at after the window.
    await tell(relay, watch, audience)
    return ended ? { kind: 'shown' } : { kind: 'waits', ms: windowMs }
  }
  if (ask.unbound !== undefined) audience.live.push(ask.unbound)
  if (audience.live.length === 0) {
    await endWatch(relay.table, watch.key, relay.now())
    return { kind: 'dropped', why: 'nobody_subscribed' }
  }
  const agent = await getAgent(relay.table, watch.tenant, watch.agent)
  if (agent === undefined) return { kind: 'dropped', why: 'agent_gone' }
  const answer = await getTask(
    relay.net,
    await endpointFor(relay, agent, audience.live),
    watch.taskId,
    relay.now(),
  )
  if (!answer.ok) return inTrouble(relay, watch, agent, audience, answer, ask)
  relay.log({ step: 'task.looked', ...idsOf(watch), state: answer.task.state })
  if (ask.unbound === undefined) return save(relay, watch, agent, audience, answer.task, answer.bytes, ask)
  const bound = await bind(relay, watch, ask.unbound)
  if (bound === undefined) return { kind: 'dropped', why: 'bound_elsewhere' }
  return save(relay, bound, agent, audience, answer.task, answer.bytes, ask)
}

/** Binds the subscription to the task that the agent just confirmed, and puts it on the watch. */
async function bind(relay: Relay, watch: Watch, sub: Subscription): Promise<Watch | undefined> {
  const bound = await bindSubscription(relay.table, sub.ref, watch.taskId)
  if (bound === undefined) {
    await dropWatch(relay.table, watch.key, watch.lookAt)
    return undefined
  }
  const now = relay.now()
  relay.log({ step: 'subscription.bound', ...idsOf(watch), subscription: sub.id })
  const joined = await openWatch(relay.table, watch, { now, due: now + floorMs(0) }, sub.ref)
  // The lease stays the one that this look was begun under.
  return joined && { ...joined, lookAt: watch.lookAt, lease: watch.lease }
}
