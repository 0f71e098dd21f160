// Seals secrets before the table sees them: compact JWE, `dir` with A256GCM, `kid` for rotation (RFC 7516). Pure but for the keys handed in.
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose'
import { deriveKey, hmac } from './hash.ts'
import { currentVersion, type RootKeys } from './hooks.ts'

/**
 * Seals text for one purpose and owner; it opens only under the same purpose and owner, so that a
 * sealed secret moved to another item is worthless.
 */
export async function seal(keys: RootKeys, purpose: string, owner: string, text: string): Promise<string> {
  const version = currentVersion(keys)
  return new CompactEncrypt(new TextEncoder().encode(text))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: String(version) })
    .encrypt(keyFor(keys, version, purpose, owner))
}

/**
 * Opens what {@link seal} made.
 * @throws Error if the root key is gone or the text was made for another purpose or owner
 */
export async function unseal(
  keys: RootKeys,
  purpose: string,
  owner: string,
  sealed: string,
): Promise<string> {
  const { plaintext } = await compactDecrypt(
    sealed,
    header => keyFor(keys, Number(header.kid), purpose, owner),
    { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] },
  )
  return new TextDecoder().decode(plaintext)
}

/**
 * Names a secret by a keyed hash: the same text of the same owner has the same name, and nobody can try texts without a
 * root key.
 * @param sealed that text as {@link seal} made it: the name is made with the same root key
 * @returns `of`, and what it is called under the other root keys
 */
export function namesOf(
  keys: RootKeys,
  purpose: string,
  owner: string,
  text: string,
  sealed: string,
): { of: string; formerly: string[] } {
  const made = Number(decodeProtectedHeader(sealed).kid)
  const nameBy = (root: Uint8Array): string =>
    Buffer.from(hmac(deriveKey(root, 'name', purpose, owner), text).subarray(0, 18)).toString('base64url')
  const others = [...keys].filter(([version]) => version !== made)
  return { of: nameBy(rootOf(keys, made)), formerly: others.map(([, root]) => nameBy(root)) }
}

function keyFor(keys: RootKeys, version: number, purpose: string, owner: string): Uint8Array {
  return deriveKey(rootOf(keys, version), 'seal', purpose, owner)
}

function rootOf(keys: RootKeys, version: number): Uint8Array {
  const root = keys.get(version)
  if (root === undefined) throw new Error(`No root key of version ${version}`)
  return root
}
