// What is taken from a published key set, what its owner is told, and that one bad member spoils nothing.
import { describe, expect, test } from 'vitest'
import { chooseKeys, familyOf, readJwks } from '../../shared/jwks.ts'
import { limits } from '../../shared/limits.ts'
import { makeKey } from '../support/keys.ts'

const rsa = makeKey('RS256', 'r')
const ec = makeKey('ES256', 'e')
const ed = makeKey('EdDSA', 'd')

const read = (text: string) => readJwks(Buffer.from(text))
const setOf = (...members: unknown[]) => read(JSON.stringify({ keys: members }))
const kids = (reading: ReturnType<typeof readJwks>): unknown =>
  reading.ok ? reading.keys.map(({ kid }) => kid) : reading.why

const privateOf = (key: typeof rsa): Record<string, unknown> => ({
  ...key.privateKey.export({ format: 'jwk' }),
  kid: key.kid,
})
const offCurve = { ...ec.jwk, y: ec.jwk.x }

describe('members', () => {
  test.each<[string, unknown, string]>([
    ['case 4: a symmetric key', { kty: 'oct', k: 'c2VjcmV0' }, 'symmetric_key_published'],
    ['case 27: a private RSA key', privateOf(rsa), 'private_key_published'],
    ['case 27: a private EC key', privateOf(ec), 'private_key_published'],
    ['case 27: a private Ed25519 key', privateOf(ed), 'private_key_published'],
    [
      'case 27: a private key of an unknown type',
      { kty: 'AKP', alg: 'ML-DSA-44', pub: 'AA', priv: 'AA' },
      'private_key_published',
    ],
    ['case 19: null', null, 'broken_key'],
    ['case 19: a list', [], 'broken_key'],
    ['case 19: coordinates that are no base64url', { ...ec.jwk, x: '!!' }, 'broken_key'],
    ['case 19: a point off the curve', offCurve, 'broken_key'],
    ['case 19: a modulus that is a number', { ...rsa.jwk, n: 17 }, 'broken_key'],
    ['case 19: an unknown type', { kty: 'FOO' }, 'unsupported_key'],
    ['case 24: secp256k1', makeKey('ES256K').jwk, 'unsupported_key'],
    ['case 23: Ed448', makeKey('Ed448').jwk, 'unsupported_key'],
    ['case 23: X25519', makeKey('X25519').jwk, 'unsupported_key'],
    ['an algorithm that does not fit the key', { ...ec.jwk, alg: 'RS256' }, 'unsupported_key'],
    ['a kid of 5000 characters', { ...ec.jwk, kid: 'k'.repeat(5000) }, 'unsupported_key'],
    ['RSA below 2048 bits', makeKey('weakRS256').jwk, 'weak_key'],
    ['RSA by which everybody can sign', { ...rsa.jwk, e: 'AQ' }, 'weak_key'],
  ])('%s is left out, and its owner is told', (_says, member, flag) => {
    const reading = setOf(member, ed.jwk)
    expect(kids(reading)).toEqual(['d'])
    expect(reading).toMatchObject({ flags: [flag] })
  })

  test.each<[string, unknown]>([
    ['for encryption', { ...rsa.jwk, use: 'enc' }],
    ['only for signing', { ...rsa.jwk, key_ops: ['sign'] }],
    ['for no operation at all', { ...rsa.jwk, key_ops: [] }],
    ['for an operation that is no list', { ...rsa.jwk, key_ops: 'verify' }],
  ])('case 22: a key %s is left out without a word', (_says, member) => {
    expect(setOf(member, ed.jwk)).toMatchObject({ keys: [{ kid: 'd' }], flags: [] })
  })

  test('what is kept holds public members only and reads back as the same keys', () => {
    const reading = setOf({ ...rsa.jwk, alg: 'RS256', use: 'sig', x5c: ['AA'], note: 'x' }, ec.jwk, {
      ...ed.jwk,
      kid: 7,
    })
    if (!reading.ok) throw new Error(reading.why)
    expect(reading.text).not.toContain('x5c')
    expect(reading.text).not.toContain('note')
    const again = read(reading.text)
    if (!again.ok) throw new Error(again.why)
    expect(again.keys.map(({ id, kid, alg }) => ({ id, kid, alg }))).toEqual(
      reading.keys.map(({ id, kid, alg }) => ({ id, kid, alg })),
    )
    expect(again.keys.map(({ kid }) => kid)).toEqual(['r', 'e', undefined])
  })
})

describe('sets', () => {
  test.each<[string, string | Uint8Array, string]>([
    ['an error page', '<html>no</html>', 'not_a_key_set'],
    ['a list', '[]', 'not_a_key_set'],
    ['members that are no list', '{"keys":{}}', 'not_a_key_set'],
    ['nothing', '', 'not_a_key_set'],
    ['null', 'null', 'not_a_key_set'],
    [
      'a good set in base64',
      Buffer.from(JSON.stringify({ keys: [ec.jwk] })).toString('base64'),
      'not_a_key_set',
    ],
    [
      'no UTF-8',
      Buffer.from(JSON.stringify({ keys: [{ ...ec.jwk, kid: '\u00ff' }] }), 'latin1'),
      'not_a_key_set',
    ],
    ['no member', '{"keys":[]}', 'no_usable_key'],
    ['no usable member', JSON.stringify({ keys: [privateOf(ec)] }), 'no_usable_key'],
    ['more than the cap', `{"keys":[],"x":"${'x'.repeat(limits.keySetBytes)}"}`, 'too_large'],
  ])('case 18: %s is no key set', (_says, bytes, why) => {
    const flags = why === 'no_usable_key' && String(bytes).includes('"d"') ? ['private_key_published'] : []
    expect(readJwks(Buffer.from(bytes))).toEqual({ ok: false, why, flags })
  })

  test('case 18: a byte order mark does not hurt', () => {
    expect(kids(read(`\uFEFF${JSON.stringify({ keys: [ec.jwk] })}`))).toEqual(['e'])
  })

  test('case 17: a set of 60 kB and 40 keys is read to its last key', () => {
    const others = Array.from({ length: 39 }, (_, n) => ({
      ...rsa.jwk,
      kid: `o${n}`,
      x5c: ['A'.repeat(1200)],
    }))
    const text = JSON.stringify({ keys: [...others, ec.jwk] })
    expect(text.length).toBeGreaterThan(60_000)
    const reading = read(text)
    expect(reading).toMatchObject({ ok: true, flags: [] })
    if (reading.ok) expect(chooseKeys(reading.keys, 'e', 'ES256')).toHaveLength(1)
  })

  test('case 17: of 10 000 members 200 are looked at, and the owner is told', () => {
    const reading = setOf(...Array.from({ length: 10_000 }, () => ({ kty: 'FOO' })))
    expect(kids(reading)).toBe('no_usable_key')
    expect(kids(setOf(...Array.from({ length: 200 }, () => ({})), ec.jwk))).toBe('no_usable_key')
    expect(setOf(ec.jwk, ...Array.from({ length: 200 }, () => ({})))).toMatchObject({
      flags: ['too_many_keys', 'unsupported_key'],
    })
  })

  test('a public key whose other fields are null is a public key', () => {
    const empty = { use: null, key_ops: null, alg: null, d: null, p: null, q: null, k: null, x5c: null }
    expect(setOf({ ...empty, ...rsa.jwk, d: null, alg: null })).toMatchObject({ ok: true, flags: [] })
    expect(setOf({ ...ec.jwk, d: 'AQAB', p: null })).toMatchObject({ flags: ['private_key_published'] })
  })

  test('an exponent or a modulus without end is not even read, nor is a coordinate', () => {
    const long = '_'.repeat(500_000)
    const flags = ['unsupported_key']
    expect(setOf(ec.jwk, { ...rsa.jwk, e: long })).toMatchObject({ ok: true, flags })
    expect(setOf(ec.jwk, { ...rsa.jwk, n: long })).toMatchObject({ ok: true, flags })
    expect(setOf(rsa.jwk, { ...ec.jwk, x: long })).toMatchObject({ ok: true, flags })
  })

  test('what is empty counts as not given', () => {
    const reading = setOf({ ...rsa.jwk, use: '', alg: '', d: '' })
    expect(reading).toMatchObject({ ok: true, flags: [] })
  })

  test('case 17: as many members as the cap holds cost no more than 200, and a byte beyond it none', () => {
    const head = `{"keys":[${JSON.stringify(ec.jwk)}`
    const full = `${head}${',{}'.repeat((limits.keySetBytes - head.length - 2) / 3)}]}`
    const padded = full.padEnd(limits.keySetBytes)
    expect(read(padded)).toMatchObject({ ok: true, flags: ['too_many_keys', 'unsupported_key'] })
    expect(read(`${padded} `)).toMatchObject({ ok: false, why: 'too_large' })
  })
})

describe('choosing', () => {
  const choose = (members: unknown[], kid: string | undefined, alg: string): unknown => {
    const reading = setOf(...members)
    return reading.ok ? chooseKeys(reading.keys, kid, alg).map(key => key.kid ?? '-') : reading.why
  }
  const { kid: _kid, ...anonymous } = ec.jwk

  test('case 20: without kid every key of the right shape may have signed, at most five', () => {
    expect(choose([rsa.jwk, ec.jwk, anonymous], undefined, 'ES256')).toEqual(['e', '-'])
    expect(choose(Array(9).fill(ec.jwk), undefined, 'ES256')).toHaveLength(5)
  })

  test('case 21: a kid is a hint: keys of that id, else keys without any, never keys of another id', () => {
    expect(choose([ec.jwk, anonymous], 'e', 'ES256')).toEqual(['e'])
    expect(choose([ec.jwk, anonymous], 'other', 'ES256')).toEqual(['-'])
    expect(choose([ec.jwk], 'other', 'ES256')).toEqual([])
    expect(choose([{ ...rsa.jwk, kid: 'e' }, ec.jwk], 'e', 'ES256')).toEqual(['e'])
  })

  test('case 23: EdDSA and Ed25519 are one', () => {
    for (const alg of ['EdDSA', 'Ed25519'])
      for (const named of [undefined, 'EdDSA', 'Ed25519'])
        expect(choose([{ ...ed.jwk, alg: named }], 'd', alg)).toEqual(['d'])
  })

  test('case 22: a key that names an algorithm verifies no other', () => {
    expect(choose([{ ...rsa.jwk, alg: 'RS512' }], 'r', 'RS256')).toEqual([])
    expect(choose([{ ...rsa.jwk, alg: 'PS256' }], 'r', 'PS256')).toEqual(['r'])
  })

  test.each(['none', 'HS256', 'ES256K', 'dir', 'toString', '__proto__', ''])(
    'no key fits the algorithm "%s"',
    alg => {
      expect(familyOf(alg)).toBeUndefined()
      expect(choose([rsa.jwk, ec.jwk, ed.jwk], undefined, alg)).toEqual([])
    },
  )
})
