// Decides whether a push is genuine and names it so that copies are known. Pure: time and keys are arguments, nothing is fetched or stored here.
import { isOneOf, isOneOfBasic, readAuthorization } from './authorization.ts'
import { judgeClaims } from './claims.ts'
import { type DigestMatch, matchDigest } from './digest.ts'
import type { PublishedKey } from './jwks.ts'
import { type Jwt, readJwt } from './jwt.ts'
import type { JwtRule, Verification } from './model.ts'
import type { Reason } from './reasons.ts'
import { signedReplay, unsignedMemoryMs, unsignedReplay } from './replay.ts'
import { isSignedBy } from './signature.ts'

/** A push as it arrived. */
export type Presented = {
  /** Names in lower case, repeated headers joined by commas, as Lambda hands them over. */
  headers: Record<string, string | undefined>
  /** The bytes as received. */
  body: Uint8Array
}

/** What the subscription and its agent expect. */
export type Expected = {
  hook: string
  /** The hook's URL: the audience unless the rule names another. */
  hookUrl: string
  /** Tokens handed out, of each generation that is accepted. */
  tokens: string[]
  /** Credentials handed out, as they stand in `authentication.credentials`. */
  credentials: string[]
  verification: Verification
}

/** At most five keys that may have signed, or why there are none. */
export type KeyAnswer = { ok: true; keys: PublishedKey[] } | { ok: false; why: 'unavailable' | 'no_key' }

/**
 * Finds keys. Asked only after everything that needs no key was right; asked once more with `tried` when the
 * signature fits none of the first answer, since a key may have been replaced under its old `kid` or without any.
 */
export type KeysFor = (
  rule: JwtRule,
  kid: string | undefined,
  alg: string,
  tried?: ReadonlySet<string>,
) => Promise<KeyAnswer>

export type Refused = {
  ok: false
  reason: Reason
  /** True if the fault may be ours or a key host's, so that the sender should come again. */
  later: boolean
}

export type Proof =
  | {
      ok: true
      by: ('jwt' | 'token' | 'authorization')[]
      /** Name of this push; copies of it have the same one. */
      replay: string
      /** Until when copies must be known, in ms since 1970. */
      seenUntil: number
      /** Claim `taskId`: the body must name the same task. */
      claimedTaskId?: string
      /** Over which form of the body the signed digest was right, and that digest (hex). */
      digest?: DigestMatch
      sha256?: string
    }
  | Refused

/**
 * Checks every proof that a push carries. Whatever is presented and was handed out must be right; with a JWT rule the
 * JWT is required, otherwise token or Authorization suffices, since each A2A SDK drops one or the other.
 * @param nowMs the one clock reading of this request
 */
export async function verifyPush(
  presented: Presented,
  expected: Expected,
  keysFor: KeysFor,
  nowMs: number,
): Promise<Proof> {
  const { verification, hook } = expected
  const token = judgeToken(presented, expected)
  if (token === 'wrong') return refuse('wrong_token')
  const header = headerOf(presented, 'authorization')
  if (verification.jwt !== undefined)
    return verifySigned({ presented, expected, rule: verification.jwt, header, token }, keysFor, nowMs)
  const authorization = judgeAuthorization(header, expected)
  if (authorization !== 'right' && authorization !== 'none') return refuse(authorization)
  if (token === 'none' && authorization === 'none') return refuse('no_proof')
  return {
    ok: true,
    by: [
      ...(token === 'right' ? ['token' as const] : []),
      ...(authorization === 'right' ? ['authorization' as const] : []),
    ],
    replay: unsignedReplay(hook, presented.body),
    seenUntil: nowMs + unsignedMemoryMs,
  }
}

const refuse = (reason: Reason): Refused => ({ ok: false, reason, later: reason === 'keys_unavailable' })

/** A header without the blanks around it; an empty one counts as absent. */
const headerOf = ({ headers }: Presented, name: string): string | undefined =>
  headers[name]?.trim() || undefined

/** Senders use two names for the token header; if both are there, both must be right. */
function judgeToken(presented: Presented, { verification, tokens }: Expected): 'right' | 'wrong' | 'none' {
  if (!verification.token) return 'none'
  const sent = ['x-a2a-notification-token', 'a2a-notification-token']
    .map(name => headerOf(presented, name))
    .filter(value => value !== undefined)
  if (sent.length === 0) return 'none'
  return sent.every(value => isOneOf(value, tokens)) ? 'right' : 'wrong'
}

function judgeAuthorization(
  header: string | undefined,
  { verification, credentials }: Expected,
): 'right' | 'none' | Reason {
  const scheme = verification.authorization
  if (scheme === undefined || header === undefined) return 'none'
  const sent = readAuthorization(header, scheme.toLowerCase())
  if (!sent.ok) return sent.reason
  const right =
    scheme === 'Basic' ? isOneOfBasic(sent.credentials, credentials) : isOneOf(sent.credentials, credentials)
  return right ? 'right' : 'wrong_credentials'
}

type Signed = {
  presented: Presented
  expected: Expected
  rule: JwtRule
  header: string | undefined
  token: 'right' | 'none'
}

/** Free checks first, then keys and signature, then the body: a forged push costs no fetch and no hash of its body. */
async function verifySigned(push: Signed, keysFor: KeysFor, nowMs: number): Promise<Proof> {
  const { presented, expected, rule } = push
  if (push.header === undefined) return refuse('jwt_missing')
  const sent = readAuthorization(push.header, 'bearer')
  if (!sent.ok) return refuse(sent.reason)
  const read = readJwt(sent.credentials, rule.algorithms)
  if (!read.ok) return refuse(read.reason)
  const verdict = judgeClaims(read.jwt.claims, rule, expected.hookUrl, nowMs)
  if (!verdict.ok) return refuse(verdict.reason)
  const fault = await checkSignature(read.jwt, rule, keysFor)
  if (fault !== undefined) return refuse(fault)
  const { claims } = read.jwt
  const digest = matchDigest(claims.request_body_sha256, presented.body)
  if (claims.request_body_sha256 !== undefined && digest === undefined) return refuse('digest_wrong')
  return {
    ok: true,
    by: push.token === 'right' ? ['jwt', 'token'] : ['jwt'],
    replay: signedReplay(expected.hook, claims, presented.body, digest !== undefined),
    seenUntil: (verdict.acceptedUntil + rule.skewSeconds) * 1000,
    ...(verdict.taskId !== undefined && { claimedTaskId: verdict.taskId }),
    ...(digest !== undefined && { digest, sha256: String(claims.request_body_sha256).toLowerCase() }),
  }
}

async function checkSignature(jwt: Jwt, rule: JwtRule, keysFor: KeysFor): Promise<Reason | undefined> {
  const first = await keysFor(rule, jwt.kid, jwt.alg)
  if (!first.ok) return first.why === 'unavailable' ? 'keys_unavailable' : 'unknown_key'
  if (first.keys.some(key => isSignedBy(jwt, key))) return undefined
  const second = await keysFor(rule, jwt.kid, jwt.alg, new Set(first.keys.map(({ id }) => id)))
  return second.ok && second.keys.some(key => isSignedBy(jwt, key)) ? undefined : 'signature_wrong'
}
