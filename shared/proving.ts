// Proves a push against what is known of its hook. Only receive uses it.
import { hookSecrets, hookUrl } from './issued.ts'
import type { KeySets } from './keysets.ts'
import type { Known, Memory } from './memory.ts'
import type { Relay } from './relay.ts'
import { type Presented, type Proof, verifyPush } from './verify.ts'

/** A remembered subscription that is older is read again before a push is refused by it. */
const refusalFreshMs = 5000

/**
 * What proving needs besides the push itself; `now` is the one clock reading of the request, `forKeys` comes when keys
 * have had their time.
 */
export type Court = {
  relay: Relay
  memory: Memory
  keySets: KeySets
  now: number
  forKeys?: AbortSignal
}

/** Verifies by what is remembered and, before refusing by something old, once more by what is true now. */
export async function prove(court: Court, push: Presented, known: Known): Promise<Proof> {
  const proof = await proveByEither(court, push, known)
  if (proof.ok || court.now - known.at <= refusalFreshMs) return proof
  // With the table away and nothing remembered any more, what was found a moment ago has to do.
  const fresh = await court.memory.find(court.relay.table, known.sub.ref, refusalFreshMs).catch(() => known)
  if (fresh === undefined) return proof
  const again = await proveByEither(court, push, fresh)
  // Not refused for good by what may no longer be true: a 401 to an honest sender is an event lost.
  return again.ok || court.now - fresh.at <= refusalFreshMs ? again : { ...again, later: true }
}

/**
 * By the present secrets or those before them; and by the next ones too, for whoever holds them was handed them by a
 * rotation that is younger than what is remembered. Nobody can guess them.
 */
async function proveByEither(court: Court, push: Presented, known: Known): Promise<Proof> {
  const { generation, previousUntil = 0 } = known.sub
  const present = previousUntil > court.now ? [generation, generation - 1] : [generation]
  const proof = await proveBy(court, push, known, present)
  const byNext = !proof.ok && (proof.reason === 'wrong_token' || proof.reason === 'wrong_credentials')
  return byNext ? proveBy(court, push, known, [...present, generation + 1]) : proof
}

function proveBy(
  court: Court,
  push: Presented,
  { sub, agent }: Known,
  generations: readonly number[],
): Promise<Proof> {
  const { relay, keySets, now, forKeys } = court
  const { verification } = agent
  const { token, authorization } = verification
  const secrets = generations.map(generation => hookSecrets(relay, sub, generation))
  const expected = {
    hook: sub.hook,
    hookUrl: hookUrl(relay, sub.hook),
    tokens: token ? secrets.map(one => one.token) : [],
    credentials:
      authorization === undefined
        ? []
        : secrets.map(one => (authorization === 'Basic' ? one.basic : one.bearer)),
    verification,
  }
  return verifyPush(
    push,
    expected,
    (rule, kid, alg, tried) => keySets.keysFor(agent, rule.jwksUrl, { kid, alg, tried }, forKeys),
    now,
  )
}
