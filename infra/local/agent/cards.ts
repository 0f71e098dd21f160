// The demo agent's cards: the hybrid one, and one for each version and binding, with and without pushes. Pure.
import { AgentCard } from '@a2a-js/sdk'

/** A card of one version and one binding. */
export type Variant = { version: '1.0' | '0.3'; binding: 'JSONRPC' | 'HTTP+JSON'; pushes: boolean }

export const variants: readonly Variant[] = (['1.0', '0.3'] as const).flatMap(version =>
  (['JSONRPC', 'HTTP+JSON'] as const).flatMap(binding =>
    [true, false].map(pushes => ({ version, binding, pushes })),
  ),
)

/** Path of a variant's card: `/cards/v1-jsonrpc.json`, `/cards/v03-rest-nopush.json`. */
export const cardPath = ({ version, binding, pushes }: Variant): string =>
  `/cards/${version === '1.0' ? 'v1' : 'v03'}-${binding === 'JSONRPC' ? 'jsonrpc' : 'rest'}${pushes ? '' : '-nopush'}.json`

/** Path of a binding's endpoint; what cannot push is an agent of its own beside the other. */
export const endpointPath = ({ binding, pushes }: Omit<Variant, 'version'>): string =>
  `${pushes ? '' : '/nopush'}${binding === 'JSONRPC' ? '/rpc' : '/rest'}`

/** The card of one variant, in the shape of its version. */
export function variantCard(origin: string, variant: Variant): Record<string, unknown> {
  const { version, binding, pushes } = variant
  const url = origin + endpointPath(variant)
  const card = { ...about, capabilities: { streaming: true, pushNotifications: pushes } }
  return version === '1.0'
    ? { ...card, supportedInterfaces: [{ url, protocolBinding: binding, protocolVersion: '1.0' }] }
    : { ...card, protocolVersion: '0.3.0', url, preferredTransport: binding }
}

/** The card that the SDK's server works by: both versions, both bindings. */
export function hybridCard(origin: string, pushes: boolean): AgentCard {
  return AgentCard.fromJSON({
    ...about,
    capabilities: { streaming: true, pushNotifications: pushes },
    supportedInterfaces: variants
      .filter(variant => variant.pushes === pushes)
      .map(variant => ({
        url: origin + endpointPath(variant),
        protocolBinding: variant.binding,
        protocolVersion: variant.version,
      })),
  })
}

const about = {
  name: 'Demo agent',
  description: 'Does as the first word of a message says: work, ask, fail, silent or slow.',
  version: '1.0.0',
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'demo', name: 'Demo', description: 'Waits, asks, fails or works.', tags: ['demo'] }],
}
