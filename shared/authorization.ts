// Reads the Authorization header and compares static credentials in constant time. Pure; JWTs are another room's.
import { sameSecret } from './hash.ts'
import type { Reason } from './reasons.ts'

/**
 * Reads exactly one Authorization value: a scheme in any case, one or more blanks (no tab), credentials (RFC 9110 section 11.4).
 * @param scheme the scheme that is expected, lower case
 * @returns the credentials as sent, or why there are none
 */
export function readAuthorization(
  header: string,
  scheme: string,
): { ok: true; credentials: string } | { ok: false; reason: Reason } {
  const [, named = '', credentials] = /^([^\s,]+)(?: +([^\s].*))?$/.exec(header) ?? []
  if (named === '') return { ok: false, reason: 'authorization_malformed' }
  if (named.toLowerCase() !== scheme) return { ok: false, reason: 'scheme_unsupported' }
  if (credentials === undefined) return { ok: false, reason: 'authorization_malformed' }
  // Repeated headers arrive joined by a comma, which neither Bearer nor Basic credentials can hold.
  if (credentials.includes(',')) return { ok: false, reason: 'several_authorizations' }
  return { ok: true, credentials }
}

/** True if a presented secret is one of those handed out. An empty one never is, on either side. */
export const isOneOf = (presented: string, handedOut: readonly string[]): boolean =>
  handedOut.some(secret => secret !== '' && sameSecret(presented, secret))

/**
 * True if Basic credentials carry the user and password of some that were handed out (RFC 7617).
 * Both sides are base64 of `user:password`, as they stand in `authentication.credentials`.
 */
export function isOneOfBasic(presented: string, handedOut: readonly string[]): boolean {
  const pair = decodeBasic(presented)
  return pair !== undefined && handedOut.some(one => sameSecret(pair, decodeBasic(one) ?? ''))
}

function decodeBasic(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text && bytes.includes(':') ? bytes : undefined
}
