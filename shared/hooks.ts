// Makes and checks hook ids and what is handed out with them: a hook is 16 random bytes, a key version and a MAC. Pure.
import { timingSafeEqual } from 'node:crypto'
import { deriveKey, hmac, idOf } from './hash.ts'

/** Root keys by version; the highest is the current one. */
export type RootKeys = ReadonlyMap<number, Uint8Array>

const randomLength = 16
const macLength = 8
const hookLength = randomLength + 1 + macLength

/** The version that makes new secrets. */
export const currentVersion = (keys: RootKeys): number => Math.max(...keys.keys())

/**
 * Makes a hook id, base64url, 34 characters. Its MAC lets a guess be refused without a read.
 * @param random 16 fresh random bytes
 */
export function makeHook(keys: RootKeys, random: Uint8Array): string {
  const version = currentVersion(keys)
  const head = Buffer.concat([random, Uint8Array.of(version)])
  return Buffer.concat([head, macOf(rootOf(keys, version), head)]).toString('base64url')
}

/** True when we made this hook, with a root key that we still hold. */
export function isHook(keys: RootKeys, hook: string): boolean {
  const bytes = Buffer.from(hook, 'base64url')
  if (bytes.length !== hookLength || bytes.toString('base64url') !== hook) return false
  const root = keys.get(bytes[randomLength] ?? -1)
  if (root === undefined) return false
  const macAt = randomLength + 1
  return timingSafeEqual(macOf(root, bytes.subarray(0, macAt)), bytes.subarray(macAt))
}

/** The name of a subscription in the table, in queues and in logs; the hook cannot be found from it. */
export const refOf = (hook: string): string => idOf('hook', hook)

/**
 * The secrets handed out with a hook, derived and never stored. They stay the same while the generation does,
 * whatever root keys are added later.
 * @param label `token` for the A2A token, `credentials` for the Authorization header
 */
export function hookSecret(
  keys: RootKeys,
  hook: string,
  tenant: string,
  generation: number,
  label: 'token' | 'credentials',
): string {
  const version = Buffer.from(hook, 'base64url')[randomLength] ?? -1
  const key = deriveKey(rootOf(keys, version), 'hook', label, tenant, generation)
  return Buffer.from(hmac(key, hook)).toString('base64url')
}

const rootOf = (keys: RootKeys, version: number): Uint8Array => {
  const root = keys.get(version)
  if (root === undefined) throw new Error(`No root key of version ${version}`)
  return root
}

const macOf = (root: Uint8Array, head: Uint8Array): Uint8Array =>
  hmac(deriveKey(root, 'hook', 'mac'), head).subarray(0, macLength)
