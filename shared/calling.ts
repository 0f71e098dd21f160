// Opens what is needed to call an agent as one principal, and calls. Secrets are opened at run time only and never travel in messages.
import type { Endpoint, Shown } from './a2a/endpoint.ts'
import type { Failure } from './a2a/trouble.ts'
import type { Heard } from './breaker.ts'
import { type Granting, type Held, tokenFor } from './granting.ts'
import { canonical } from './hash.ts'
import type { Agent, Credentials, OAuth, Subscription } from './model.ts'
import { despairOf, isRefusal, isUnseen, ownersOf, type Try, type Whose } from './refusals.ts'
import type { Relay } from './relay.ts'
import { namesOf, seal, unseal } from './seal.ts'
import { getAgent } from './store/agents.ts'
import { getSubscription } from './store/subscriptions.ts'
import { nextSpan } from './trace.ts'

/** Whose credentials they are; sealed text opens for its owner only. */
export type Owner = { agent: Pick<Agent, 'tenant' | 'agent'> } | { subscription: Pick<Subscription, 'ref'> }

const ownerName = (owner: Owner): string =>
  'agent' in owner ? `${owner.agent.tenant}/${owner.agent.agent}` : owner.subscription.ref

export const sealCredentials = (
  relay: Pick<Granting, 'config'>,
  owner: Owner,
  credentials: Credentials,
): Promise<string> =>
  seal(relay.config.rootKeys, 'credentials', ownerName(owner), JSON.stringify(credentials))

const unsealCredentials = async (
  relay: Pick<Granting, 'config'>,
  owner: Owner,
  sealed: string,
): Promise<Credentials> =>
  JSON.parse(await unseal(relay.config.rootKeys, 'credentials', ownerName(owner), sealed))

type Answer = { ok: true } | Failure
type World = Granting & Pick<Relay, 'random' | 'trace'>

/** So many credentials are tried for one call at most, and no others once it took so long: a look has 30 s in all. */
const mostTried = 3
const longestMs = 10_000

/** How a call goes from one's credentials to the next one's. */
export type Turns<T> = {
  /** Whose are tried, in this order; those that were given last first unless said. */
  order?: readonly Whose[]
  /** Whether an answer will do. After one that will not, others are tried, but it counts before any failure. */
  willDo?: (answer: T) => boolean
}

/** An answer, with what the call came to with each one's credentials that were tried. */
export type Tries<T extends Answer = Answer> = { tries: Try<T>[] }

/**
 * Calls an agent for these subscriptions: with the credentials that were given last, else the agent's own. Where those
 * are refused, not served, do not see the task, or get no token, some of the others are tried in turn: nobody's troubles
 * keep the news from those who see the same task.
 * @param call one operation at the endpoint that it is given, and whose credentials it shows
 * @returns what the first that is served comes to, else the failure that leaves most to hope for
 */
export async function callAs<T extends Answer>(
  relay: World,
  agent: Agent,
  subs: Subscription[],
  call: (endpoint: Endpoint, own: Whose) => Promise<T>,
  { order = ownersOf(subs), willDo = () => true }: Turns<T> = {},
): Promise<(T | Failure) & Tries<T>> {
  const began = relay.now()
  const [first, ...others] = order.slice(0, mostTried)
  let own = first
  let answer: T | Failure = await callWith(relay, agent, subs, own, call)
  let best = { answer, rank: rankOf(answer, willDo) }
  const tries: Try<T>[] = [{ own, answer }]
  for (own of others) {
    if (!goesOn(answer, willDo) || relay.now() - began > longestMs) break
    answer = await callWith(relay, agent, subs, own, call)
    tries.push({ own, answer })
    const rank = rankOf(answer, willDo)
    if (rank < best.rank) best = { answer, rank }
  }
  return { ...best.answer, tries }
}

/**
 * What the agent itself said, if it was asked: a token endpoint says nothing of how it fares. That it does not serve some
 * says nothing either, if it answers others; and what it says to its own credentials says more than what a subscription's
 * are told.
 */
export function heardOf<T extends Answer>(answer: T & Tries): Heard {
  const said = answer.tries.filter(one => one.answer.ok || one.answer.elsewhere !== true)
  const served = said.findLast(one => one.answer.ok || !isUnserved(one.answer))
  const heard = served ?? said.find(({ own }) => own === undefined) ?? said.at(-1)
  return heard === undefined ? answer : { ...heard.answer, own: heard.own !== undefined }
}

const isUnserved = ({ trouble }: Failure): boolean => trouble === 'unreachable' || trouble === 'rate_limited'

/** Whether they are the credentials' troubles: who lacks the right to a task may be told that there is none. */
const isInVain = ({ trouble, elsewhere, busy }: Failure): boolean =>
  isRefusal(trouble) || isUnseen(trouble) || (elsewhere === true && busy !== true)

/** Whether other credentials may come to more. Neither the version nor the size depends on whose they are. */
function goesOn<T extends Answer>(answer: T | Failure, willDo: (answer: T) => boolean): boolean {
  if (!isFailure(answer)) return !willDo(answer)
  return answer.busy !== true && answer.trouble !== 'unsupported_version' && answer.trouble !== 'too_large'
}

const isFailure = (answer: Answer): answer is Failure => !answer.ok

/** The less, the more an answer counts. */
function rankOf<T extends Answer>(answer: T | Failure, willDo: (answer: T) => boolean): number {
  if (!isFailure(answer)) return willDo(answer) ? 0 : 1
  return isInVain(answer) ? 3 + despairOf(answer) : 2
}

/**
 * Calls with the credentials of one. An access token that the agent refuses is renewed once, and the call made once more.
 * @param own whose; the agent's own if undefined
 */
async function callWith<T extends Answer>(
  relay: World,
  agent: Agent,
  subs: Subscription[],
  own: Subscription | undefined,
  call: (endpoint: Endpoint, own: Whose) => Promise<T>,
): Promise<T | Failure> {
  const agentTenant = own?.agentTenant ?? subs.find(sub => sub.agentTenant)?.agentTenant ?? agent.agentTenant
  const trace = relay.trace ?? subs.find(sub => sub.traceparent)?.traceparent
  const endpointAs = (credentials: Shown | undefined): Endpoint => ({
    url: agent.url,
    binding: agent.binding,
    version: agent.version,
    ...(agentTenant !== undefined && { agentTenant }),
    ...(credentials !== undefined && { credentials }),
    ...(trace !== undefined && { traceparent: () => nextSpan(trace, relay.random(8)) }),
  })
  const owner: Owner = own === undefined ? { agent } : { subscription: own }
  const sealed = (own ?? agent).credentials
  if (sealed === undefined) return call(endpointAs(undefined), own)
  const credentials = await unsealCredentials(relay, owner, sealed)
  if (credentials.type !== 'oauth2') return call(endpointAs(credentials), own)
  const held = heldOf(relay, owner, sealed, credentials)
  const token = await tokenFor(relay, held)
  if (!token.ok) return token
  const answer = await call(endpointAs({ type: 'bearer', token: token.token }), own)
  if (answer.ok || answer.trouble !== 'unauthorized') return answer
  const renewed = await tokenFor(relay, held, token.token)
  return renewed.ok ? call(endpointAs({ type: 'bearer', token: renewed.token }), own) : renewed
}

/** The same credentials that are put again have the name they had: what was granted for them goes on. */
function heldOf(relay: World, owner: Owner, sealed: string, oauth: OAuth): Held {
  const { of, formerly } = namesOf(relay.config.rootKeys, 'grant', ownerName(owner), canonical(oauth), sealed)
  if ('agent' in owner) {
    const { tenant, agent } = owner.agent
    const stands = async () => (await getAgent(relay.table, tenant, agent))?.credentials === sealed
    return { owner: { tenant, agent }, of, formerly, oauth, stands }
  }
  const { ref } = owner.subscription
  const stands = async () => (await getSubscription(relay.table, ref))?.credentials === sealed
  return { owner: { ref }, of, formerly, oauth, stands }
}
