// Makes signing keys and JWTs of every kind for tests, right and wrong ones. Touches no file and no room.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

export type SigningKey = {
  kid: string | undefined
  alg: string
  privateKey: KeyObject
  /** The public JWK as an agent would publish it, with `kid` and without `alg` and `use`. */
  jwk: Record<string, unknown>
}

const pairs: Record<string, () => { publicKey: KeyObject; privateKey: KeyObject }> = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  weakRS256: () => generateKeyPairSync('rsa', { modulusLength: 1024 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  ES512: () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  ES256K: () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
  Ed448: () => generateKeyPairSync('ed448'),
  X25519: () => generateKeyPairSync('x25519'),
}

/** A fresh key. `kind` is a JOSE algorithm, or one of the kinds that must be refused. */
export function makeKey(kind: string, kid?: string): SigningKey {
  const { publicKey, privateKey } = pairs[kind]?.() ?? missing(kind)
  const jwk: Record<string, unknown> = publicKey.export({ format: 'jwk' })
  return { kid, alg: kind.replace('weak', ''), privateKey, jwk: kid === undefined ? jwk : { ...jwk, kid } }
}

const missing = (kind: string): never => {
  throw new Error(`No such kind of key: ${kind}`)
}

export const encode = (data: string | Uint8Array): string => Buffer.from(data).toString('base64url')

/** A JWS signature over text, in the fixed-length form that JOSE wants (RFC 7518 section 3.4). */
export function signatureOf(alg: string, key: KeyObject, text: string): Uint8Array {
  const data = Buffer.from(text)
  if (key.asymmetricKeyType === 'ed25519') return sign(null, data, key)
  const hash = `sha${alg.slice(2, 5)}`
  if (alg.startsWith('PS')) return sign(hash, data, { key, padding: 6, saltLength: Number(alg.slice(2)) / 8 })
  return sign(hash, data, { key, dsaEncoding: 'ieee-p1363' })
}

/** A signed JWT from the very texts of header and claims, however odd they are. */
export function signText(key: SigningKey, header: string, claims: string, alg = key.alg): string {
  const input = `${encode(header)}.${encode(claims)}`
  return `${input}.${encode(signatureOf(alg, key.privateKey, input))}`
}

/** A signed JWT. */
export const signJwt = (
  key: SigningKey,
  claims: Record<string, unknown>,
  header: Record<string, unknown> = {},
): string => {
  const whole = { alg: key.alg, ...(key.kid !== undefined && { kid: key.kid }), ...header }
  return signText(
    key,
    JSON.stringify(whole),
    JSON.stringify(claims),
    typeof whole.alg === 'string' && /^(RS|PS|ES)\d{3}$/.test(whole.alg) ? whole.alg : key.alg,
  )
}
