// Whatever arrives, the answer is a proof or a reason, never a throw; and no change to a signed push makes it a new one.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Verification } from '../../shared/model.ts'
import { explain } from '../../shared/reasons.ts'
import { encode, signText } from '../support/keys.ts'
import { body, claimsOf, jwtOf, k1, legacyRule, outcome, present, rule, token } from '../support/pushes.ts'

const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }))
const verifications: Verification[] = [
  { jwt: rule },
  { jwt: legacyRule, token: true },
  { token: true },
  { authorization: 'Basic' },
  { token: true, authorization: 'Bearer' },
  {},
]
const json = fc.json({ maxDepth: 4 })
const forged = fc
  .tuple(json, json, fc.string())
  .map(([head, claims, last]) => `${encode(head)}.${encode(claims)}.${last}`)
const header = fc.oneof(
  text,
  fc
    .tuple(fc.constantFrom('Bearer ', 'bearer  ', 'Basic ', 'Bearer\t', ''), fc.oneof(text, forged))
    .map(parts => parts.join('')),
)
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })

test('no header and no body makes it throw, and every refusal is explained', async () => {
  await fc.assert(
    fc.asyncProperty(
      maybe(header),
      maybe(fc.oneof(text, fc.constant(token))),
      maybe(text),
      fc.uint8Array({ maxLength: 200 }),
      fc.constantFrom(...verifications),
      async (authorization, first, second, bytes, verification) => {
        const { proof } = await present({
          jwt: null,
          headers: { authorization, 'x-a2a-notification-token': first, 'a2a-notification-token': second },
          body: bytes,
          verification,
        })
        if (proof.ok) expect([first?.trim(), second?.trim()]).toContain(token)
        else expect(explain(proof.reason)).toBeTypeOf('string')
      },
    ),
    { numRuns: 500 },
  )
})

const value = fc.oneof(
  fc.constantFrom(undefined, null, true, '', -1, 0, 1e300, [], {}, 'EdDSA', 'k1', 1_767_225_600),
  fc.jsonValue({ maxDepth: 3 }),
)
const names = (...list: string[]) => fc.dictionary(fc.constantFrom(...list), value, { maxKeys: 3 })

test('no header and no claims of a genuine signer make it throw', async () => {
  await fc.assert(
    fc.asyncProperty(
      names('alg', 'kid', 'typ', 'crit', 'b64', 'jwk', '__proto__'),
      names('iss', 'aud', 'iat', 'exp', 'nbf', 'jti', 'taskId', 'request_body_sha256', 'constructor'),
      fc.constantFrom(rule, legacyRule),
      async (head, claims, byRule) => {
        const jwt = signText(
          k1,
          JSON.stringify({ alg: 'RS256', kid: 'k1', ...head }),
          JSON.stringify(claimsOf(claims)),
        )
        const { proof } = await present({ jwt, rule: byRule })
        if (proof.ok) expect(proof.seenUntil).toBeGreaterThan(0)
        else expect(explain(proof.reason)).toBeTypeOf('string')
      },
    ),
    { numRuns: 200 },
  )
})

test('a signed push changed in any character is refused, or is the same push', async () => {
  const jwt = jwtOf()
  const { proof: honest } = await present({ jwt })
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: jwt.length - 1 }),
      fc.constantFrom(...'ABab01-_.='),
      async (at, character) => {
        const { proof } = await present({ jwt: jwt.slice(0, at) + character + jwt.slice(at + 1) })
        if (proof.ok) expect(proof).toEqual(honest)
      },
    ),
    { numRuns: 300 },
  )
})

test('a bound body changed in any byte is refused, or says the same', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: body.length }),
      fc.string({ minLength: 1, maxLength: 2 }),
      async (at, more) => {
        const changed = body.slice(0, at) + more + body.slice(at)
        const { proof } = await present({ body: changed })
        if (outcome(proof) === 'accepted') expect(JSON.parse(changed)).toEqual(JSON.parse(body))
      },
    ),
    { numRuns: 300 },
  )
})
