// Opens and seals the secrets of targets, and makes targets from what a caller asks for. Stores nothing.
import { makeSecret } from './channels/standard.ts'
import { limits } from './limits.ts'
import type { Relay } from './relay.ts'
import { seal, unseal } from './seal.ts'
import type { Gate, Target } from './telling.ts'

type Name = Pick<Target, 'tenant' | 'target'>

/** What a target is to be. */
export type Wish = Pick<Target, 'url' | 'maxConcurrency' | 'ratePerSecond'> & {
  /** The caller's own `whsec_` secret, if it has one. */
  secret: string | undefined
}

const owner = ({ tenant, target }: Name): string => `${tenant}/${target}`

const open = (relay: Relay, target: Target, sealed: string): Promise<string> =>
  unseal(relay.config.rootKeys, 'webhook', owner(target), sealed)

const close = (relay: Relay, name: Name, secret: string): Promise<string> =>
  seal(relay.config.rootKeys, 'webhook', owner(name), secret)

/** The present signing secret in the clear. Only to show to whoever just made it, and to compare. */
export const openSecret = (relay: Relay, target: Target): Promise<string> =>
  open(relay, target, target.secret)

/** All secrets that sign now, the present one first, in the clear. */
export function openSecrets(relay: Relay, target: Target): Promise<string[]> {
  const along = (target.retiring ?? []).filter(({ until }) => until > relay.now())
  const sealed = [target.secret, ...along.map(({ secret }) => secret)]
  return Promise.all(sealed.map(secret => open(relay, target, secret)))
}

/**
 * Makes a target, or the next generation of one. It keeps its secrets unless a new one is given, which then signs alone.
 * @param gate what stands of the target's gate, perhaps of one of the same name that was deleted: the new generation is
 * above all that may still be under way
 */
export async function makeTarget(
  relay: Relay,
  name: Name,
  { secret, ...wish }: Wish,
  before: Target | undefined,
  gate: Gate | undefined,
): Promise<Target> {
  const kept = secret === undefined ? before : undefined
  return {
    ...name,
    ...wish,
    secret: kept?.secret ?? (await close(relay, name, secret ?? makeSecret(relay.random(32)))),
    secretGeneration: kept?.secretGeneration ?? (before?.secretGeneration ?? 0) + 1,
    ...(kept?.retiring !== undefined && { retiring: kept.retiring }),
    generation: nextGeneration(before, gate),
    status: 'active',
    createdAt: before?.createdAt ?? relay.now(),
  }
}

/** The generation after all that were. */
export const nextGeneration = (before: Target | undefined, gate: Gate | undefined): number =>
  Math.max(before?.generation ?? 0, gate?.generation ?? 0) + 1

/**
 * The secrets of a target whose secret is replaced. Those before sign along until the overlap is over, or until they
 * would have stopped anyway: with no overlap the new one signs alone at once.
 * @param secret the caller's own, if it has one
 */
export async function nextSecrets(
  relay: Relay,
  target: Target,
  secret: string | undefined,
  overlapMs: number,
): Promise<Pick<Target, 'secret' | 'secretGeneration'> & { retiring: NonNullable<Target['retiring']> }> {
  const now = relay.now()
  const until = now + overlapMs
  const before = [{ secret: target.secret, until }, ...(target.retiring ?? [])]
  return {
    secret: await close(relay, target, secret ?? makeSecret(relay.random(32))),
    secretGeneration: target.secretGeneration + 1,
    retiring: before
      .map(one => ({ ...one, until: Math.min(one.until, until) }))
      .filter(one => one.until > now)
      .slice(0, limits.secretsOfTarget),
  }
}
