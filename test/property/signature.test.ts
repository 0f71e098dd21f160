// Our check of a signature says what jose says, of right ones and of wrong ones of every kind.
import { constants, sign } from 'node:crypto'
import fc from 'fast-check'
import { compactVerify } from 'jose'
import { describe, expect, test } from 'vitest'
import { algorithms, familyOf, type PublishedKey, readJwks } from '../../shared/jwks.ts'
import { isSignedBy } from '../../shared/signature.ts'
import { encode, makeKey, type SigningKey, signText } from '../support/keys.ts'

const made: Record<string, SigningKey> = {
  RSA: makeKey('RS256'),
  'P-256': makeKey('ES256'),
  'P-384': makeKey('ES384'),
  'P-521': makeKey('ES512'),
  Ed25519: makeKey('EdDSA'),
}

function keyFor(alg: string): { signing: SigningKey; published: PublishedKey } {
  const signing = made[familyOf(alg) ?? '']
  const read = signing && readJwks(Buffer.from(JSON.stringify({ keys: [signing.jwk] })))
  const [published] = read?.ok ? read.keys : []
  if (signing === undefined || published === undefined) throw new Error(`No key for ${alg}`)
  return { signing, published }
}

const ours = (text: string, alg: string, key: PublishedKey): boolean =>
  isSignedBy({ text, alg, kid: undefined, claims: {} }, key)

const joses = (text: string, alg: string, { key }: PublishedKey): Promise<boolean> =>
  compactVerify(text, key, { algorithms: [alg] }).then(
    () => true,
    () => false,
  )

const jwt = (alg: string, claims: unknown, key: SigningKey): string =>
  signText(key, JSON.stringify({ alg }), JSON.stringify(claims), alg)

const claims = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 })

describe.each([...algorithms])('%s', alg => {
  const { signing, published } = keyFor(alg)

  test('what the key signed is right', async () => {
    await fc.assert(
      fc.asyncProperty(claims, async body => {
        const text = jwt(alg, body, signing)
        expect(ours(text, alg, published)).toBe(true)
        expect(await joses(text, alg, published)).toBe(true)
      }),
      { numRuns: 20 },
    )
  })

  test('with its signature or its claims bent anywhere it is what jose takes it for', async () => {
    const text = jwt(alg, { iat: 1 }, signing)
    const [head = '', body = '', signature = ''] = text.split('.')
    const bytes = Buffer.from(signature, 'base64url')
    const bent = fc.oneof(
      fc.nat(bytes.length * 8 - 1).map(bit => {
        const copy = Buffer.from(bytes)
        copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        return `${head}.${body}.${encode(copy)}`
      }),
      fc.nat(bytes.length).map(length => `${head}.${body}.${encode(bytes.subarray(0, length))}`),
      fc
        .uint8Array({ minLength: 1, maxLength: 3 })
        .map(more => `${head}.${body}.${encode(Buffer.concat([bytes, more]))}`),
      fc.uint8Array({ maxLength: 600 }).map(any => `${head}.${body}.${encode(any)}`),
      fc.constant(`${head}.${encode('{"iat":2}')}.${signature}`),
      fc.constant(`${head}.${body}.${encode(Buffer.alloc(bytes.length))}`),
    )
    await fc.assert(
      fc.asyncProperty(bent, async text => {
        expect(ours(text, alg, published)).toBe(await joses(text, alg, published))
      }),
      { numRuns: 100 },
    )
  })

  test('keys of other families are refused, whatever they signed', () => {
    for (const other of algorithms) {
      if (familyOf(other) === familyOf(alg)) continue
      const { signing: foreign, published: theirs } = keyFor(other)
      expect(ours(jwt(other, {}, foreign), alg, theirs)).toBe(false)
    }
  })
})

describe('signatures of the right key in a wrong form are refused', () => {
  const input = `${encode('{"alg":"-"}')}.${encode('{}')}`
  const data = Buffer.from(input)
  const rsa = keyFor('RS256')
  const ec = keyFor('ES256')
  const pss = (saltLength: number) =>
    sign('sha256', data, {
      key: rsa.signing.privateKey,
      padding: constants.RSA_PKCS1_PSS_PADDING,
      saltLength,
    })

  test.each([
    ['ES256 in DER', 'ES256', ec, sign('sha256', data, ec.signing.privateKey)],
    ['PS256 with no salt', 'PS256', rsa, pss(0)],
    ['PS256 with a longer salt', 'PS256', rsa, pss(64)],
    ['PS256 for RS256', 'RS256', rsa, pss(32)],
    ['RS256 for PS256', 'PS256', rsa, sign('sha256', data, rsa.signing.privateKey)],
    ['RS512 for RS256', 'RS256', rsa, sign('sha512', data, rsa.signing.privateKey)],
  ] as const)('%s', (_form, alg, { published }, signature) => {
    expect(ours(`${input}.${encode(signature)}`, alg, published)).toBe(false)
  })

  test('while in the right form they are taken', () => {
    expect(ours(`${input}.${encode(pss(32))}`, 'PS256', rsa.published)).toBe(true)
  })
})
