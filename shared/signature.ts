// Checks the signature of a JWT with one published key, straight by node:crypto: a JWS library takes three times as long. Pure.
import { constants, verify } from 'node:crypto'
import { familyOf, type PublishedKey } from './jwks.ts'
import type { Jwt } from './jwt.ts'

/** How OpenSSL is to read a signature, where not as it does by itself: RSA with PKCS#1 v1.5, Ed25519. */
const forms: Record<string, { padding?: number; saltLength?: number; dsaEncoding?: 'ieee-p1363' }> = {
  // RFC 7518 section 3.5: the salt is as long as the hash.
  PS: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST },
  // RFC 7518 section 3.4: R and S side by side, no DER.
  ES: { dsaEncoding: 'ieee-p1363' },
}

/**
 * True if the key made the signature by the JWT's algorithm. The key has to be of that algorithm's family, whatever
 * its set says: a signature must never be read by another algorithm than the one it names (RFC 8725 section 3.1).
 */
export function isSignedBy({ text, alg }: Jwt, { key, family }: PublishedKey): boolean {
  if (family !== familyOf(alg)) return false
  const end = text.lastIndexOf('.')
  const input = Buffer.from(text.slice(0, end))
  const signature = Buffer.from(text.slice(end + 1), 'base64url')
  // RFC 8032: Ed25519 hashes by itself.
  const hash = family === 'Ed25519' ? null : `sha${alg.slice(2)}`
  const form = forms[alg.slice(0, 2)]
  try {
    // A key with options around it costs Node as much again as the whole signature.
    return verify(hash, input, form === undefined ? key : { key, ...form }, signature)
  } catch {
    // Whatever OpenSSL finds wrong with signature or key, this key did not verify it.
    return false
  }
}
