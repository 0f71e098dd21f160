// The door of the deliver queue: leases a wake, sends it by its target's channel, records the attempt, and acts on the verdict.

import { eventType } from '../shared/a2a/task.ts'
import { type Outcome, retryAfterMs } from '../shared/channels/channel.ts'
import { drawShare } from '../shared/clock.ts'
import { enter, leave, leaveUnused } from '../shared/gate.ts'
import { DeliverMessage, type TargetMessage, type WakeMessage } from '../shared/messages.ts'
import type { Watch } from '../shared/model.ts'
import { writeWakeId } from '../shared/names.ts'
import { leaseMs, waitersOf } from '../shared/policy.ts'
import { longestDelayMs, sendDeliver } from '../shared/queue.ts'
import { type Relay, within } from '../shared/relay.ts'
import { resumeTarget } from '../shared/resuming.ts'
import { sendWake } from '../shared/sending.ts'
import { handOn, needlessness } from '../shared/speaking.ts'
import { targetGroup } from '../shared/store/keys.ts'
import { noteRetry } from '../shared/store/retries.ts'
import { getSubscription } from '../shared/store/subscriptions.ts'
import { getTarget } from '../shared/store/targets.ts'
import { leaseWake, recordWake, type Standing } from '../shared/store/wakes.ts'
import { getWatch } from '../shared/store/watches.ts'
import type { Wake } from '../shared/telling.ts'
import { traceIdOf } from '../shared/trace.ts'
import { eachRecord, type Handled, onLambda, type QueueHandler } from './lambda.ts'

export const door = (world: Relay): QueueHandler =>
  eachRecord(world, async (body, mention) => {
    const message = DeliverMessage.parse(body)
    if (message.kind === 'target') return lookAfter(world, message)
    const watch = message.of?.about === undefined ? await getWatch(world.table, message.subject) : undefined
    const relay = within(world, { trace: message.trace, parent: watch?.parent })
    mention({
      ...traceOf(message),
      ...(watch && taskOf(watch)),
      wake: writeWakeId(message.subject, message.id),
    })
    const now = relay.now()
    const seed = message.of && seedOf(watch, message, message.of)
    if (message.of !== undefined && seed === undefined) return 'done'
    const at = { now, until: now + leaseMs }
    const leased = await leaseWake(relay.table, message.subject, message.id, at, seed)
    switch (leased.kind) {
      case 'done':
        return 'done'
      // The holder may have died with the message in hand: only the queue may forget it.
      case 'busy':
        return 'again'
      case 'early': {
        const { tenant, target } = leased.wake
        await sendDeliver(relay.queues, targetGroup(tenant, target), message, leased.next - now)
        return 'done'
      }
      case 'leased':
        return attempt(relay, watch, message, leased.wake)
    }
  })

/** A retry that is further away than this is called back when its target is well before. */
const notedMs = 60_000
/** How soon a wake is tried again that met an address which was replaced meanwhile. */
const outdatedMs = 1000
/** Clocks may be so far apart. */
const apartMs = 2000

export const handler = onLambda('deliver', door)

async function lookAfter(relay: Relay, { tenant, target }: TargetMessage): Promise<Handled> {
  await resumeTarget(relay, { tenant, target })
  return 'done'
}

/** The record that a first message makes; undefined when there is nothing that it could be about. */
function seedOf(
  watch: Watch | undefined,
  { subject, id }: WakeMessage,
  of: NonNullable<WakeMessage['of']>,
): Wake | undefined {
  const { tenant: named, type, ...facts } = of
  const tenant = watch?.tenant ?? named
  if (tenant === undefined) return undefined
  return {
    ...facts,
    id: writeWakeId(subject, id),
    tenant,
    ...(watch !== undefined && { agent: watch.agent, taskId: watch.taskId }),
    ...(watch?.contextId !== undefined && { contextId: watch.contextId }),
    type: type ?? eventType(of.state ?? 'unknown'),
    status: 'pending',
    attempts: [],
    tries: 0,
    lease: 0,
  }
}

async function attempt(
  world: Relay,
  watch: Watch | undefined,
  message: WakeMessage,
  wake: Wake,
): Promise<Handled> {
  const target = await getTarget(world.table, wake.tenant, wake.target)
  const entered =
    target?.status === 'active' ? await enter(world, target, wake.turns ?? 0, wake.id) : undefined
  // Read last: deletion means that no wake is sent from then on.
  const sub = wake.sub === undefined ? undefined : await getSubscription(world.table, wake.sub)
  const relay = within(world, { trace: sub?.traceparent })
  const end = (standing: Standing): Promise<Handled> => record(relay, message, wake, standing)
  if (target === undefined) return end({ status: 'dropped' })
  const waiters = waitersOf(sub, message.subject, wake)
  const needless = needlessness(watch, sub, wake, relay.now())
  if (needless !== undefined) {
    if (wake.speaks) await handOn(relay, target, { waiters, at: wake.at })
    if (entered?.kind === 'inside') await leaveUnused(relay, target, entered)
    return end({ status: needless })
  }
  // It may be enabled again: then what failed can be redriven.
  if (entered === undefined) return end({ status: 'failed' })
  const waits = (): Standing => ({ status: 'pending', waiters, waits: relay.now() })
  if (entered.kind === 'paused') return end(waits())
  if (entered.kind === 'full') return end({ ...later(relay, entered.waitMs), turns: (wake.turns ?? 0) + 1 })
  const begun = relay.now()
  const outcome = await sendWake(relay, target, wake)
  relay.log({ step: 'wake.sent', ...idsOf(wake), verdict: outcome.kind, status: outcome.status })
  const spoke = { waiters, at: wake.at, before: begun - apartMs }
  const left = await leave(relay, target, entered, outcome, spoke)
  const standing = standingAfter(relay, wake, outcome, begun)
  // Its new address has not been asked yet.
  if (left === 'outdated')
    return end({ ...later(relay, outdatedMs), ...(standing.attempt && { attempt: standing.attempt }) })
  // A probe asks for the target, not for the wake: if it fails it uses up no try.
  const probing = 'probe' in entered.by && (outcome.kind === 'retry' || outcome.kind === 'config')
  if (probing) return end({ ...waits(), ...(standing.attempt && { attempt: standing.attempt }) })
  const { next = 0 } = standing
  const { subject, id } = message
  // Noted first: a pointer to a wake that does not wait so is found stale, one that is missing would not be missed.
  if (next - relay.now() > notedMs)
    await noteRetry(relay.table, target, {
      ...{ subject, id, at: wake.at, waiters, next, noted: begun },
    })
  return end(standing)
}

const later = (relay: Relay, waitMs: number): Standing => ({
  status: 'pending',
  next: relay.now() + waitMs,
  parked: waitMs > longestDelayMs,
})

/** What a wake is after an attempt came to this. */
function standingAfter(relay: Relay, wake: Wake, outcome: Outcome, begun: number): Standing {
  const attempt = {
    at: begun,
    verdict: outcome.kind,
    ...('reason' in outcome && { reason: outcome.reason }),
    ...(outcome.status !== undefined && { status: outcome.status }),
    milliseconds: relay.now() - begun,
    ...(outcome.answer !== undefined && { answer: outcome.answer }),
  }
  const made = { attempt, tries: wake.tries + 1 }
  if (outcome.kind === 'delivered') return { status: 'delivered', ...made }
  if (outcome.kind !== 'retry' && outcome.kind !== 'config') return { status: 'failed', ...made }
  const share = drawShare(relay)
  const wish = outcome.kind === 'retry' ? outcome.afterMs : undefined
  const after = retryAfterMs(made.tries, share, wish)
  if (after === undefined) return { status: 'failed', ...made }
  return { ...later(relay, after), ...made }
}

/** Records first, queues second: a crash between leaves the message, which then finds the record's own time. */
async function record(relay: Relay, message: WakeMessage, wake: Wake, standing: Standing): Promise<Handled> {
  const mine = await recordWake(relay.table, message.subject, message.id, wake, standing)
  const { status, tries = wake.tries, attempt, next, parked } = standing
  relay.log({ step: 'wake.recorded', ...idsOf(wake), status, tries, verdict: attempt?.verdict })
  if (!mine || next === undefined || parked === true) return 'done'
  const { subject, id } = message
  const group = targetGroup(wake.tenant, wake.target)
  await sendDeliver(relay.queues, group, { v: 1, kind: 'wake', subject, id }, next - relay.now())
  return 'done'
}

const traceOf = ({ trace }: WakeMessage) => (trace === undefined ? {} : { trace: traceIdOf(trace) })

const taskOf = ({ tenant, agent, taskId, parent }: Watch) => ({ tenant, agent, task: taskId, parent })

const idsOf = (wake: Wake) => ({
  tenant: wake.tenant,
  agent: wake.agent,
  task: wake.taskId,
  wake: wake.id,
  target: wake.target,
  rev: wake.rev,
  type: wake.type,
})
