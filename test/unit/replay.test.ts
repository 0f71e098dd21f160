// What makes two pushes one, and how long a push is remembered.
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../shared/hash.ts'
import { signJwt } from '../support/keys.ts'
import {
  body,
  claimsOf,
  hookUrl,
  jwtOf,
  k1,
  legacyRule,
  now,
  type Push,
  present,
  rule,
  token,
} from '../support/pushes.ts'

const spaced = JSON.stringify(JSON.parse(body), null, 2)
const right = sha256Hex(body)
const claims = (changes: Record<string, unknown>, more: Push = {}): Push => ({ jwt: jwtOf(changes), ...more })
const tokenOnly = { token: true }
const sent = (headers: Record<string, string>): Push => ({ jwt: null, headers, verification: tokenOnly })
const jwtWith = (headers: Record<string, string>): Push => ({ headers })
const x = 'x-a2a-notification-token'
const plain = 'a2a-notification-token'

describe('what makes two pushes one', () => {
  const replay = async (push: Push): Promise<string> => {
    const { proof } = await present(push)
    if (!proof.ok) throw new Error(proof.reason)
    return proof.replay
  }
  const legacy = { iss: undefined, aud: undefined, exp: undefined, jti: undefined, taskId: undefined }
  const other = body.replace('COMPLETED', 'WORKING')
  const bound = (changes: Record<string, unknown>, of = body): Push => ({
    jwt: jwtOf({ ...changes, request_body_sha256: sha256Hex(of) }),
    body: of,
  })
  const unbound = (changes: Record<string, unknown>, of = body): Push => ({
    jwt: jwtOf({ ...changes, request_body_sha256: undefined }),
    body: of,
  })
  const s2 = 'https://relay.example/hooks/S2'
  const aud = [hookUrl, s2]
  const onS2: Push = { jwt: jwtOf({ aud }), expected: { hook: 'S2', hookUrl: s2 } }
  const reordered = signJwt(k1, Object.fromEntries(Object.entries(claimsOf({ jti: undefined })).reverse()))

  test.each<[string, string, Push, Push]>([
    ['case 74', 'the same push twice', {}, {}],
    ['case 84', 'a retry signed afresh under its jti', bound({ iat: now - 5 }), bound({ iat: now - 1 })],
    ['case 84', 'the same unsigned body', sent({ [x]: token }), sent({ [plain]: token })],
    ['case 84', 'a replay without the token header', jwtWith({ [x]: token }), {}],
    ['rule', 'equal claims in another order', { jwt: jwtOf({ jti: undefined }) }, { jwt: reordered }],
    [
      'rule',
      'a digest in the other case',
      bound({}),
      { jwt: jwtOf({ request_body_sha256: right.toUpperCase() }) },
    ],
    ['case 90', 'another spelling under one jti', {}, { body: spaced }],
    [
      'case 90',
      'another spelling in the legacy shape',
      claims(legacy, { rule: legacyRule }),
      claims(legacy, { rule: legacyRule, body: spaced }),
    ],
    ['case 90', 'another body under a jti that binds none', unbound({}), unbound({}, other)],
  ])('%s: %s is one', async (_number, _says, a, b) => {
    expect(await replay(a)).toBe(await replay(b))
  })

  test.each<[string, string, Push, Push]>([
    ['case 83', 'equal bodies under two jti', bound({ jti: 'a' }), bound({ jti: 'b' })],
    [
      'case 83',
      'equal bodies under no jti',
      bound({ jti: null, iat: now - 2 }),
      bound({ jti: null, iat: now - 1 }),
    ],
    [
      'case 83',
      'equal bodies under an empty jti',
      bound({ jti: '', iat: now - 2 }),
      bound({ jti: '', iat: now - 1 }),
    ],
    ['case 84', 'two unsigned bodies', sent({ [x]: token }), { ...sent({ [x]: token }), body: other }],
    ['case 85', 'one event for two subscriptions', { jwt: jwtOf({ aud }) }, onS2],
    [
      'case 85',
      'one unsigned event for two subscriptions',
      sent({ [x]: token }),
      { ...sent({ [x]: token }), expected: { hook: 'S2', tokens: [token] } },
    ],
    [
      'case 86',
      'one jti of two issuers',
      {},
      { jwt: jwtOf({ iss: 'https://b' }), rule: { ...rule, issuer: 'https://b' } },
    ],
    ['case 86', 'a jti as text and as number', bound({ jti: '1' }), bound({ jti: 1 })],
    [
      'case 87',
      'two bodies under one jti that bind them',
      bound({ jti: 'task-100' }),
      bound({ jti: 'task-100' }, other),
    ],
    [
      'case 87',
      'two tokens under one jti that bind no body',
      unbound({ jti: 'x', iat: now - 2 }),
      unbound({ jti: 'x', iat: now - 1 }),
    ],
    [
      'rule',
      'two bodies signed in one second without jti',
      unbound({ jti: undefined }),
      unbound({ jti: undefined }, other),
    ],
    [
      'rule',
      'two bound bodies in one second without jti',
      bound({ jti: undefined }),
      bound({ jti: undefined }, other),
    ],
  ])('%s: %s are two', async (_number, _says, a, b) => {
    expect(await replay(a)).not.toBe(await replay(b))
  })

  test('the name gives away neither hook nor token', async () => {
    expect(await replay({})).toMatch(/^[\w-]{24}$/)
  })
})

describe('how long a push is remembered', () => {
  const until = async (push: Push): Promise<number> => {
    const { proof } = await present(push)
    if (!proof.ok) throw new Error(proof.reason)
    return proof.seenUntil
  }

  test('an unsigned push for 10 s', async () => {
    expect(await until(sent({ [x]: token }))).toBe((now + 10) * 1000)
  })

  test.each<[string, Record<string, unknown>]>([
    ['exp ends it', { iat: now, exp: now + 60 }],
    ['the window ends it', { iat: now, exp: now + 3000 }],
    ['only iat', { iat: now + 0.5, exp: undefined }],
    ['only exp', { iat: undefined, exp: now + 100.7 }],
  ])('a signed push until no clock within the skew would take it again: %s', async (_says, changes) => {
    const seenUntil = await until(claims(changes))
    const late = await present(claims(changes, { nowMs: seenUntil - rule.skewSeconds * 1000 }))
    expect(late.proof.ok).toBe(false)
    const early = await present(claims(changes, { nowMs: seenUntil - (rule.skewSeconds + 3) * 1000 }))
    expect(early.proof.ok).toBe(true)
  })
})
