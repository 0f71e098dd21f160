// Reads a compact JWS down to header and claims and refuses what needs no key to be refused. Pure; it verifies no signature.
import { isRecord } from './a2a/read.ts'
import { familyOf } from './jwks.ts'
import { limits } from './limits.ts'
import type { Reason } from './reasons.ts'

export type Claims = Record<string, unknown>

/** A JWT as read, not yet believed. */
export type Jwt = { text: string; alg: string; kid: string | undefined; claims: Claims }

export type JwtReading = { ok: true; jwt: Jwt } | { ok: false; reason: Reason }

const longestKid = 256
/** Claims are flat in practice; the bound keeps every later walk over them short. */
const mostBrackets = 100

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Reads a JWT.
 * @param algorithms the registered list; an algorithm outside it is refused before anything else is looked at (RFC 8725 section 3.1)
 */
export function readJwt(text: string, algorithms: readonly string[]): JwtReading {
  if (text.length > limits.jwtCharacters) return { ok: false, reason: 'jwt_too_long' }
  const [head = '', payload = '', signature, ...more] = text.split('.')
  const header = readPart(head)
  if (header === undefined || signature === undefined || more.length > 0)
    return { ok: false, reason: 'jwt_malformed' }
  const { alg, kid } = header
  if (typeof alg !== 'string' || !isAllowed(alg, algorithms)) return { ok: false, reason: 'alg_not_allowed' }
  // RFC 7515 section 4.1.11: what is critical and not understood must be refused. We understand nothing critical.
  if (header.crit !== undefined || (header.b64 !== undefined && header.b64 !== true))
    return { ok: false, reason: 'crit_not_supported' }
  const claims = readPart(payload)
  if (claims === undefined || !isBase64url(signature) || !isKid(kid))
    return { ok: false, reason: 'jwt_malformed' }
  return { ok: true, jwt: { text, alg, kid, claims } }
}

/** `EdDSA` and `Ed25519` name one operation (RFC 9864), so either on the list allows both. */
const isAllowed = (alg: string, algorithms: readonly string[]): boolean =>
  familyOf(alg) !== undefined &&
  (algorithms.includes(alg) ||
    (alg === 'EdDSA' && algorithms.includes('Ed25519')) ||
    (alg === 'Ed25519' && algorithms.includes('EdDSA')))

const isKid = (kid: unknown): kid is string | undefined =>
  kid === undefined || (typeof kid === 'string' && kid.length <= longestKid)

const isBase64url = (text: string): boolean => /^[\w-]+$/.test(text) && text.length % 4 !== 1

/** One part as a JSON object. Of members with the same name the last one counts, as everywhere in Rouse (RFC 7515 section 4). */
function readPart(part: string): Record<string, unknown> | undefined {
  if (!isBase64url(part)) return undefined
  try {
    const text = utf8.decode(Buffer.from(part, 'base64url'))
    if ((text.match(/[[{]/g)?.length ?? 0) > mostBrackets) return undefined
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
