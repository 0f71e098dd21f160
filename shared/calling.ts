// Opens what is needed to call an agent as one principal. Secrets are opened at run time only and never travel in messages.
import type { Endpoint } from './a2a/endpoint.ts'
import type { Agent, Credentials, Subscription } from './model.ts'
import type { Relay } from './relay.ts'
import { seal, unseal } from './seal.ts'
import { nextSpan } from './trace.ts'

/** Whose credentials they are; sealed text opens for its owner only. */
export type Owner = { agent: Pick<Agent, 'tenant' | 'agent'> } | { subscription: Pick<Subscription, 'ref'> }

const ownerName = (owner: Owner): string =>
  'agent' in owner ? `${owner.agent.tenant}/${owner.agent.agent}` : owner.subscription.ref

export const sealCredentials = (relay: Relay, owner: Owner, credentials: Credentials): Promise<string> =>
  seal(relay.config.rootKeys, 'credentials', ownerName(owner), JSON.stringify(credentials))

const unsealCredentials = async (relay: Relay, owner: Owner, sealed: string): Promise<Credentials> =>
  JSON.parse(await unseal(relay.config.rootKeys, 'credentials', ownerName(owner), sealed))

/**
 * Where and how to call an agent for these subscriptions: with the credentials that were given last, else the
 * agent's own.
 */
export async function endpointFor(relay: Relay, agent: Agent, subs: Subscription[]): Promise<Endpoint> {
  const [own] = subs
    .filter(sub => sub.credentials !== undefined)
    .sort((a, b) => (b.credentialsAt ?? 0) - (a.credentialsAt ?? 0))
  const agentTenant = own?.agentTenant ?? subs.find(sub => sub.agentTenant)?.agentTenant ?? agent.agentTenant
  const credentials =
    own?.credentials !== undefined
      ? await unsealCredentials(relay, { subscription: own }, own.credentials)
      : agent.credentials !== undefined
        ? await unsealCredentials(relay, { agent }, agent.credentials)
        : undefined
  const trace = relay.trace ?? subs.find(sub => sub.traceparent)?.traceparent
  return {
    url: agent.url,
    binding: agent.binding,
    version: agent.version,
    ...(agentTenant !== undefined && { agentTenant }),
    ...(credentials !== undefined && { credentials }),
    ...(trace !== undefined && { traceparent: () => nextSpan(trace, relay.random(8)) }),
  }
}
