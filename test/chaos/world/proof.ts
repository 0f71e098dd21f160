// How the fake agents prove their pushes: by the token that was handed out, or by a signature with the one key that they all publish.
import type { HandedOut } from '../../../shared/a2a/configs.ts'
import { sha256Hex } from '../../../shared/hash.ts'
import { makeKey, signJwt } from '../../support/keys.ts'
import type { Task } from './agents.ts'

const key = makeKey('ES256', 'chaos')
const lifetimeSeconds = 300

/** The JWKS that every agent serves at every path. */
export const published = JSON.stringify({ keys: [key.jwk] })

/** Headers of one push; its copies have the same. */
export function proofOf(
  { id, agent }: Task,
  { url, id: config, token = '' }: HandedOut,
  body: string,
  now: number,
): Record<string, string> {
  if (!agent.kind.signs) return { 'x-a2a-notification-token': token }
  const iat = Math.floor(now / 1000)
  const claims = {
    ...{ iss: agent.url, aud: url, iat, exp: iat + lifetimeSeconds, taskId: id },
    ...{ jti: `${config} ${now} ${Math.random()}`, request_body_sha256: sha256Hex(body) },
  }
  return { authorization: `Bearer ${signJwt(key, claims)}` }
}
