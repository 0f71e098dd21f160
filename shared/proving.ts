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
  const proof = await proveBy(court, push, known)
  if (proof.ok || court.now - known.at <= refusalFreshMs) return proof
  // With the table away and nothing remembered any more, what was found a moment ago has to do.
  const fresh = await court.memory.find(court.relay.table, known.sub.ref, refusalFreshMs).catch(() => known)
  if (fresh === undefined) return proof
  const again = await proveBy(court, push, fresh)
  // Not refused for good by what may no longer be true: a 401 to an honest sender is an event lost.
  return again.ok || court.now - fresh.at <= refusalFreshMs ? again : { ...again, later: true }
}

function proveBy(court: Court, push: Presented, { sub, agent }: Known): Promise<Proof> {
  const { relay, keySets, now, forKeys } = court
  const { verification } = agent
  const secrets = hookSecrets(relay, sub)
  const expected = {
    hook: sub.hook,
    hookUrl: hookUrl(relay, sub.hook),
    tokens: verification.token ? [secrets.token] : [],
    credentials:
      verification.authorization === undefined
        ? []
        : [verification.authorization === 'Basic' ? secrets.basic : secrets.bearer],
    verification,
  }
  return verifyPush(
    push,
    expected,
    (rule, kid, alg, tried) => keySets.keysFor(agent, rule.jwksUrl, { kid, alg, tried }, forKeys),
    now,
  )
}
