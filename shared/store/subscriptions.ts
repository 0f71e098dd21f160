// Keeps subscriptions, found by the hash of their hook. Expiry is compared on every read; TTL only sweeps.
import type { Registration, Subscription } from '../model.ts'
import { removeGrant } from './grants.ts'
import { agentGroup, slotOf, subscriptionKey } from './keys.ts'
import { get, put, type Table, update } from './table.ts'

const daySeconds = 24 * 60 * 60
/** How long a subscription is remembered after it ended. */
const tombstoneSeconds = 30 * daySeconds
/** Longer than a request may take: what binds a subscription to its task is finished by the timer if it died. */
const wholeMs = 60_000

export const getSubscription = (table: Table, ref: string): Promise<Subscription | undefined> =>
  get<Subscription>(table, subscriptionKey(ref))

/** True while wakes may be queued for it. */
export const isLive = (sub: Subscription | undefined, now: number): sub is Subscription =>
  sub !== undefined && sub.status === 'active' && sub.expiresAt > now

/** True when the time of a task's subscription is over and nothing was made of that yet: the last look does. */
export const endsNow = (sub: Subscription, now: number): boolean =>
  sub.scope === 'task' && sub.status === 'active' && sub.expiresAt <= now

/**
 * What was queued in its time outlives a subscription that ran out, but not one that was deleted: it is tried again for
 * three days, and waits for a target that is paused for five.
 */
const lastWordsMs = 6 * daySeconds * 1000

/** True while wakes that are queued may be sent for it. */
export const isHeard = (sub: Subscription | undefined, now: number): sub is Subscription =>
  sub !== undefined && sub.status !== 'deleted' && sub.expiresAt + lastWordsMs > now

/** Its timer: until when it may bind, when it is swept next, or when whoever subscribed is taken to have died before it was whole. */
const timerOf = (sub: Subscription): number | undefined => {
  if (sub.scope === 'agent') return sub.sweepAt
  return sub.taskId === undefined ? sub.bindBy : sub.createdAt + wholeMs
}

/** Puts a new subscription; gives back the one that stands when its ref was put before (a repeated request). */
export async function putSubscription(table: Table, sub: Subscription): Promise<Subscription> {
  const key = subscriptionKey(sub.ref)
  const due = timerOf(sub)
  const written = await put<Subscription>(
    table,
    {
      ...key,
      ...sub,
      ttl: Math.ceil(sub.expiresAt / 1000) + tombstoneSeconds,
      ...(due !== undefined && {
        slot: slotOf(key.pk, table.shards),
        due,
        holds: 0,
        group: agentGroup(sub.tenant, sub.agent),
      }),
    },
    'attribute_not_exists(#pk)',
  )
  return written.ok ? sub : (written.old ?? sub)
}

/**
 * Binds to a task once and for all: of two tasks pushed at the same time the first wins.
 * @param now given by who has nothing else that brings him back: a timer then tells if he died before the rest was done
 */
export async function bindSubscription(
  table: Table,
  ref: string,
  taskId: string,
  now?: number,
): Promise<Subscription | undefined> {
  const key = subscriptionKey(ref)
  const timed =
    now === undefined ? ' REMOVE #slot, #due, #holds, #group,' : ', #slot = :slot, #due = :due REMOVE'
  const bound = await update<Subscription>(
    table,
    key,
    `SET #taskId = :taskId${timed} #bindBy`,
    {
      ...{ taskId, active: 'active' },
      ...(now !== undefined && { slot: slotOf(key.pk, table.shards), due: now + wholeMs }),
    },
    '#status = :active AND (attribute_not_exists(#taskId) OR #taskId = :taskId)',
  )
  return bound.ok ? bound.item : undefined
}

/**
 * Records what came of the push config at the agent. Of a subscription that is bound to its task a timer has nothing left
 * to finish then, unless the agent refused for a reason that may pass: that timer begins with the first refusal of these
 * secrets. Later ones leave it to tick, which holds it longer each time. Nothing is recorded once the secrets were rotated.
 */
export function recordRegistration(
  table: Table,
  { ref, tenant, agent, taskId, registration: before, generation }: Subscription,
  registration: Registration,
  now: number,
) {
  const key = subscriptionKey(ref)
  const waits = registration.again === true
  const timer = {
    slot: slotOf(key.pk, table.shards),
    due: now + wholeMs,
    holds: 0,
    group: agentGroup(tenant, agent),
  }
  // A timer may stand that was held for hours while the agent refused the secrets before these.
  const isFirst = registration.since !== before.since
  const set = Object.keys(timer).map(
    name => `, #${name} = ${isFirst ? `:${name}` : `if_not_exists(#${name}, :${name})`}`,
  )
  const timed = waits ? set.join('') : ' REMOVE #slot, #due, #holds, #group'
  return update<Subscription>(
    table,
    key,
    `SET #registration = :registration${taskId === undefined ? '' : timed}`,
    { registration, generation, active: 'active', ...(taskId !== undefined && waits && timer) },
    '#status = :active AND #generation = :generation',
  )
}

/** Takes off the timer of one that is bound to a task, unless its secrets were rotated since it was read. */
export const untimeSubscription = (
  table: Table,
  { ref, generation }: Pick<Subscription, 'ref' | 'generation'>,
  taskId: string,
) =>
  update<Subscription>(
    table,
    subscriptionKey(ref),
    'REMOVE #slot, #due, #holds, #group',
    { taskId, generation },
    '#taskId = :taskId AND #generation = :generation',
  )

/** Replaces the credentials GetTask is called with. */
export const replaceCredentials = (
  table: Table,
  ref: string,
  { credentials, tokenOrigin, at }: { credentials: string; tokenOrigin: string | undefined; at: number },
) =>
  update<Subscription>(
    table,
    subscriptionKey(ref),
    `SET #credentials = :credentials, #credentialsAt = :at${tokenOrigin === undefined ? ' REMOVE #tokenOrigin' : ', #tokenOrigin = :tokenOrigin'}`,
    { credentials, at, tokenOrigin, active: 'active' },
    '#status = :active',
  )

/**
 * Claims the right to tell a subscription that the credentials which it has are refused: for many tasks it is told once, by
 * the watch that claimed it first, which may tell it again after a crash.
 * @returns false if another watch does
 */
export async function claimRefused(
  table: Table,
  { ref, credentialsAt: of = 0 }: Pick<Subscription, 'ref' | 'credentialsAt'>,
  by: string,
): Promise<boolean> {
  const { ok } = await update<Subscription>(
    table,
    subscriptionKey(ref),
    'SET #refusedTold = :told',
    { told: { of, by }, of, by, active: 'active' },
    '#status = :active AND (attribute_not_exists(#refusedTold) OR #refusedTold.#of <> :of OR #refusedTold.#by = :by)',
  )
  return ok
}

/**
 * Begins the next generation of hook secrets. Of two requests that replace the same generation one does; the agent does
 * not know the new secrets yet, so the push config counts as handed out only.
 * @param previousUntil until when the replaced ones are still accepted, ms
 */
export const rotateSubscription = (table: Table, ref: string, replaced: number, previousUntil: number) =>
  update<Subscription>(
    table,
    subscriptionKey(ref),
    'SET #generation = :next, #previousUntil = :previousUntil, #registration = :registration',
    {
      ...{ next: replaced + 1, previousUntil, replaced, active: 'active' },
      registration: { status: 'handed_out' },
    },
    '#status = :active AND #generation = :replaced',
  )

/**
 * Ends a subscription for good; what it was stays readable for 30 days, but for what its credentials were granted. One that
 * ran out can still be deleted: then nothing more is sent. Whoever deletes it needs a token yet, and removes the grant then.
 */
export async function endSubscription(
  table: Table,
  ref: string,
  status: 'deleted' | 'expired',
  now: number,
): Promise<void> {
  const ended = await update<Subscription>(
    table,
    subscriptionKey(ref),
    'SET #status = :status, #ttl = :ttl REMOVE #slot, #due, #holds, #group, #credentials',
    {
      status,
      ttl: Math.ceil(now / 1000) + tombstoneSeconds,
      active: 'active',
      ...(status === 'deleted' && { expired: 'expired' }),
    },
    status === 'deleted' ? '#status IN (:active, :expired)' : '#status = :active',
  )
  if (ended.ok && status === 'expired' && ended.item?.tokenOrigin !== undefined)
    await removeGrant(table, { ref })
}

/**
 * Sets the next sweep of an agent-wide subscription, how far back the last list that was gone through reached, and what
 * the next one goes on with.
 */
export function recordSweep(
  table: Table,
  ref: string,
  {
    page: sweepPage,
    refused: sweepRefused,
    ...times
  }: {
    sweepAt: number
    sweptAt: number
    page: Subscription['sweepPage']
    refused: Subscription['sweepRefused']
  },
) {
  const kept = Object.entries({ sweepPage, sweepRefused })
  const set = kept.map(([name, value]) => (value === undefined ? '' : `, #${name} = :${name}`)).join('')
  const gone = kept.flatMap(([name, value]) => (value === undefined ? [`#${name}`] : [])).join(', ')
  return update<Subscription>(
    table,
    subscriptionKey(ref),
    `SET #due = :sweepAt, #sweepAt = :sweepAt, #sweptAt = :sweptAt, #holds = :zero${set}${gone === '' ? '' : ` REMOVE ${gone}`}`,
    { ...times, sweepPage, sweepRefused, zero: 0, active: 'active' },
    '#status = :active AND attribute_exists(#slot)',
  )
}
