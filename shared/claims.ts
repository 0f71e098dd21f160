// Judges the claims of a JWT against an agent's rule and one reading of the clock. Pure; whoever calls it still has to check the signature.
import { isId } from './a2a/read.ts'
import type { Claims } from './jwt.ts'
import type { JwtRule } from './model.ts'
import type { Reason } from './reasons.ts'

/** `acceptedUntil`: seconds since 1970 from which the JWT is surely refused. */
export type ClaimsVerdict =
  | { ok: true; acceptedUntil: number; taskId: string | undefined }
  | { ok: false; reason: Reason }

/** Without iat nothing but exp tells the age: no push needs to be good for longer; seconds. */
const longestLife = 3600

/** Beyond any honest second (the year 5138), below any millisecond since 1973. */
const firstMillisecond = 1e11

/**
 * Judges issuer, audience, times and what the JWT is bound to.
 *
 * Differences of times are taken in whole seconds, fractions cut off: an age of exactly window + skew still passes and one
 * second more does not; likewise `exp` passed by exactly the skew, and `iat` or `nbf` ahead by exactly the skew.
 * Without `iat`, `exp` may lie at most 1 h + skew ahead of our clock; beside one, a far `exp` lengthens nothing.
 * @param hookUrl the expected audience unless the rule names another
 */
export function judgeClaims(claims: Claims, rule: JwtRule, hookUrl: string, nowMs: number): ClaimsVerdict {
  const reason = judgeParties(claims, rule, hookUrl) ?? judgeBinding(claims, rule)
  if (reason !== undefined) return { ok: false, reason }
  const times = judgeTimes(claims, rule, Math.floor(nowMs / 1000))
  if (!times.ok) return times
  return { ...times, taskId: typeof claims.taskId === 'string' ? claims.taskId : undefined }
}

/** Issuer and audience may be absent only where the body digest is required: the shape of the 2025 A2A samples. */
function judgeParties(claims: Claims, rule: JwtRule, hookUrl: string): Reason | undefined {
  const bound = rule.digest === 'required'
  if (rule.issuer === undefined ? !bound : claims.iss !== rule.issuer) return 'issuer_wrong'
  if (claims.aud === undefined && bound && rule.audience === undefined) return undefined
  const audiences: unknown[] = Array.isArray(claims.aud) ? claims.aud : [claims.aud]
  return audiences.includes(rule.audience ?? hookUrl) ? undefined : 'audience_wrong'
}

/** A JWT that names neither task nor body is no push: an issuer may make login tokens with the same key (RFC 8725 section 2.8). */
function judgeBinding(claims: Claims, rule: JwtRule): Reason | undefined {
  const { taskId, request_body_sha256: digest } = claims
  // No body names such a task; where the body names none, the claim itself is what is stored and asked for.
  if (taskId !== undefined && !isId(taskId)) return 'task_claim_differs'
  if (digest !== undefined) return undefined
  if (rule.digest === 'required') return 'digest_missing'
  return taskId === undefined ? 'not_a_push' : undefined
}

function judgeTimes(
  claims: Claims,
  { windowSeconds: window, skewSeconds: skew }: JwtRule,
  now: number,
): { ok: true; acceptedUntil: number } | { ok: false; reason: Reason } {
  const { iat, exp, nbf } = claims
  for (const time of [iat, exp, nbf]) {
    if (time === undefined) continue
    if (!isTime(time)) return { ok: false, reason: 'time_malformed' }
    if (time >= firstMillisecond) return { ok: false, reason: 'time_in_milliseconds' }
  }
  const issued = isTime(iat) ? iat : undefined
  const ends = isTime(exp) ? exp : undefined
  if (issued === undefined && ends === undefined) return { ok: false, reason: 'no_freshness' }
  if (Math.trunc(Math.max(issued ?? 0, isTime(nbf) ? nbf : 0) - now) > skew)
    return { ok: false, reason: 'from_the_future' }
  if (ends !== undefined && Math.trunc(now - ends) > skew) return { ok: false, reason: 'expired' }
  if (issued !== undefined && Math.trunc(now - issued) > window + skew)
    return { ok: false, reason: 'too_old' }
  if (issued === undefined && ends !== undefined && Math.trunc(ends - now - skew) > longestLife)
    return { ok: false, reason: 'lifetime_too_long' }
  const last = Math.min(issued === undefined ? Infinity : issued + window, ends ?? Infinity) + skew
  // Two seconds more than the last one that passes: one for its own length, one for the fraction that was cut off.
  return { ok: true, acceptedUntil: Math.floor(last) + 2 }
}

/** NumericDate: a number of seconds, fractions allowed (RFC 7519 section 2). JSON's 1e999 reads as Infinity and is none. */
const isTime = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0
