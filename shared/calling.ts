// Opens what is needed to call an agent as one principal, and calls. Secrets are opened at run time only and never travel in messages.
import type { Endpoint, Shown } from './a2a/endpoint.ts'
import type { Failure } from './a2a/trouble.ts'
import { type Granting, type Held, tokenFor } from './granting.ts'
import { canonical } from './hash.ts'
import type { Agent, Credentials, OAuth, Subscription } from './model.ts'
import { noteRefusal, wasRefused } from './refusals.ts'
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

/**
 * Calls an agent for these subscriptions: with the credentials that were given last, else the agent's own. Where those
 * are refused, do not see the task, or get no token, some of the others are tried in turn, those last that were refused
 * before: nobody's bad credentials keep the news from those who see the same task.
 * @param call one operation at the endpoint that it is given
 * @returns what the first that is not refused comes to, else the first's refusal
 */
export async function callAs<T extends Answer>(
  relay: World,
  agent: Agent,
  subs: Subscription[],
  call: (endpoint: Endpoint) => Promise<T>,
): Promise<T | Failure> {
  const began = relay.now()
  const owners = newestFirst(subs)
  const own: (Subscription | undefined)[] =
    owners.length > 0 && owners.length === subs.length ? owners : [...owners, undefined]
  const isLate = (one: Subscription | undefined) => wasRefused(relay.table, { agent, own: one }, began)
  const [first, ...others] = [...own.filter(one => !isLate(one)), ...own.filter(isLate)]
  const answer = await callBy(relay, agent, subs, first, call)
  if (!isInVain(answer)) return answer
  for (const other of others.slice(0, mostTried - 1)) {
    if (relay.now() - began > longestMs) break
    const next = await callBy(relay, agent, subs, other, call)
    if (!isInVain(next)) return next
  }
  return answer
}

const isRefused = (answer: Answer): boolean =>
  !answer.ok &&
  (answer.trouble === 'unauthorized' ||
    answer.trouble === 'credentials_expired' ||
    (answer.elsewhere === true && answer.busy !== true))

/** Whether other credentials may come to more: who lacks the right to a task may be told that there is none. */
const isInVain = (answer: Answer): boolean =>
  isRefused(answer) || (!answer.ok && (answer.trouble === 'forbidden' || answer.trouble === 'not_found'))

/** Calls with the credentials of one, and remembers whether they were taken. */
async function callBy<T extends Answer>(
  relay: World,
  agent: Agent,
  subs: Subscription[],
  own: Subscription | undefined,
  call: (endpoint: Endpoint) => Promise<T>,
): Promise<T | Failure> {
  const answer = await callWith(relay, agent, subs, own, call)
  noteRefusal(relay.table, { agent, own }, isRefused(answer), relay.now())
  return answer
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
  call: (endpoint: Endpoint) => Promise<T>,
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
  if (sealed === undefined) return call(endpointAs(undefined))
  const credentials = await unsealCredentials(relay, owner, sealed)
  if (credentials.type !== 'oauth2') return call(endpointAs(credentials))
  const held = heldOf(relay, owner, sealed, credentials)
  const token = await tokenFor(relay, held)
  if (!token.ok) return token
  const answer = await call(endpointAs({ type: 'bearer', token: token.token }))
  if (answer.ok || answer.trouble !== 'unauthorized') return answer
  const renewed = await tokenFor(relay, held, token.token)
  return renewed.ok ? call(endpointAs({ type: 'bearer', token: renewed.token })) : renewed
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

/** Those subscriptions that have credentials of their own, whose were given last first. */
export const newestFirst = (subs: Subscription[]): Subscription[] =>
  subs
    .filter(sub => sub.credentials !== undefined)
    .sort((a, b) => (b.credentialsAt ?? 0) - (a.credentialsAt ?? 0))
