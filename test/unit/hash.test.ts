// Hashes, names and comparisons of secrets, against published vectors where there are some.
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonical, deriveKey, hmac, idOf, sameSecret, sha256, sha256Hex } from '../../shared/hash.ts'

test('SHA-256 gives the digest of FIPS 180-4 for "abc"', () => {
  const digest = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
  expect(sha256Hex('abc')).toBe(digest)
  expect(Buffer.from(sha256(Buffer.from('abc'))).toString('hex')).toBe(digest)
})

test('HMAC-SHA-256 gives the MAC of RFC 4231 section 4.3', () => {
  const mac = Buffer.from(hmac(Buffer.from('Jefe'), 'what do ya want for nothing?'))
  expect(mac.toString('hex')).toBe('5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843')
})

test('a key that was used before gives the same MAC again, and every key its own', () => {
  const [a, b] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  for (const key of [a, b, a, b])
    expect(Buffer.from(hmac(key, 'x'))).toEqual(createHmac('sha256', key).update('x').digest())
})

test('parts joined otherwise give another name', () => {
  expect(idOf('ab', 'c')).not.toBe(idOf('a', 'bc'))
  expect(idOf('a', '')).not.toBe(idOf('a'))
  expect(idOf('1:a')).not.toBe(idOf('a'))
  fc.assert(
    fc.property(fc.array(fc.string()), fc.array(fc.string()), (a, b) => {
      expect(idOf(...a) === idOf(...b)).toBe(JSON.stringify(a) === JSON.stringify(b))
    }),
  )
})

test('a name is 24 characters that may stand in keys and URLs', () => {
  expect(idOf('x', 7)).toMatch(/^[\w-]{24}$/)
})

test('keys of two purposes or two roots differ, and asking again gives the same', () => {
  const [a, b] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const made = [
    deriveKey(a, 'x'),
    deriveKey(a, 'y'),
    deriveKey(a, 'x', 1),
    deriveKey(a, 'x1'),
    deriveKey(b, 'x'),
  ]
  expect(new Set(made.map(key => Buffer.from(key).toString('hex'))).size).toBe(5)
  expect(deriveKey(Buffer.from(a), 'x')).toEqual(deriveKey(a, 'x'))
  for (let n = 0; n < 1500; n++) deriveKey(a, 'many', n)
  expect(deriveKey(a, 'x')).toEqual(made[0])
})

test('case 64: secrets of other lengths are only unequal', () => {
  expect(sameSecret('tokén', 'token')).toBe(false)
  expect(sameSecret('', 'token')).toBe(false)
  expect(sameSecret('a'.repeat(1e6), 'token')).toBe(false)
  expect(sameSecret('token', Buffer.from('token'))).toBe(true)
})

test.each([
  ['{"10":1,"9":2,"a":3}', '{"10":1,"9":2,"a":3}'],
  ['{"\\ufb33":1,"\\ud83d\\ude00":2}', '{"\ud83d\ude00":2,"\ufb33":1}'],
  ['[1e30, 4.50, 2e-3, -0, 1E21]', '[1e+30,4.5,0.002,0,1e+21]'],
  ['"\\u20ac$\\u000f\\nA\'\\u0042\\\\\\"/"', '"\u20ac$\\u000f\\nA\'B\\\\\\"/"'],
  ['{"__proto__": {"b": 1, "a": []}}', '{"__proto__":{"a":[],"b":1}}'],
])('%s is written as RFC 8785 says', (text, written) => {
  expect(canonical(JSON.parse(text))).toBe(written)
})

test('equal values have one canonical text, in whatever order their members were written', () => {
  expect(canonical(JSON.parse('{"b":[{"y":1,"x":2}],"a":null}'))).toBe('{"a":null,"b":[{"x":2,"y":1}]}')
  expect(canonical(['b', 'a'])).not.toBe(canonical(['a', 'b']))
  fc.assert(
    fc.property(fc.jsonValue(), value => {
      expect(JSON.parse(canonical(value))).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
})
