// Names an accepted push so that its copies are known: never by the token's text, whose signature can be written in more ways than one. Pure.
import { canonical, idOf, sha256Hex } from './hash.ts'
import type { Claims } from './jwt.ts'

/** Unsigned pushes are remembered this long: senders' doubles come milliseconds apart, equal bodies later are honest. */
export const unsignedMemoryMs = 10_000

/** Name of an unsigned push: its hook and its body. */
export const unsignedReplay = (hook: string, body: Uint8Array): string =>
  idOf('notice', hook, 'body', sha256Hex(body))

/**
 * Name of a signed push, scoped by hook, so that one event pushed to two subscriptions wakes both.
 *
 * - body bound, `jti`: issuer, `jti` and digest; an agent that never changes its `jti` loses nothing.
 * - body bound, no `jti`: the verified claims, the digest among them; another spelling of the body is the same push.
 * - body not bound, `jti`: the verified claims; the body is not proven, so changing it makes no new push,
 *   while an unchanging `jti` still gets a name of its own with each `iat`.
 * - neither: the verified claims and the body, for two honest pushes may be signed within one second.
 * @param bound whether the claims' digest was found right
 */
export function signedReplay(hook: string, claims: Claims, body: Uint8Array, bound: boolean): string {
  const { iss, jti } = claims
  // Serialisers write null or nothing where there is no id: no name either.
  const named = jti !== undefined && jti !== null && jti !== ''
  if (bound && named)
    return idOf(
      'notice',
      hook,
      'jti',
      canonical([iss ?? null, jti]),
      String(claims.request_body_sha256).toLowerCase(),
    )
  if (bound || named) return idOf('notice', hook, 'claims', canonical(claims))
  return idOf('notice', hook, 'claims', canonical(claims), sha256Hex(body))
}
