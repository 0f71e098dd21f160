// Tells the subscribers of a watch what it shows: inbox entry first, then wakes, so that every wake is only a hint to read. Runs under the watch's lease.
import { eventType, type TaskState } from './a2a/task.ts'
import type { Subscription, Watch } from './model.ts'
import { entryIdOf, wakeIdOf, wants } from './policy.ts'
import { sendDeliver } from './queue.ts'
import { type Relay, within } from './relay.ts'
import { appendEntry } from './store/inbox.ts'
import { targetGroup } from './store/keys.ts'
import { getSubscription, isLive } from './store/subscriptions.ts'

/** Whom a watch concerns: those with a live subscription, and the refs of those whose subscription is over. */
export type Audience = { live: Subscription[]; gone: string[] }

/** Reads who is subscribed. */
export async function audienceOf(relay: Relay, watch: Watch): Promise<Audience> {
  const found = await Promise.all(watch.subs.map(ref => getSubscription(relay.table, ref)))
  const live = found.filter(sub => isLive(sub, relay.now()))
  const alive = new Set(live.map(sub => sub.ref))
  return { live, gone: watch.subs.filter(ref => !alive.has(ref)) }
}

/** True when somebody is to be told of this state. */
export const concerns = (audience: Audience, state: TaskState): boolean =>
  audience.live.some(sub => wants(sub, state) && (sub.client !== undefined || sub.targets.length > 0))

/**
 * Publishes the present revision to those who were not told it. May run again after a crash: entries and wakes have
 * the same ids then.
 */
export async function publish(relay: Relay, watch: Watch, audience: Audience): Promise<void> {
  const { state } = watch
  if (state === undefined) return
  const everybody = watch.rev > watch.woken
  const told = audience.live.filter(sub => (everybody || watch.fresh.includes(sub.ref)) && wants(sub, state))
  for (const sub of told) {
    const inside = within(relay, { trace: sub.traceparent })
    const seq = await enter(inside, watch, state, sub)
    for (const target of sub.targets) await wake(inside, watch, state, sub, target, seq)
  }
  relay.log({
    step: 'watch.published',
    tenant: watch.tenant,
    agent: watch.agent,
    task: watch.taskId,
    rev: watch.rev,
    state,
    told: told.length,
  })
}

async function enter(
  relay: Relay,
  watch: Watch,
  state: TaskState,
  sub: Subscription,
): Promise<number | undefined> {
  if (sub.client === undefined) return undefined
  const { tenant, agent, taskId, contextId, rev, changed } = watch
  const id = entryIdOf(watch, rev, sub.client)
  const entry = {
    id,
    type: eventType(state),
    agent,
    taskId,
    ...(contextId !== undefined && { contextId }),
    state,
    rev,
    at: changed,
    subscription: sub.id,
  }
  const seq = await appendEntry(relay.table, tenant, sub.client, entry, relay.now)
  relay.log({
    step: 'inbox.appended',
    tenant,
    subscription: sub.id,
    agent,
    task: taskId,
    rev,
    entry: id,
    seq,
  })
  return seq
}

async function wake(
  relay: Relay,
  watch: Watch,
  state: TaskState,
  sub: Subscription,
  target: string,
  seq: number | undefined,
): Promise<void> {
  const { tenant, agent, taskId, rev, changed } = watch
  const id = wakeIdOf(watch, rev, sub.ref, target)
  await sendDeliver(relay.queues, targetGroup(tenant, target), {
    v: 1,
    kind: 'wake',
    subject: watch.key,
    id,
    of: { sub: sub.ref, target, state, rev, at: changed, ...(seq !== undefined && { seq }) },
  })
  relay.log({ step: 'wake.queued', tenant, subscription: sub.id, agent, task: taskId, rev, wake: id, target })
}
