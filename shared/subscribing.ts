// Makes a subscription live and keeps its promises to the agent: hook, push config, first look, and its end. Used by the API, and by a timer where a request died.
import {
  type HandedOut,
  handOut,
  type PushConfig,
  refused,
  registerConfig,
  removeConfig,
} from './a2a/configs.ts'
import { hookSecrets, hookUrl, signs } from './issued.ts'
import { limits } from './limits.ts'
import type { Agent, Registration, Subscription } from './model.ts'
import { floorMs } from './policy.ts'
import { sendLook } from './queue.ts'
import { type Relay, within } from './relay.ts'
import { getAgent } from './store/agents.ts'
import { getCalls } from './store/calls.ts'
import { removeGrant } from './store/grants.ts'
import { agentGroup, watchOf } from './store/keys.ts'
import { endSubscription, recordRegistration, untimeSubscription } from './store/subscriptions.ts'
import { parentOf } from './store/trees.ts'
import { getWatch, leaveWatch, openWatch, watchedBy } from './store/watches.ts'
import { callInVersion } from './versions.ts'

/** The push config of a subscription, with secrets unless the agent signs. */
function pushConfigOf(relay: Relay, sub: Subscription, agent: Agent): PushConfig {
  const { token, authorization } = agent.verification
  const secrets = hookSecrets(relay, sub)
  const bare = { url: hookUrl(relay, sub.hook), id: sub.id }
  if (signs(agent)) return bare
  return {
    ...bare,
    ...(token === true && { token: secrets.token }),
    ...(authorization !== undefined && {
      authentication: {
        scheme: authorization,
        credentials: authorization === 'Basic' ? secrets.basic : secrets.bearer,
      },
    }),
  }
}

/** The push config as the agent's version writes it, and in both versions. */
export function handedOut(
  relay: Relay,
  sub: Subscription,
  agent: Agent,
): { pushNotificationConfig: HandedOut; pushNotificationConfigs: Record<'1.0' | '0.3', HandedOut> } {
  const config = pushConfigOf(relay, sub, agent)
  const both = { '1.0': handOut(config, '1.0'), '0.3': handOut(config, '0.3') }
  return { pushNotificationConfig: both[agent.version], pushNotificationConfigs: both }
}

/**
 * Puts the subscription on the watch of its task.
 * @returns false when the task has its full number of subscriptions
 */
export async function watchTask(relay: Relay, sub: Subscription, taskId: string): Promise<boolean> {
  const now = relay.now()
  const at = { now, due: now + floorMs(0) }
  return (await openWatch(relay.table, watchedBy(sub, taskId), at, sub.ref)) !== undefined
}

/** True when the task can take one subscription more, or has this one already. */
export async function hasRoom(relay: Relay, sub: Subscription, taskId: string): Promise<boolean> {
  const watch = await getWatch(relay.table, watchOf(sub.tenant, sub.agent, sub.principal, taskId))
  return watch === undefined || watch.subs.length < limits.subscriptionsOfTask || watch.subs.includes(sub.ref)
}

/** Queues a look at the subscription's task, or a sweep of its agent. */
export function lookSoon(world: Relay, sub: Subscription): Promise<void> {
  const relay = within(world, { trace: sub.traceparent })
  const group = agentGroup(sub.tenant, sub.agent)
  if (sub.scope === 'agent')
    return sendLook(relay.queues, group, { v: 1, kind: 'subscription', sub: sub.ref })
  const watch = watchOf(sub.tenant, sub.agent, sub.principal, sub.taskId ?? '')
  return sendLook(relay.queues, group, { v: 1, kind: 'watch', watch })
}

/** Registers the push config at the agent, if the task is known and the agent can push, and records what came of it. */
export async function register(relay: Relay, sub: Subscription, agent: Agent): Promise<Registration> {
  if (sub.registration.status === 'registered') return sub.registration
  const came = await registrationFor(relay, sub, agent)
  const before = sub.registration
  const registration = came.again === true ? { ...came, since: before.since ?? relay.now() } : came
  if (
    registration.status !== before.status ||
    registration.detail !== before.detail ||
    registration.since !== before.since
  ) {
    const recorded = await recordRegistration(relay.table, sub, registration, relay.now())
    const stands = recorded.ok ? undefined : recorded.old
    // Rotated meanwhile: the agent may have been given the secrets before last, after the present ones.
    if (stands?.status === 'active' && stands.generation !== sub.generation)
      return register(relay, { ...stands, registration: { status: 'handed_out' } }, agent)
  }
  relay.log({
    step: 'subscription.registered',
    tenant: sub.tenant,
    subscription: sub.id,
    agent: sub.agent,
    task: sub.taskId,
    status: registration.status,
  })
  return registration
}

async function registrationFor(relay: Relay, sub: Subscription, agent: Agent): Promise<Registration> {
  if (!agent.pushes)
    return { status: 'unsupported', detail: 'The agent cannot push, so its tasks are polled.' }
  if (sub.taskId === undefined) return { status: 'handed_out' }
  const { taskId } = sub
  const calls = await getCalls(relay.table, agent)
  const called = await callInVersion(relay, { agent, calls }, [sub], async endpoint => {
    const made = await registerConfig(relay.net, endpoint, taskId, pushConfigOf(relay, sub, agent))
    if (!('status' in made)) return made
    // What the agent would not do in this version does not show that it speaks it.
    if (made.status !== 'failed') return { ok: true as const, registration: made }
    const trouble = made.again === true ? 'unreachable' : 'failed'
    return { ok: false, trouble, detail: made.detail ?? '' } as const
  })
  return called.ok ? called.registration : refused(called)
}

/** For how long an agent that refused the push config is asked again: without it news come by looks alone. */
const registerMs = 24 * 60 * 60_000

/**
 * Finishes what a request left that died once its subscription was bound to a task, or that the agent refused. A repeat
 * changes nothing. While the agent goes on refusing, the timer stays: tick holds it longer each time.
 */
export async function makeWhole(world: Relay, sub: Subscription, taskId: string): Promise<void> {
  const relay = within(world, { trace: sub.traceparent, parent: parentOf(sub) })
  // One that finds its task full stays off it: who asked for it was told nothing, and is told so when he asks again.
  if (await watchTask(relay, sub, taskId)) {
    const agent = await getAgent(relay.table, sub.tenant, sub.agent)
    const registration = agent && (await register(relay, sub, agent))
    const waits = registration?.again === true
    if (waits && relay.now() < (registration.since ?? 0) + registerMs) return
    // While one goes on refusing looks are made by the watch's own timer alone.
    if (!waits) await lookSoon(relay, sub)
    relay.log({ step: 'subscription.finished', tenant: sub.tenant, subscription: sub.id, ...namesOf(sub) })
  }
  await untimeSubscription(relay.table, sub, taskId)
}

const namesOf = ({ agent, taskId }: Subscription) => ({ agent, task: taskId })

/** Ends a subscription on our side: from now on nobody is woken by it. */
export async function silence(relay: Relay, sub: Subscription): Promise<void> {
  const { tenant, agent, principal, ref, taskId } = sub
  const now = relay.now()
  await endSubscription(relay.table, ref, 'deleted', now)
  if (taskId !== undefined) await leaveWatch(relay.table, watchOf(tenant, agent, principal, taskId), ref, now)
}

/**
 * Ends a subscription: silence first, then the agent is told, if it can be reached.
 * @returns whether the agent dropped its push config, and its words if not
 */
export async function endAtAgent(
  relay: Relay,
  sub: Subscription,
  agent: Agent | undefined,
): Promise<{ removedAtAgent: boolean; detail?: string }> {
  await silence(relay, sub)
  const removed = await removeAtAgent(relay, sub, agent)
  // Its token was needed for that.
  if (sub.tokenOrigin !== undefined) await removeGrant(relay.table, sub)
  return removed
}

async function removeAtAgent(
  relay: Relay,
  sub: Subscription,
  agent: Agent | undefined,
): Promise<{ removedAtAgent: boolean; detail?: string }> {
  const { taskId } = sub
  if (taskId === undefined || agent === undefined || !agent.pushes) return { removedAtAgent: false }
  const calls = await getCalls(relay.table, agent)
  const removed = await callInVersion(relay, { agent, calls }, [sub], endpoint =>
    removeConfig(relay.net, endpoint, taskId, sub.id),
  )
  return removed.ok ? { removedAtAgent: true } : { removedAtAgent: false, detail: removed.detail }
}
