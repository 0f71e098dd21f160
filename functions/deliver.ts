// The door of the deliver queue: leases a wake, sends it by its target's channel, records the attempt, and acts on the verdict.
import { eventType } from '../shared/a2a/task.ts'
import { type Outcome, retryAfterMs } from '../shared/channels/channel.ts'
import { sendWebhook } from '../shared/channels/webhook.ts'
import { DeliverMessage } from '../shared/messages.ts'
import type { Subscription, Target, Wake, Watch } from '../shared/model.ts'
import { writeWakeId } from '../shared/names.ts'
import { leaseMs, wants } from '../shared/policy.ts'
import { longestDelayMs, sendDeliver } from '../shared/queue.ts'
import type { Relay } from '../shared/relay.ts'
import { targetGroup } from '../shared/store/keys.ts'
import { getSubscription, isLive } from '../shared/store/subscriptions.ts'
import { disableTarget, getTarget } from '../shared/store/targets.ts'
import { leaseWake, type Outcome as Recorded, recordWake } from '../shared/store/wakes.ts'
import { getWatch } from '../shared/store/watches.ts'
import { openSecrets } from '../shared/targets.ts'
import { eachRecord, type Handled, onLambda, type QueueHandler } from './lambda.ts'

export const door = (relay: Relay): QueueHandler =>
  eachRecord(relay, async body => {
    const message = DeliverMessage.parse(body)
    const watch = await getWatch(relay.table, message.subject)
    if (watch === undefined) return 'done'
    const now = relay.now()
    const seed = message.of && seedOf(watch, message.subject, message.id, message.of)
    const at = { now, until: now + leaseMs }
    const leased = await leaseWake(relay.table, message.subject, message.id, at, seed)
    switch (leased.kind) {
      case 'done':
        return 'done'
      // The holder may have died with the message in hand: only the queue may forget it.
      case 'busy':
        return 'again'
      case 'early':
        await sendDeliver(relay.queues, groupOf(watch.tenant, message), message, leased.next - now)
        return 'done'
      case 'leased':
        return attempt(relay, watch, message, leased.wake)
    }
  })

export const handler = onLambda('deliver', door)

function seedOf(watch: Watch, subject: string, id: string, of: NonNullable<DeliverMessage['of']>): Wake {
  const { tenant, agent, taskId, contextId } = watch
  return {
    id: writeWakeId(subject, id),
    tenant,
    agent,
    taskId,
    ...(contextId !== undefined && { contextId }),
    sub: of.sub,
    target: of.target,
    type: eventType(of.state),
    state: of.state,
    rev: of.rev,
    ...(of.seq !== undefined && { seq: of.seq }),
    at: of.at,
    status: 'pending',
    attempts: [],
    tries: 0,
    lease: 0,
  }
}

const groupOf = (tenant: string, message: DeliverMessage): string =>
  message.of === undefined ? message.subject : targetGroup(tenant, message.of.target)

async function attempt(relay: Relay, watch: Watch, message: DeliverMessage, wake: Wake): Promise<Handled> {
  const end = (recorded: Recorded): Promise<Handled> => record(relay, message, wake, recorded)
  const sub = await getSubscription(relay.table, wake.sub)
  if (!isLive(sub, relay.now())) return end({ status: 'dropped', tries: wake.tries })
  if (isSuperseded(watch, sub, wake)) return end({ status: 'superseded', tries: wake.tries })
  const target = await getTarget(relay.table, wake.tenant, wake.target)
  if (target === undefined || target.status === 'disabled')
    return end({ status: 'dropped', tries: wake.tries })
  const begun = relay.now()
  const outcome = await send(relay, target, wake)
  relay.log({ step: 'wake.sent', ...idsOf(wake), verdict: outcome.kind, status: outcome.status })
  if (outcome.kind === 'disable')
    await disableTarget(relay.table, target.tenant, target.target, target.generation, outcome.reason)
  return end(settle(relay, wake, outcome, begun))
}

/** True when a newer revision, which this subscription wants too, was published: it tells all that this one would. */
const isSuperseded = (watch: Watch, sub: Subscription, wake: Wake): boolean =>
  watch.rev > wake.rev && watch.woken === watch.rev && watch.state !== undefined && wants(sub, watch.state)

async function send(relay: Relay, target: Target, wake: Wake): Promise<Outcome> {
  const { tenant, agent, taskId, contextId, state, rev, seq, type, at } = wake
  return sendWebhook({
    net: relay.net,
    url: target.url,
    secrets: await openSecrets(relay, target),
    id: wake.id,
    // The same bytes at every attempt: a receiver may compare them.
    body: JSON.stringify({
      type,
      timestamp: new Date(at).toISOString(),
      data: { tenant, target: target.target, wakeId: wake.id, seq, agent, taskId, contextId, state, rev },
    }),
    nowMs: relay.now(),
  })
}

/** Turns an attempt's outcome into what is recorded of the wake. */
function settle(relay: Relay, wake: Wake, outcome: Outcome, begun: number): Recorded {
  const tries = wake.tries + 1
  const attempt = {
    at: begun,
    verdict: outcome.kind,
    ...('reason' in outcome && { reason: outcome.reason }),
    ...(outcome.status !== undefined && { status: outcome.status }),
    milliseconds: relay.now() - begun,
    ...(outcome.answer !== undefined && { answer: outcome.answer }),
  }
  if (outcome.kind === 'delivered') return { status: 'delivered', attempt, tries }
  if (outcome.kind !== 'retry' && outcome.kind !== 'config') return { status: 'failed', attempt, tries }
  const share = (relay.random(1)[0] ?? 0) / 256
  const wish = outcome.kind === 'retry' ? outcome.afterMs : undefined
  const after = retryAfterMs(tries, share, wish)
  if (after === undefined) return { status: 'failed', attempt, tries }
  return { status: 'pending', attempt, tries, next: relay.now() + after, parked: after > longestDelayMs }
}

/** Records first, queues second: a crash between leaves the message, which then finds the record's own time. */
async function record(
  relay: Relay,
  message: DeliverMessage,
  wake: Wake,
  recorded: Recorded,
): Promise<Handled> {
  const mine = await recordWake(relay.table, message.subject, message.id, wake, recorded)
  const { status, tries, attempt } = recorded
  relay.log({ step: 'wake.recorded', ...idsOf(wake), status, tries, verdict: attempt?.verdict })
  if (!mine || recorded.next === undefined || recorded.parked === true) return 'done'
  const { subject, id } = message
  const group = targetGroup(wake.tenant, wake.target)
  await sendDeliver(relay.queues, group, { v: 1, kind: 'wake', subject, id }, recorded.next - relay.now())
  return 'done'
}

const idsOf = (wake: Wake) => ({
  tenant: wake.tenant,
  agent: wake.agent,
  task: wake.taskId,
  wake: wake.id,
  target: wake.target,
  rev: wake.rev,
})
