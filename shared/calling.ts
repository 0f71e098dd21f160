// Opens what is needed to call an agent as one principal, and calls. Secrets are opened at run time only and never travel in messages.
import type { Endpoint, Shown } from './a2a/endpoint.ts'
import type { Failure } from './a2a/trouble.ts'
import { type Granting, tokenFor } from './granting.ts'
import { idOf } from './hash.ts'
import type { Agent, Credentials, Subscription } from './model.ts'
import type { Relay } from './relay.ts'
import { seal, unseal } from './seal.ts'
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

/**
 * Calls an agent for these subscriptions: with the credentials that were given last, else the agent's own. An access
 * token that the agent refuses is renewed once, and the call made once more.
 * @param call one operation at the endpoint that it is given
 */
export async function callAs<T extends Answer>(
  relay: Granting & Pick<Relay, 'random' | 'trace'>,
  agent: Agent,
  subs: Subscription[],
  call: (endpoint: Endpoint) => Promise<T>,
): Promise<T | Failure> {
  const own = ownerOf(subs)
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
  const credentials = sealed === undefined ? undefined : await unsealCredentials(relay, owner, sealed)
  if (credentials?.type !== 'oauth2') return call(endpointAs(credentials))
  const held = {
    owner: own === undefined ? agent : { ref: own.ref },
    of: idOf('grant', sealed ?? ''),
    oauth: credentials,
  }
  const token = await tokenFor(relay, held)
  if (!token.ok) return token
  const answer = await call(endpointAs({ type: 'bearer', token: token.token }))
  if (answer.ok || answer.trouble !== 'unauthorized') return answer
  const renewed = await tokenFor(relay, held, token.token)
  return renewed.ok ? call(endpointAs({ type: 'bearer', token: renewed.token })) : renewed
}

/** Of several subscriptions the one whose credentials were given last. */
export const ownerOf = (subs: Subscription[]): Subscription | undefined =>
  subs
    .filter(sub => sub.credentials !== undefined)
    .sort((a, b) => (b.credentialsAt ?? 0) - (a.credentialsAt ?? 0))[0]
