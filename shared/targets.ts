// Opens and seals the secrets of targets, and makes targets from what a caller asks for.
import { makeSecret } from './channels/standard.ts'
import type { Target } from './model.ts'
import type { Relay } from './relay.ts'
import { seal, unseal } from './seal.ts'

const owner = ({ tenant, target }: Pick<Target, 'tenant' | 'target'>): string => `${tenant}/${target}`

/** The signing secrets of a target, in the clear. Only to sign with, and to show to whoever just made them. */
export const openSecrets = (relay: Relay, target: Target): Promise<string[]> =>
  Promise.all(target.secrets.map(sealed => unseal(relay.config.rootKeys, 'webhook', owner(target), sealed)))

/**
 * Makes a target, or the next generation of one whose address changed. An address that stays keeps its secret and
 * its standing.
 * @param asked the address, and the caller's own `whsec_` secret if it has one
 */
export async function makeTarget(
  relay: Relay,
  name: Pick<Target, 'tenant' | 'target'>,
  asked: { url: string; secret?: string | undefined },
  before: Target | undefined,
): Promise<Target> {
  const kept = before !== undefined && asked.secret === undefined
  const secret = asked.secret ?? makeSecret(relay.random(32))
  const secrets = kept ? before.secrets : [await seal(relay.config.rootKeys, 'webhook', owner(name), secret)]
  return {
    ...name,
    url: asked.url,
    secrets,
    generation: (before?.generation ?? 0) + 1,
    status: 'active',
    createdAt: before?.createdAt ?? relay.now(),
  }
}
