// One agent, one subscription and its pushes, each part of which a test may replace. Keys are made anew in each run.

import { sha256Hex } from '../../shared/hash.ts'
import { chooseKeys, readJwks } from '../../shared/jwks.ts'
import type { JwtRule, Verification } from '../../shared/model.ts'
import { type Expected, type KeysFor, type Proof, verifyPush } from '../../shared/verify.ts'
import { makeKey, type SigningKey, signJwt } from './keys.ts'

/** Seconds since 1970 at which every push of these tests arrives unless it says otherwise. */
export const now = 1_767_225_600

export const hookUrl = 'https://relay.example/hooks/S1'
export const body =
  '{"statusUpdate":{"taskId":"t-100","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED"}}}'
export const token = 'tok_S1_9f2c7a41d0b84e6b'

export const k1 = makeKey('RS256', 'k1')
export const attacker = makeKey('RS256', 'k1')

export const rule: JwtRule = {
  jwksUrl: 'https://agent.example/.well-known/jwks.json',
  issuer: 'https://agent.example',
  algorithms: ['RS256', 'ES256', 'EdDSA'],
  digest: 'optional',
  windowSeconds: 300,
  skewSeconds: 60,
}

const { issuer: _issuer, ...anonymous } = rule

/** The rule of the 2025 A2A samples: a time and a digest, no issuer. */
export const legacyRule: JwtRule = { ...anonymous, digest: 'required' }

type Members = Record<string, unknown>

/** The claims of an honest push; members set to undefined are left out. */
export const claimsOf = (changes: Members = {}, of: string | Uint8Array = body): Members => ({
  iss: rule.issuer,
  aud: hookUrl,
  iat: now - 2,
  exp: now + 60,
  jti: 'j-1',
  taskId: 't-100',
  request_body_sha256: sha256Hex(of),
  ...changes,
})

/** An honest JWT, but for the changes. */
export const jwtOf = (changes: Members = {}, header: Members = {}, key: SigningKey = k1): string =>
  signJwt(key, claimsOf(changes), header)

export type Push = {
  /** The Bearer token; null for none. */
  jwt?: string | null
  headers?: Record<string, string | undefined>
  body?: string | Uint8Array
  /** Members of the published key set. */
  published?: unknown[]
  rule?: JwtRule
  verification?: Verification
  expected?: Partial<Expected>
  nowMs?: number
}

/** Keys straight from a published set, and how often they were asked for. */
export function keysFrom(published: unknown[]): { keysFor: KeysFor; asked: () => number } {
  const read = readJwks(Buffer.from(JSON.stringify({ keys: published })))
  let asked = 0
  const keysFor: KeysFor = async (_rule, kid, alg, tried) => {
    asked++
    const keys = read.ok ? chooseKeys(read.keys, kid, alg).filter(({ id }) => !tried?.has(id)) : []
    return keys.length > 0 ? { ok: true, keys } : { ok: false, why: 'no_key' }
  }
  return { keysFor, asked: () => asked }
}

/** Presents a push to the hook S1 of an agent with a JWT rule, or with the verification given. */
export async function present(push: Push = {}): Promise<{ proof: Proof; asked: number }> {
  const { keysFor, asked } = keysFrom(push.published ?? [k1.jwk])
  const jwt = push.jwt === undefined ? jwtOf() : push.jwt
  const proof = await verifyPush(
    {
      headers: { ...(jwt !== null && { authorization: `Bearer ${jwt}` }), ...push.headers },
      body: Buffer.from(push.body ?? body),
    },
    {
      hook: 'S1',
      hookUrl,
      tokens: [token],
      credentials: [],
      verification: push.verification ?? { jwt: push.rule ?? rule, token: true },
      ...push.expected,
    },
    keysFor,
    push.nowMs ?? now * 1000,
  )
  return { proof, asked: asked() }
}

/** `accepted`, or the reason of the refusal. */
export const outcome = (proof: Proof): string => (proof.ok ? 'accepted' : proof.reason)
