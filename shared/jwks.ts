// Reads an agent's published key set and picks the keys that may have signed a JWT. Pure; it fetches and remembers nothing.
import { createPublicKey, type KeyObject } from 'node:crypto'
import { isRecord } from './a2a/read.ts'
import { limits } from './limits.ts'

/** A published key that may verify. `id` is its JWK text: equal keys have equal ids. */
export type PublishedKey = {
  id: string
  key: KeyObject
  family: Family
  kid: string | undefined
  alg: string | undefined
}

/** What the owner of an agent must be told about its key set. */
export type KeyFlag =
  | 'private_key_published'
  | 'symmetric_key_published'
  | 'weak_key'
  | 'unsupported_key'
  | 'broken_key'
  | 'too_many_keys'

/** `text` holds the usable members only, ready to be stored and read again by {@link readJwks}. */
export type KeySetReading =
  | { ok: true; keys: PublishedKey[]; text: string; flags: KeyFlag[] }
  | { ok: false; why: 'not_a_key_set' | 'no_usable_key' | 'too_large'; flags: KeyFlag[] }

type Family = 'RSA' | 'P-256' | 'P-384' | 'P-521' | 'Ed25519'

const longestKid = 256
/**
 * Longest fields of a key, in characters of base64url: 8192 bits for `n`, 64 for `e`, 521 for coordinates, and room for zeros
 * in front. Node takes minutes over an exponent of some hundred thousand digits, and nothing can interrupt it.
 */
const longestField: Record<string, number> = { n: 1400, e: 16, x: 100, y: 100 }
/** Keys tried for one JWT. */
const mostTries = 5

/** Asymmetric algorithms only: the shape of key that each one takes (RFC 7518 section 3.1, RFC 8037, RFC 9864). */
const families: ReadonlyMap<string, Family> = new Map<string, Family>([
  ['RS256', 'RSA'],
  ['RS384', 'RSA'],
  ['RS512', 'RSA'],
  ['PS256', 'RSA'],
  ['PS384', 'RSA'],
  ['PS512', 'RSA'],
  ['ES256', 'P-256'],
  ['ES384', 'P-384'],
  ['ES512', 'P-521'],
  ['EdDSA', 'Ed25519'],
  ['Ed25519', 'Ed25519'],
])

/** The algorithms that may be registered and verified. */
export const algorithms: readonly string[] = [...families.keys()]

/** The shape of key that an algorithm takes; undefined for symmetric, unknown and `none`. */
export const familyOf = (alg: string): Family | undefined => families.get(alg)

/** Reads a key set. One bad member never spoils the others (RFC 7517 section 5). */
export function readJwks(bytes: Uint8Array): KeySetReading {
  if (bytes.length > limits.keySetBytes) return { ok: false, why: 'too_large', flags: [] }
  const members = readMembers(bytes)
  if (members === undefined) return { ok: false, why: 'not_a_key_set', flags: [] }
  const flags = new Set<KeyFlag>()
  if (members.length > limits.keysOfSet) flags.add('too_many_keys')
  const keys: PublishedKey[] = []
  for (const member of members.slice(0, limits.keysOfSet)) {
    const key = readKey(member)
    if (typeof key === 'string') flags.add(key)
    else if (key !== undefined) keys.push(key)
  }
  if (keys.length === 0) return { ok: false, why: 'no_usable_key', flags: [...flags] }
  return { ok: true, keys, text: `{"keys":[${keys.map(({ id }) => id).join()}]}`, flags: [...flags] }
}

/**
 * The keys that may have signed a JWT, at most five. `kid` is a hint: keys of that id, else keys without any;
 * a JWT without `kid` may be by any key of the right shape.
 */
export function chooseKeys(
  keys: readonly PublishedKey[],
  kid: string | undefined,
  alg: string,
): PublishedKey[] {
  const family = familyOf(alg)
  const fitting = keys.filter(
    key => key.family === family && (key.alg === undefined || sameAlg(key.alg, alg)),
  )
  if (kid === undefined) return fitting.slice(0, mostTries)
  const named = fitting.filter(key => key.kid === kid)
  return (named.length > 0 ? named : fitting.filter(key => key.kid === undefined)).slice(0, mostTries)
}

/** `EdDSA` over Ed25519 and `Ed25519` are one operation under two names (RFC 9864 section 2.2). */
const sameAlg = (a: string, b: string): boolean =>
  a === b || (familyOf(a) === 'Ed25519' && familyOf(b) === 'Ed25519')

function readMembers(bytes: Uint8Array): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return isRecord(value) && Array.isArray(value.keys) ? value.keys : undefined
  } catch {
    return undefined
  }
}

/**
 * One member: a key, a flag for its owner, or undefined for a key that is meant for something else. What is null or empty
 * counts as not given: serialisers of key classes write all their fields, the private ones too.
 */
function readKey(member: unknown): PublishedKey | KeyFlag | undefined {
  if (!isRecord(member)) return 'broken_key'
  const given = Object.fromEntries(
    Object.entries(member).filter(([, value]) => value !== null && value !== ''),
  )
  const { kty, crv, use, key_ops: ops, kid, alg } = given
  if (kty === 'oct') return 'symmetric_key_published'
  if (['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'].some(name => given[name] !== undefined))
    return 'private_key_published'
  if (use !== undefined && use !== 'sig') return undefined
  if (ops !== undefined && !(Array.isArray(ops) && ops.includes('verify'))) return undefined
  const family = familyBy(kty, crv)
  if (family === undefined || (alg !== undefined && (typeof alg !== 'string' || familyOf(alg) !== family)))
    return 'unsupported_key'
  if (typeof kid === 'string' && kid.length > longestKid) return 'unsupported_key'
  const jwk = pick(given, family === 'RSA' ? ['kty', 'n', 'e'] : ['kty', 'crv', 'x', 'y'])
  if (Object.entries(jwk).some(([name, text]) => text.length > (longestField[name] ?? longestKid)))
    return 'unsupported_key'
  const key = importKey(jwk)
  if (key === undefined) return 'broken_key'
  const { modulusLength: bits, publicExponent = 3n } = key.asymmetricKeyDetails ?? {}
  // By an exponent of 1 everybody can sign.
  if ((bits !== undefined && bits < 2048) || publicExponent < 3n) return 'weak_key'
  if (bits !== undefined && bits > 8192) return 'unsupported_key'
  const hint = typeof kid === 'string' ? kid : undefined
  return { id: JSON.stringify({ ...jwk, kid: hint, alg }), key, family, kid: hint, alg }
}

const familyBy = (kty: unknown, crv: unknown): Family | undefined => {
  if (kty === 'RSA') return 'RSA'
  if (kty === 'EC' && (crv === 'P-256' || crv === 'P-384' || crv === 'P-521')) return crv
  return kty === 'OKP' && crv === 'Ed25519' ? crv : undefined
}

const pick = (member: Record<string, unknown>, names: string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap(name => {
      const value = member[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )

/** OpenSSL refuses coordinates that are not on the curve. */
function importKey(jwk: Record<string, string>): KeyObject | undefined {
  try {
    return createPublicKey({ key: jwk, format: 'jwk' })
  } catch {
    return undefined
  }
}
