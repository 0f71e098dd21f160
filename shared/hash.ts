// Hashes that cannot collide by joining: every part is written with its length in front. Pure.
import {
  createHash,
  createHmac,
  createSecretKey,
  hash,
  hkdfSync,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto'

/** SHA-256 of bytes or text, as bytes. */
export const sha256 = (data: string | Uint8Array): Uint8Array => hash('sha256', data, 'buffer')

/** SHA-256 in lower-case hex. */
export const sha256Hex = (data: string | Uint8Array): string => hash('sha256', data, 'hex')

/**
 * Names a thing by its parts: 144 bits of SHA-256 over the length-prefixed parts, 24 characters of base64url.
 * Different part lists never give the same input bytes.
 */
export function idOf(...parts: (string | number)[]): string {
  const whole = createHash('sha256')
  for (const part of parts) {
    const text = String(part)
    whole.update(`${Buffer.byteLength(text)}:`).update(text)
  }
  return whole.digest().subarray(0, 18).toString('base64url')
}

/** HMAC keys as the crypto library keeps them: a bare key is made ready at each call, at four times the cost of the MAC. */
const ready = new WeakMap<Uint8Array, KeyObject>()

/** HMAC-SHA-256 over text or bytes. Do not change the bytes of a key that was used. */
export function hmac(key: Uint8Array, data: string | Uint8Array): Uint8Array {
  const known = ready.get(key) ?? createSecretKey(key)
  ready.set(key, known)
  return createHmac('sha256', known).update(data).digest()
}

/** Derived keys by root, since deriving costs more than a request can spare. A key is kept no longer than its root. */
const derived = new WeakMap<Uint8Array, Map<string, Uint8Array>>()
const mostDerived = 1000

/** A 32-byte key for one purpose, derived from a root key (RFC 5869). Do not change the bytes of a root or of the answer. */
export function deriveKey(root: Uint8Array, ...purpose: (string | number)[]): Uint8Array {
  const info = purpose.map(part => `${Buffer.byteLength(String(part))}:${part}`).join('')
  const keys = derived.get(root) ?? new Map<string, Uint8Array>()
  derived.set(root, keys)
  const known = keys.get(info)
  if (known !== undefined) return known
  const key = new Uint8Array(hkdfSync('sha256', root, new Uint8Array(0), info, 32))
  if (keys.size >= mostDerived) keys.clear()
  keys.set(info, key)
  return key
}

/** Compares two secrets in constant time, whatever their lengths: over their SHA-256. */
export const sameSecret = (a: string | Uint8Array, b: string | Uint8Array): boolean =>
  timingSafeEqual(sha256(a), sha256(b))

/**
 * Canonical JSON (RFC 8785): no blanks, members sorted by UTF-16 code units, numbers and text as ECMAScript writes them,
 * so that the order of fields changes no hash. For JSON values of bounded depth; members that are undefined are left out.
 */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(part => canonical(part ?? null)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value)
    .filter(([, part]) => part !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, part]) => `${JSON.stringify(name)}:${canonical(part)}`)
  return `{${members.join(',')}}`
}
