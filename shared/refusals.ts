// Says whose credentials are tried next for a task, and what each one's came to, as its watch keeps that. Pure.
import type { Failure } from './a2a/trouble.ts'
import { mostAskedMs } from './breaker.ts'
import type { Agent, Subscription, Tried, Trouble, Watch } from './model.ts'
import { aheadTries } from './policy.ts'

/** Whose credentials: a subscription's own, or the agent's if undefined. */
export type Whose = Subscription | undefined

/** One call with one's credentials. */
export type Try<T = { ok: true } | Failure> = { own: Whose; answer: T | Failure }

/** What one's credentials came to last since nobody sees the task. */
export type Came = Omit<Tried, 'of'> & { own: Whose }

type Kept = Pick<Watch, 'served' | 'tried'>

/** Those subscriptions that have credentials of their own, whose were given last first; then the agent's, if one has none. */
export function ownersOf(subs: readonly Subscription[]): Whose[] {
  const owners = subs
    .filter(sub => sub.credentials !== undefined)
    .sort((a, b) => (b.credentialsAt ?? 0) - (a.credentialsAt ?? 0))
  return owners.length > 0 && owners.length === subs.length ? owners : [...owners, undefined]
}

/** Whose credentials a subscription lives by. */
export const ownOf = (sub: Subscription): Whose => (sub.credentials === undefined ? undefined : sub)

/** Names credentials: others that are given later have another name. */
export const credentialsOf = ({ etag }: Pick<Agent, 'etag'>, own: Whose): string =>
  own === undefined ? `agent ${etag}` : `${own.ref} ${own.credentialsAt ?? 0}`

const refOf = (own: Whose): string => own?.ref ?? 'agent'

/**
 * Whose turn it is: those that served last are first, but after what was given since. While nobody sees the task, those
 * that were not tried yet go before those that were, of which the least recent is first: so each has its turn.
 */
export function turnsOf(watch: Kept, agent: Agent, subs: readonly Subscription[]): Whose[] {
  const owners = ownersOf(subs)
  const { served } = watch
  const since = owners.filter(own => served !== undefined && (own?.credentialsAt ?? 0) > served.at)
  const last = owners.filter(own => refOf(own) === served?.by)
  const tried = (watch.tried ?? []).map(({ of }) => of)
  return [...new Set([...since, ...last, ...owners])]
    .map(own => ({ own, place: tried.indexOf(credentialsOf(agent, own)) }))
    .sort((one, other) => one.place - other.place)
    .map(({ own }) => own)
}

/** What each one's credentials came to with this look, the least recent first. */
export function cameTo(
  watch: Kept,
  agent: Agent,
  subs: readonly Subscription[],
  tries: readonly Try[],
  now: number,
): Came[] {
  const owners = new Map(ownersOf(subs).map(own => [credentialsOf(agent, own), own]))
  const before = watch.tried ?? []
  const touched = tries.flatMap(({ own, answer }) => {
    const of = credentialsOf(agent, own)
    if (!owners.has(of) || answer.ok) return []
    const earlier = before.find(one => one.of === of)
    const untilMs = own === undefined ? undefined : askedMs(answer)
    return [{ of, ...cameAgain(earlier, answer), ...(untilMs !== undefined && { until: now + untilMs }) }]
  })
  const untouched = before.filter(({ of }) => owners.has(of) && !touched.some(one => one.of === of))
  return [...untouched, ...touched].map(({ of, ...came }) => ({ own: owners.get(of), ...came }))
}

function cameAgain(before: Tried | undefined, { trouble, busy }: Failure): Omit<Tried, 'of'> {
  const times = (before?.times ?? 0) + (isRefusal(trouble) ? 1 : 0)
  if (isRefusal(trouble) || isUnseen(trouble) || trouble === 'too_large') return { trouble, times }
  // Another worker who renews the token is nobody's trouble.
  const vain = (before?.vain ?? 0) + (busy === true ? 0 : 1)
  return { trouble, times, vain }
}

/** For how long the agent asked to be left alone. */
function askedMs({ trouble, elsewhere, retryAfterMs = 0 }: Failure): number | undefined {
  const isAsked = retryAfterMs > 0 && elsewhere !== true
  return isAsked && (trouble === 'rate_limited' || trouble === 'unreachable')
    ? Math.min(retryAfterMs, mostAskedMs)
    : undefined
}

/** Those of them that may be shown now, and for how long the agent asked the first of the others to wait. */
export function readyOf(
  { tried = [] }: Kept,
  agent: Agent,
  turns: readonly Whose[],
  now: number,
): { order: Whose[]; waitMs: number } {
  const untilOf = (own: Whose) => tried.find(({ of }) => of === credentialsOf(agent, own))?.until ?? 0
  const waits = turns.map(own => untilOf(own) - now).filter(left => left > 0)
  return { order: turns.filter(own => untilOf(own) <= now), waitMs: Math.min(...waits) }
}

/** The same as the watch keeps it. */
export const keep = (agent: Agent, came: readonly Came[]): Tried[] =>
  came.map(({ own, ...rest }) => ({ of: credentialsOf(agent, own), ...rest }))

/** Whose credentials saw the task, unless they are those that would be tried first anyway. */
export function servedBy(subs: readonly Subscription[], tries: readonly Try[]): Watch['served'] {
  const owners = ownersOf(subs)
  const served = tries.find(({ answer }) => answer.ok)
  if (served === undefined || served.own?.ref === owners[0]?.ref) return undefined
  return { by: refOf(served.own), at: Math.max(...owners.map(own => own?.credentialsAt ?? 0)) }
}

/** True when the credentials are of no use any more, whatever the task. */
export const isRefusal = (trouble: Trouble): boolean =>
  trouble === 'unauthorized' || trouble === 'credentials_expired'

/** True when they do not show the task: who lacks the right to one may be told that there is none. */
export const isUnseen = (trouble: Trouble): boolean => trouble === 'forbidden' || trouble === 'not_found'

/**
 * True when whose credentials they are is to be told: at the second refusal, and at once of a token endpoint's last word.
 */
export const isTold = ({ trouble, times }: Came): boolean =>
  trouble === 'credentials_expired' || (trouble === 'unauthorized' && times > 1)

const hopes: readonly Trouble[] = ['forbidden', 'not_found', 'unauthorized', 'credentials_expired']

/**
 * How little leaves an answer to hope for: a task is lost only if nobody's credentials come to something better. An agent
 * that has served one's for long with nothing may do so for ever, and says nothing against what others find.
 */
export const despairOf = ({ trouble, vain = 0 }: Pick<Tried, 'trouble' | 'vain'>): number =>
  vain < aheadTries ? hopes.indexOf(trouble) + 1 : hopes.indexOf('not_found') + 1.5

/**
 * The best of all that the look came to and that is known of credentials which it did not try.
 * @param tries those of the look: some may be of one who is not on the task
 */
export function hopeOf(came: readonly Came[], tries: readonly Try[]): Pick<Tried, 'trouble'> | undefined {
  const others = tries.flatMap(({ own, answer }) => (answer.ok || cameOf(came, own) ? [] : [answer]))
  const [best] = [...came.toReversed(), ...others].sort((one, other) => despairOf(one) - despairOf(other))
  return best
}

/** What a subscription's credentials came to, as its watch keeps that, if they were tried. */
export const keptOf = (tried: readonly Tried[], agent: Agent, sub: Subscription): Tried | undefined =>
  tried.find(({ of }) => of === credentialsOf(agent, ownOf(sub)))

/** What one's credentials came to, if they were tried. */
export const cameOf = (came: readonly Came[], own: Whose): Came | undefined =>
  came.find(one => one.own === own)
