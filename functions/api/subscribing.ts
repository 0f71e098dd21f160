// What subscribing asks for, and its steps: nothing is stored before everything was judged, and a repeat finishes what a crash left.
import * as z from 'zod'
import { taskStates } from '../../shared/a2a/task.ts'
import { pauseSeconds } from '../../shared/budgets.ts'
import { sealCredentials } from '../../shared/calling.ts'
import { invalidField, RouseError } from '../../shared/errors.ts'
import { canonical, idOf } from '../../shared/hash.ts'
import { makeHook, refOf } from '../../shared/hooks.ts'
import { limits } from '../../shared/limits.ts'
import type { Agent, Registration, Subscription } from '../../shared/model.ts'
import { bindMs } from '../../shared/policy.ts'
import { type Relay, within } from '../../shared/relay.ts'
import { getAgent } from '../../shared/store/agents.ts'
import { follow, point, unpoint } from '../../shared/store/directory.ts'
import type { Listing } from '../../shared/store/keys.ts'
import { giveBack, takeOne } from '../../shared/store/quota.ts'
import {
  bindSubscription,
  getSubscription,
  isLive,
  putSubscription,
} from '../../shared/store/subscriptions.ts'
import { getTarget } from '../../shared/store/targets.ts'
import { parentOf } from '../../shared/store/trees.ts'
import { usualPrincipal } from '../../shared/store/watches.ts'
import { handedOut, hasRoom, lookSoon, register, silence, watchTask } from '../../shared/subscribing.ts'
import { sweepMs } from '../../shared/sweep.ts'
import { openSecret } from '../../shared/targets.ts'
import type { Target } from '../../shared/telling.ts'
import { beginTrace, readTraceparent } from '../../shared/trace.ts'
import { CredentialsRequest, judged } from './credentials.ts'
import { Id, overLimit, TaskId } from './input.ts'
import { allowedUrl, dropTarget, isInline, saveTarget, shownTarget, TargetRequest } from './targets.ts'

const day = 24 * 60 * 60

/** A time budget: a minute, which is how often timers are looked after, to a year. */
const Seconds = z
  .number()
  .int()
  .min(60)
  .max(365 * day)

/** A state, spelled as in A2A 0.3 or as in our events: `input-required`, `input_required`. */
const State = z.preprocess(
  state => (typeof state === 'string' ? state.replaceAll('_', '-') : state),
  z.enum(taskStates),
)

const Traceparent = z
  .string()
  .refine(
    text => readTraceparent(text) !== undefined,
    'Expected a W3C traceparent: 00, 32, 16 and 2 lower-case hex digits, - between, no id all zero',
  )

export const SubscriptionRequest = z.strictObject({
  agent: Id,
  scope: z.enum(['task', 'agent']).default('task'),
  taskId: TaskId.optional(),
  principal: Id.default(usualPrincipal),
  states: z
    .array(State)
    .min(1)
    .max(taskStates.length)
    .default(['completed', 'failed', 'canceled', 'rejected', 'input-required', 'auth-required']),
  client: Id.optional(),
  targets: z
    .array(z.union([Id, TargetRequest]))
    .max(limits.targetsOfSubscription)
    .default([]),
  agentTenant: Id.optional(),
  credentials: CredentialsRequest.optional(),
  /** The task that this one was delegated from. */
  parentTask: z.strictObject({ agent: Id, taskId: TaskId }).optional(),
  traceparent: Traceparent.optional(),
  partialWork: z.enum(['expose', 'withhold']).optional(),
  hopTimeoutSeconds: Seconds.optional(),
  pauseTimeoutSeconds: Seconds.optional(),
  endToEndSeconds: Seconds.optional(),
  onOverdue: z.enum(['tell', 'cancel']).optional(),
  ttlSeconds: z
    .number()
    .int()
    .min(60)
    .max(365 * day)
    .default(30 * day),
})

export type SubscriptionRequest = z.infer<typeof SubscriptionRequest>

/** A pointer outlives what it names, and what is remembered of it. */
const pointedSeconds = 40 * day

export const all: Listing = { kind: 'subscriptions' }
export const ofAgent = (agent: string): Listing => ({ kind: 'subscriptions', by: 'agent', of: agent })
export const ofClient = (client: string): Listing => ({ kind: 'subscriptions', by: 'client', of: client })

/** The pointer of a subscription keeps its hook, so that a repeated request finishes what a crash left half made. */
export async function findSubscription(
  relay: Relay,
  tenant: string,
  id: string,
): Promise<Subscription | undefined> {
  const hook = await follow(relay.table, tenant, all, id)
  return hook === undefined ? undefined : getSubscription(relay.table, refOf(hook))
}

/** Removes what stands around a subscription that ended. Its own pointer goes last, so that a repeat finds the rest. */
export async function forget(
  relay: Relay,
  { tenant, id, hook, agent, client, targets }: Subscription,
): Promise<void> {
  for (const target of targets.filter(isInline)) await dropTarget(relay, tenant, target)
  if (client !== undefined) await unpoint(relay.table, tenant, ofClient(client), id)
  await unpoint(relay.table, tenant, ofAgent(agent), id)
  await unpoint(relay.table, tenant, all, id, hook)
}

/**
 * Makes a subscription. The same request under the same id again gives the same answer, and finishes what a crash left
 * half made. Nothing is stored before everything was judged, and no target before it is settled whose the id is.
 */
export async function subscribe(world: Relay, tenant: string, id: string, asked: SubscriptionRequest) {
  check(asked)
  const agent = await getAgent(world.table, tenant, asked.agent)
  if (agent === undefined) throw invalidField('/agent', 'There is no such agent')
  await checkTargets(world, tenant, asked)
  const sub = await save(world, tenant, id, asked)
  const relay = within(world, { trace: sub.traceparent, parent: parentOf(sub) })
  const targets = await targetsFor(relay, sub, asked)
  const taskId = sub.taskId ?? asked.taskId
  if (taskId !== undefined && !(await watchTask(relay, sub, taskId))) {
    await silence(relay, sub)
    await forget(relay, sub)
    await giveBack(relay.table, tenant, 'subscriptions', relay.now())
    throw full()
  }
  const registration = await register(relay, sub, agent)
  if (taskId !== undefined || sub.scope === 'agent') await lookSoon(relay, sub)
  relay.log({ step: 'subscription.made', tenant, subscription: id, agent: agent.agent, task: taskId })
  return answer(relay, { ...sub, registration }, agent, targets)
}

const full = (): RouseError =>
  new RouseError('limit_reached', { detail: 'This task has its full number of subscriptions.' })

function check(asked: SubscriptionRequest): void {
  if (asked.scope === 'agent' && asked.taskId !== undefined)
    throw invalidField('/taskId', 'A subscription to a whole agent has no task')
  if (asked.scope === 'agent' && asked.parentTask !== undefined)
    throw invalidField('/parentTask', 'The tasks of a whole agent have no one parent')
  if (asked.client === undefined && asked.targets.length === 0)
    throw invalidField('/targets', 'Expected a target, or a client whose inbox is kept')
}

/** The targets named must be there, the addresses given inline must be allowed. */
async function checkTargets(relay: Relay, tenant: string, asked: SubscriptionRequest): Promise<void> {
  for (const [index, target] of asked.targets.entries()) {
    const pointer = `/targets/${index}`
    if (typeof target !== 'string') allowedUrl(relay, target.url, `${pointer}/url`)
    // An inline target ends with its own subscription.
    else if (isInline(target) || (await getTarget(relay.table, tenant, target)) === undefined)
      throw invalidField(pointer, 'There is no such target')
  }
}

/** Names of a request's targets. */
const targetNames = (ref: string, { targets }: SubscriptionRequest): string[] =>
  targets.map((target, index) =>
    typeof target === 'string' ? target : `inline_${idOf('inline', ref, index)}`,
  )

/** The targets of a subscription: those given inline are made. */
function targetsFor(relay: Relay, sub: Subscription, asked: SubscriptionRequest): Promise<Target[]> {
  const { tenant, expiresAt } = sub
  const ttl = Math.ceil(expiresAt / 1000) + pointedSeconds
  const found = sub.targets.map(async (target, index) => {
    const wish = asked.targets[index]
    if (typeof wish === 'object') return saveTarget(relay, { tenant, target }, wish, `/targets/${index}`, ttl)
    return getTarget(relay.table, tenant, target)
  })
  return Promise.all(found).then(targets => targets.filter(target => target !== undefined))
}

async function save(
  relay: Relay,
  tenant: string,
  id: string,
  asked: SubscriptionRequest,
): Promise<Subscription> {
  const { table } = relay
  const fresh = makeHook(relay.config.rootKeys, relay.random(16))
  const ttl = Math.ceil(relay.now() / 1000) + asked.ttlSeconds + pointedSeconds
  const hook = await point(table, tenant, all, id, fresh, ttl)
  if (hook === fresh && !(await takeOne(table, tenant, 'subscriptions', relay.now()))) {
    await unpoint(table, tenant, all, id, hook)
    throw overLimit('subscriptions')
  }
  const ref = refOf(hook)
  const before = hook === fresh ? undefined : await getSubscription(table, ref)
  if (isLive(before, relay.now())) return sameAs(asked, before)
  const made = await make(relay, { tenant, id, hook }, asked)
  await point(table, tenant, ofAgent(asked.agent), id, ref, ttl)
  if (asked.client !== undefined) await point(table, tenant, ofClient(asked.client), id, ref, ttl)
  const stands = await putSubscription(table, made)
  if (!isLive(stands, made.createdAt)) {
    // What the pointer names is over: it gives way to a new one.
    await unpoint(table, tenant, all, id, hook)
    return save(relay, tenant, id, asked)
  }
  return sameAs(asked, stands)
}

/** The subscription that is asked for, as it is stored. */
async function make(
  relay: Relay,
  { tenant, id, hook }: Pick<Subscription, 'tenant' | 'id' | 'hook'>,
  asked: SubscriptionRequest,
): Promise<Subscription> {
  const { agent, scope, taskId, principal, states, client, agentTenant, credentials, ttlSeconds } = asked
  const own = credentials && judged(relay, credentials, '/credentials')
  const now = relay.now()
  const ref = refOf(hook)
  return {
    ref,
    hook,
    tenant,
    id,
    agent,
    principal,
    scope,
    states: [...new Set(states)],
    targets: targetNames(ref, asked),
    generation: 1,
    status: 'active',
    registration: { status: 'handed_out' },
    ...(asked.parentTask !== undefined && { parentTask: asked.parentTask }),
    ...(asked.partialWork !== undefined && { partialWork: asked.partialWork }),
    traceparent: readTraceparent(asked.traceparent) ?? beginTrace(relay.random(24)),
    asked: fingerprint(asked),
    createdAt: now,
    expiresAt: now + ttlSeconds * 1000,
    ...(taskId !== undefined && { taskId }),
    ...(client !== undefined && { client }),
    ...(agentTenant !== undefined && { agentTenant }),
    ...(own !== undefined && {
      ...own,
      credentials: await sealCredentials(relay, { subscription: { ref } }, own.credentials),
      credentialsAt: now,
    }),
    ...budgetsOf(asked),
    ...(scope === 'agent' && { sweepAt: now + sweepMs }),
    ...(scope === 'task' && taskId === undefined && { bindBy: now + bindMs }),
  }
}

/** The time budgets that are asked for. */
const budgetsOf = (asked: SubscriptionRequest) => {
  const { hopTimeoutSeconds, pauseTimeoutSeconds, endToEndSeconds, onOverdue } = asked
  return {
    ...(hopTimeoutSeconds !== undefined && { hopTimeoutSeconds }),
    ...(pauseTimeoutSeconds !== undefined && { pauseTimeoutSeconds }),
    ...(endToEndSeconds !== undefined && { endToEndSeconds }),
    ...(onOverdue !== undefined && { onOverdue }),
  }
}

/** The subscription that stands, if it is what is asked for. */
function sameAs(asked: SubscriptionRequest, stands: Subscription): Subscription {
  if (stands.asked === fingerprint(asked)) return stands
  throw new RouseError('conflict', {
    detail: 'A subscription of this id exists and asks for something else.',
  })
}

/**
 * Credentials are left out: a repeat may bring renewed ones, which is what `PUT …/credentials` is for. So is the trace:
 * a retry is often made in another, and the first one stands.
 */
const fingerprint = ({ credentials: _, traceparent: __, ...asked }: SubscriptionRequest): string =>
  idOf('asked', canonical(Object.fromEntries(Object.entries(asked).filter(isSaid))))

/** What stands for a field that is left out; a field of that value says nothing. */
const usual = new Map<string, unknown>([
  ['partialWork', 'expose'],
  ['onOverdue', 'tell'],
  ['pauseTimeoutSeconds', pauseSeconds],
])

const isSaid = ([name, value]: [string, unknown]): boolean => !usual.has(name) || usual.get(name) !== value

/** Binds to a task, as the first authentic push would. */
export async function bind(world: Relay, sub: Subscription, taskId: string) {
  const relay = within(world, { trace: sub.traceparent, parent: parentOf(sub) })
  if (sub.scope === 'agent')
    throw new RouseError('conflict', { detail: 'It covers every task of its agent.' })
  // Looked at first, because a binding stays.
  if (!(await hasRoom(relay, sub, taskId))) throw full()
  const bound = await bindSubscription(relay.table, sub.ref, taskId, relay.now())
  if (bound === undefined) throw new RouseError('conflict', { detail: 'It is bound to another task.' })
  if (!(await watchTask(relay, bound, taskId))) throw full()
  const agent = await getAgent(relay.table, sub.tenant, sub.agent)
  const registration = agent === undefined ? bound.registration : await register(relay, bound, agent)
  await lookSoon(relay, bound)
  return shown(relay, { ...bound, registration })
}

async function answer(relay: Relay, sub: Subscription, agent: Agent, targets: Target[]) {
  const withSecrets = targets.map(async target => ({
    ...shownTarget(target),
    ...(isInline(target.target) && { secret: await openSecret(relay, target) }),
  }))
  return { ...shown(relay, sub), targets: await Promise.all(withSecrets), ...handedOut(relay, sub, agent) }
}

/** What a registration's status means for its subscription, and what is to be done. */
function saysOf({ scope, taskId, registration }: Subscription): string {
  const isUnbound = scope === 'task' && taskId === undefined
  const says: Record<Registration['status'], string> = {
    handed_out:
      scope === 'agent'
        ? 'Give the push config to the agent with each SendMessage.'
        : 'Give the push config to the agent with SendMessage, or bind the subscription to its task.',
    registered: 'The agent keeps the push config.',
    unsupported: isUnbound
      ? 'The agent cannot push: bind the subscription to its task, so that this is polled.'
      : scope === 'agent'
        ? 'The agent cannot push; its tasks are looked for in its list, and polled.'
        : 'The agent cannot push; the task is polled.',
    failed: 'The agent did not take the push config; the task is looked at by deadline.',
  }
  return says[registration.status]
}

/** What is shown of a subscription: never its hook or anything that could be pushed with. */
export const shown = (relay: Relay, sub: Subscription) => ({
  id: sub.id,
  status: sub.status === 'active' && !isLive(sub, relay.now()) ? 'expired' : sub.status,
  agent: sub.agent,
  scope: sub.scope,
  taskId: sub.taskId,
  parentTask: sub.parentTask,
  principal: sub.principal,
  states: sub.states,
  client: sub.client,
  targets: sub.targets,
  agentTenant: sub.agentTenant,
  hasCredentials: sub.credentials !== undefined,
  tokenOrigin: sub.tokenOrigin,
  registration: { ...sub.registration, says: saysOf(sub) },
  partialWork: sub.partialWork ?? 'expose',
  traceparent: sub.traceparent,
  generation: sub.generation,
  previousUntil: (sub.previousUntil ?? 0) > relay.now() ? sub.previousUntil : undefined,
  hopTimeoutSeconds: sub.hopTimeoutSeconds,
  pauseTimeoutSeconds: sub.pauseTimeoutSeconds ?? pauseSeconds,
  endToEndSeconds: sub.endToEndSeconds,
  onOverdue: sub.onOverdue ?? 'tell',
  createdAt: sub.createdAt,
  expiresAt: sub.expiresAt,
  bindBy: sub.bindBy,
})
