// Which proofs suffice, alone and together; what is asked for, handed up and recorded.
import { expect, test } from 'vitest'
import { explain } from '../../shared/reasons.ts'
import { verifyPush } from '../../shared/verify.ts'
import {
  attacker,
  body,
  hookUrl,
  jwtOf,
  k1,
  keysFrom,
  now,
  type Push,
  present,
  rule,
  token,
} from '../support/pushes.ts'
import { judged } from '../support/rows.ts'

const tokenOnly = { token: true }
const either = { token: true, authorization: 'Bearer' as const }
const basic = { authorization: 'Basic' as const }
const secret = 'cred_S1_51f0a7'
const sent = (headers: Record<string, string>, verification: Push['verification'] = tokenOnly): Push => ({
  jwt: null,
  headers,
  ...(verification && { verification }),
  expected: {
    credentials: verification?.authorization === 'Basic' ? ['dXNlcjpwYTpzcw=='] : [secret, 'previous'],
    tokens: [token, 'previous-token'],
  },
})
const withClaims = (changes: Record<string, unknown>): Push => ({ jwt: jwtOf(changes) })
const jwtWith = (headers: Record<string, string>): Push => ({ headers })
const x = 'x-a2a-notification-token'
const plain = 'a2a-notification-token'

judged('tokens and credentials', [
  [0, 'the token under its v0.3 name', sent({ [x]: token }), 'accepted'],
  [0, 'the token under the name of Go and Rust', sent({ [plain]: token }), 'accepted'],
  [0, 'the token of the previous generation', sent({ [x]: 'previous-token' }), 'accepted'],
  [0, 'both names, one of them wrong', sent({ [x]: token, [plain]: 'no' }), 'wrong_token'],
  [0, 'two header lines, joined', sent({ [x]: `${token}, ${token}` }), 'wrong_token'],
  [0, 'with a JWT rule the token does not suffice', { jwt: null, headers: { [x]: token } }, 'jwt_missing'],
  [0, 'a JWT with the right token', jwtWith({ [x]: token }), 'accepted'],
  [0, 'a JWT with a wrong token', jwtWith({ [x]: 'no' }), 'wrong_token'],
  [
    0,
    'a JWT with a token where none was handed out',
    { headers: { [x]: 'own' }, verification: { jwt: rule } },
    'accepted',
  ],
  [0, 'either suffices: the token', sent({ [x]: token }, either), 'accepted'],
  [0, 'either suffices: the credentials', sent({ authorization: `Bearer ${secret}` }, either), 'accepted'],
  [
    0,
    'the right token beside wrong credentials',
    sent({ [x]: token, authorization: 'Bearer no' }, either),
    'wrong_credentials',
  ],
  [
    0,
    'the right credentials beside a wrong token',
    sent({ [x]: 'no', authorization: `Bearer ${secret}` }, either),
    'wrong_token',
  ],
  [0, 'nothing at all', sent({}, either), 'no_proof'],
  [0, 'nothing was asked for, so nothing is believed', sent({ [x]: token }, {}), 'no_proof'],
  [63, 'a token outside ASCII', sent({ [x]: 'tök' }), 'wrong_token'],
  [63, 'a token as an adapter would rewrite it', sent({ [x]: 't%C3%B6k' }), 'wrong_token'],
  [64, 'a token as long in characters, not in bytes', sent({ [x]: token.replace('e', 'é') }), 'wrong_token'],
  [64, 'a token of 1 MB', sent({ [x]: 'a'.repeat(1e6) }), 'wrong_token'],
  [65, 'an empty token is no token', sent({ [x]: '' }), 'no_proof'],
  [65, 'a blank token is no token', sent({ [x]: '  ' }), 'no_proof'],
  [
    65,
    'an empty token never equals an empty secret',
    { ...sent({ [x]: '' }), expected: { tokens: [''] } },
    'no_proof',
  ],
  [
    65,
    'nothing never equals an empty secret',
    { ...sent({}), expected: { tokens: [''], credentials: [''] } },
    'no_proof',
  ],
  [66, 'blanks around the right token', sent({ [x]: ` ${token} ` }), 'accepted'],
  [67, 'bearer in lower case', { jwt: null, headers: { authorization: `bearer ${jwtOf()}` } }, 'accepted'],
  [
    67,
    'two blanks behind Bearer',
    { jwt: null, headers: { authorization: `BEARER  ${jwtOf()}` } },
    'accepted',
  ],
  [
    67,
    'a tab behind Bearer',
    { jwt: null, headers: { authorization: `Bearer\t${jwtOf()}` } },
    'authorization_malformed',
  ],
  [
    67,
    'nothing between Bearer and token',
    { jwt: null, headers: { authorization: `Bearer${jwtOf()}` } },
    'scheme_unsupported',
  ],
  [67, 'Bearer alone', { jwt: null, headers: { authorization: 'Bearer' } }, 'authorization_malformed'],
  [67, 'another scheme', { jwt: null, headers: { authorization: `Token ${jwtOf()}` } }, 'scheme_unsupported'],
  [
    67,
    'credentials keep their case',
    sent({ authorization: `Bearer ${secret.toUpperCase()}` }, either),
    'wrong_credentials',
  ],
  [
    68,
    'two values, the second wrong',
    { jwt: null, headers: { authorization: `Bearer ${jwtOf()}, Bearer evil` } },
    'several_authorizations',
  ],
  [
    68,
    'two lines, joined without a blank',
    { jwt: null, headers: { authorization: `Bearer ${jwtOf()},Bearer evil` } },
    'several_authorizations',
  ],
  [
    68,
    'two credentials, both right',
    sent({ authorization: `Bearer ${secret}, Bearer ${secret}` }, either),
    'several_authorizations',
  ],
  [69, 'the credentials as handed out', sent({ authorization: 'Basic dXNlcjpwYTpzcw==' }, basic), 'accepted'],
  [69, 'basic in lower case', sent({ authorization: 'basic dXNlcjpwYTpzcw==' }, basic), 'accepted'],
  [69, 'padding too much', sent({ authorization: 'Basic dXNlcjpwYTpzcw===' }, basic), 'wrong_credentials'],
  [69, 'padding too little', sent({ authorization: 'Basic dXNlcjpwYTpzcw' }, basic), 'wrong_credentials'],
  [
    69,
    'a newline inside',
    sent({ authorization: 'Basic dXNlcjpw\nYTpzcw==' }, basic),
    'authorization_malformed',
  ],
  [69, 'not encoded', sent({ authorization: 'Basic user:pa:ss' }, basic), 'wrong_credentials'],
  [69, 'another password', sent({ authorization: 'Basic dXNlcjpwYTpzdA==' }, basic), 'wrong_credentials'],
  [
    69,
    'Bearer where Basic was handed out',
    sent({ authorization: `Bearer ${secret}` }, basic),
    'scheme_unsupported',
  ],
  [70, 'an agent that cannot send its scheme arrives without proof', sent({}, basic), 'no_proof'],
  [70, 'ApiKey is no scheme of ours', sent({ authorization: 'ApiKey x' }, basic), 'scheme_unsupported'],
])

test.each<[string, Push]>([
  ['a wrong token', jwtWith({ [x]: 'no' })],
  ['no JWT', { jwt: null }],
  ['a forbidden algorithm', { jwt: jwtOf({}, { alg: 'none' }) }],
  ['a wrong issuer', withClaims({ iss: 'x' })],
  ['a wrong audience', withClaims({ aud: 'x' })],
  ['an old token', withClaims({ iat: now - 1000 })],
  [
    'a missing digest',
    { ...withClaims({ request_body_sha256: undefined }), rule: { ...rule, digest: 'required' } },
  ],
])('%s is refused before any key is looked for', async (_says, push) => {
  const { proof, asked } = await present(push)
  expect(proof.ok).toBe(false)
  expect(asked).toBe(0)
})

test('case 6: a forged token asks for keys at most twice, and never names where', async () => {
  const { asked } = await present({ jwt: jwtOf({}, { jku: 'https://attacker.example' }, attacker) })
  expect(asked).toBe(2)
})

test('an agent whose key host is down is asked to come again', async () => {
  const proof = await verifyPush(
    { headers: { authorization: `Bearer ${jwtOf()}` }, body: Buffer.from(body) },
    { hook: 'S1', hookUrl, tokens: [], credentials: [], verification: { jwt: rule } },
    async () => ({ ok: false, why: 'unavailable' }),
    now * 1000,
  )
  expect(proof).toEqual({ ok: false, reason: 'keys_unavailable', later: true })
})

test('case 31: the task that was signed is handed up', async () => {
  const { proof } = await present(withClaims({ taskId: 't-999' }))
  expect(proof).toMatchObject({ ok: true, claimedTaskId: 't-999' })
})

test('what was proven is recorded', async () => {
  expect((await present({})).proof).toMatchObject({ by: ['jwt'], digest: 'raw' })
  expect((await present(jwtWith({ [x]: token }))).proof).toMatchObject({ by: ['jwt', 'token'] })
  expect((await present({ body: JSON.stringify(JSON.parse(body), null, 2) })).proof).toMatchObject({
    by: ['jwt'],
    digest: 'compact',
  })
  expect((await present(withClaims({ request_body_sha256: undefined }))).proof).not.toHaveProperty('digest')
  expect(
    (await present(sent({ [x]: token, authorization: `Bearer ${secret}` }, either))).proof,
  ).toMatchObject({
    by: ['token', 'authorization'],
  })
})

test('every refusal has words for its owner that name no secret', async () => {
  const { proof } = await present(jwtWith({ [x]: 'no' }))
  expect(proof).toEqual({ ok: false, reason: 'wrong_token', later: false })
  expect(explain('wrong_token')).toMatch(/token/)
})

test('a key replaced under its old kid is asked for once more, then believed', async () => {
  const sets = [[attacker.jwk], [k1.jwk]]
  const asked: (ReadonlySet<string> | undefined)[] = []

  const proof = await verifyPush(
    { headers: { authorization: `Bearer ${jwtOf()}` }, body: Buffer.from(body) },
    { hook: 'S1', hookUrl, tokens: [], credentials: [], verification: { jwt: rule } },
    (_rule, kid, alg, tried) => {
      asked.push(tried)
      return keysFrom(sets[asked.length - 1] ?? []).keysFor(rule, kid, alg, tried)
    },
    now * 1000,
  )
  expect(proof.ok).toBe(true)
  expect(asked[1]?.size).toBe(1)
})
