// Signed pushes at the door and the key sets that agents publish: rotated, broken, slow, moved, too large. One row a case.
import { createHmac } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { dialects } from '../support/dialects.ts'
import { type Door, type Push, played, type Row, type Signer, signed, startDoor } from '../support/door.ts'
import { encode, makeKey, type SigningKey, signatureOf } from '../support/keys.ts'
import { k1 } from '../support/pushes.ts'
import type { Answer } from '../support/receiver.ts'

let door: Door

beforeAll(async () => {
  door = await startDoor()
})

afterAll(() => door.stop())

const minute = 60_000
const hour = 60 * minute

const k2 = makeKey('RS256', 'k2')
const twin = makeKey('RS256', 'k1')
const ec = makeKey('ES256', 'e1')
const ed = makeKey('EdDSA', 'd1')
const { kid: _kid, ...anonymous } = k1.jwk

const setOf = (...keys: unknown[]): string => JSON.stringify({ keys })
const by = (key: SigningKey, header: Record<string, unknown> = {}): Signer => signed({}, header, key)
/** An honest push to an agent that publishes these keys. */
const published = (...keys: unknown[]): Push => ({ to: { published: keys } })
const owned = ({ privateKey, kid }: SigningKey): object => ({ ...privateKey.export({ format: 'jwk' }), kid })

played('which published key may have signed', () => door, [
  [
    4,
    'a symmetric key in the set lets nobody sign',
    { ...published({ kty: 'oct', kid: 'o', k: 'c2VjcmV0' }, k2.jwk), jwt: symmetric('secret', 'o') },
    'DENY',
  ],
  [
    4,
    'a symmetric key does not spoil the others',
    published({ kty: 'oct', kid: 'o', k: 'c2VjcmV0' }, k1.jwk),
    'ACK',
  ],
  [
    19,
    'bad members do not spoil the set',
    published(
      null,
      { kty: 'FOO', kid: 'x' },
      { kty: 'EC', crv: 'P-256', x: '!!', y: '!!', kid: 'k1' },
      { ...k1.jwk, n: 17 },
      k1.jwk,
    ),
    'ACK',
  ],
  [
    20,
    'no kid, three keys',
    { ...published(k2.jwk, twin.jwk, anonymous), jwt: by({ ...k1, kid: undefined }) },
    'ACK',
  ],
  [20, 'a key without kid', published(anonymous), 'ACK'],
  [21, 'two kinds of key share a kid', published({ ...ec.jwk, kid: 'k1' }, k1.jwk), 'ACK'],
  [
    21,
    'two keys of one kind share a kid',
    [published(twin.jwk, k1.jwk), published(k1.jwk, twin.jwk)],
    ['ACK', 'ACK'],
  ],
  ...[{ use: 'enc' }, { key_ops: ['sign'] }, { alg: 'RS512' }].map(
    (marks): Row => [
      22,
      `a key marked ${JSON.stringify(marks)}`,
      published({ ...k1.jwk, ...marks }, k2.jwk),
      'DENY',
    ],
  ),
  [
    22,
    'a key marked for verifying',
    published({ ...k1.jwk, use: 'sig', key_ops: ['verify'], alg: 'RS256' }),
    'ACK',
  ],
  ...['EdDSA', 'Ed25519'].flatMap(alg =>
    [undefined, 'EdDSA', 'Ed25519'].map(
      (named): Row => [
        23,
        `header ${alg}, key ${named ?? 'without alg'}`,
        { ...published({ ...ed.jwk, alg: named }), jwt: by(ed, { alg }) },
        'ACK',
      ],
    ),
  ),
  ...['Ed448', 'X25519'].map(
    (kind): Row => [23, kind, { ...published(makeKey(kind, 'd1').jwk, k1.jwk), jwt: by(ed) }, 'DENY'],
  ),
  [
    24,
    'secp256k1, under its own name and under that of P-256',
    () => {
      const key = makeKey('ES256K', 'z')
      const push = published(key.jwk, k1.jwk)
      return both({ ...push, jwt: shaped(key, 'ES256K') }, { ...push, jwt: shaped(key, 'ES256') })
    },
    ['DENY', 'DENY'],
  ],
  [26, 'an ECDSA signature of fixed length', { ...published(ec.jwk), jwt: by(ec) }, 'ACK'],
  [26, 'the same in DER', { ...published(ec.jwk), jwt: shaped(ec, 'ES256', derOf) }, 'DENY'],
  [26, 'zeros', { ...published(ec.jwk), jwt: shaped(ec, 'ES256', () => new Uint8Array(64)) }, 'DENY'],
  [26, '63 bytes', { ...published(ec.jwk), jwt: shaped(ec, 'ES256', right => right.subarray(1)) }, 'DENY'],
  [
    26,
    '65 bytes',
    { ...published(ec.jwk), jwt: shaped(ec, 'ES256', right => Buffer.from([0, ...right])) },
    'DENY',
  ],
  [27, 'a private key in the set', { ...published(owned(k2), k1.jwk), jwt: by(k2) }, 'DENY'],
  [27, 'the others beside a private key', published(owned(k2), k1.jwk), 'ACK'],
  [27, 'a private key and nothing else is as good as no set', published(owned(k1)), 'LATER'],
])

async function both(...pushes: Push[]): Promise<string[]> {
  const verdicts: string[] = []
  for (const push of pushes) verdicts.push(await door.push(push))
  return verdicts
}

function symmetric(secret: string, kid: string): Signer {
  return honest => {
    const input = `${encode(JSON.stringify({ alg: 'HS256', kid }))}.${encode(JSON.stringify(honest))}`
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
  }
}

/** Signs over any name of an algorithm, and may change the signature. */
function shaped(key: SigningKey, alg: string, change = (right: Uint8Array): Uint8Array => right): Signer {
  return honest => {
    const input = `${encode(JSON.stringify({ alg, kid: key.kid }))}.${encode(JSON.stringify(honest))}`
    return `${input}.${encode(change(signatureOf('ES256', key.privateKey, input)))}`
  }
}

/** The ASN.1 form of a signature that JOSE writes as r and s. */
function derOf(signature: Uint8Array): Uint8Array {
  const numbers = [signature.subarray(0, 32), signature.subarray(32)].map(part => [2, 33, 0, ...part])
  return Uint8Array.of(48, 70, ...numbers.flat())
}

let hosts = 0

/** A hook whose agent's key host answers like this, and may be asked again. */
async function hosted(answer: Answer) {
  const spot = await door.spot({ n: ++hosts }, answer)
  door.ground.advance(minute)
  return spot
}

/** A first push to an agent whose key host answers like this. */
const first =
  (answer: Answer): Row[2] =>
  async ({ push }) =>
    push({ to: await hosted(answer) })

const bulky = Array.from({ length: 39 }, (_, n) => ({ ...ec.jwk, kid: `e${n}`, x5c: ['A'.repeat(1500)] }))
const many = Array.from({ length: 10_000 }, (_, n) => ({ ...ec.jwk, kid: `e${n}` }))

played('what the key host answers', () => door, [
  [
    14,
    'a failure is not remembered as an answer',
    async ({ push, serve, ground }) => {
      const to = await hosted({ status: 500 })
      const failed = await push({ to })
      serve(to, { body: setOf(k1.jwk) })
      ground.advance(35_000)
      return [failed, await push({ to })]
    },
    ['LATER', 'ACK'],
  ],
  [
    15,
    'keys that never come, or come too slowly',
    async ({ send, serve }) => {
      const slow = [await hosted({ status: 500 }), await hosted({ status: 500 })]
      const [silent, trickling] = slow
      if (silent) serve(silent, { fault: 'hang' })
      if (trickling) serve(trickling, { fault: 'trickle' })
      const answers = await Promise.all(slow.map(to => send({ to })))
      return answers.map(({ status, headers }) => [status, headers['retry-after']])
    },
    // Side by side, so that what each did in AWS is not told apart here.
    [
      [503, '2'],
      [503, '2'],
    ],
  ],
  ...['/elsewhere', 'http://169.254.169.254/latest/meta-data/'].map(
    (location): Row => [
      16,
      `a redirect to ${location} is not followed`,
      async ({ push, host }) => {
        const to = await hosted({ status: 302, headers: { location } })
        return [await push({ to }), host.requests.some(({ url }) => url === '/elsewhere')]
      },
      ['LATER', false],
    ],
  ),
  [17, '60 kB in 40 keys, ours the last', first({ body: setOf(...bulky, k1.jwk) }), 'ACK'],
  [17, '5 MB', first({ body: `{"keys":[${JSON.stringify(k1.jwk)}],"more":"${'x'.repeat(5e6)}"}` }), 'LATER'],
  [
    17,
    'a few kB that inflate to far more',
    first({ headers: { 'content-encoding': 'gzip' }, body: gzipSync(`${' '.repeat(2e7)}${setOf(k1.jwk)}`) }),
    'LATER',
  ],
  [17, '10 000 keys', first({ body: setOf(...many, k1.jwk) }), 'LATER'],
  ...[
    '<html>Sign in</html>',
    '[]',
    '{"keys":{}}',
    '{"keys":[]}',
    Buffer.from(setOf(k1.jwk)).toString('base64'),
  ].map(
    (body): Row => [
      18,
      `${body.slice(0, 12)} is no set, and the one before stays in use`,
      async ({ push, serve, ground }) => {
        const to = await hosted({ body })
        const unknown = await push({ to })
        serve(to, { body: setOf(k1.jwk) })
        ground.advance(minute)
        const known = await push({ to })
        serve(to, { body })
        ground.advance(hour)
        return [unknown, known, await push({ to })]
      },
      ['LATER', 'ACK', 'ACK'],
    ],
  ),
  [18, 'a byte order mark in front of a good set', first({ body: `\ufeff${setOf(k1.jwk)}` }), 'ACK'],
])

test('case 8: an unknown kid is refused, and costs at most one fetch', async () => {
  const to = await hosted({ body: setOf(k1.jwk) })
  expect(await door.push({ to })).toBe('ACK')
  const before = door.fetches(to)
  door.ground.advance(minute)
  for (let n = 0; n < 3; n++) expect(await door.push({ to, jwt: by(k1, { kid: 'nope' }) })).toBe('DENY')
  expect(door.fetches(to) - before).toBe(1)
})

test('case 9: a key that was added while the set was fresh is believed after one fetch', async () => {
  const to = await hosted({ body: setOf(k1.jwk) })
  expect(await door.push({ to })).toBe('ACK')
  const before = door.fetches(to)
  door.ground.advance(2 * minute)
  door.serve(to, { body: setOf(k1.jwk, k2.jwk) })
  expect(await door.push({ to, jwt: by(k2) })).toBe('ACK')
  expect(door.fetches(to) - before).toBe(1)
})

test('case 11: made-up kids at three instances cost one fetch, and the honest push among them is taken', async () => {
  const to = await hosted({ body: setOf(k1.jwk) })
  expect(await door.push({ to })).toBe('ACK')
  door.ground.advance(minute)
  const before = door.fetches(to)
  const as = dialects['Function URL']
  for (const at of [door.instance(), door.instance(), door.instance()]) {
    for (let n = 0; n < 20; n++)
      expect(await door.push({ to, as, at, jwt: by(k1, { kid: `made up ${n}` }) })).toBe('DENY')
    expect(await door.push({ to, as, at })).toBe('ACK')
  }
  expect(door.fetches(to) - before).toBeLessThanOrEqual(1)
})

test('case 46: a set that must not be stored is kept for a minute, or each push would cost a fetch', async () => {
  const to = await hosted({ body: setOf(k1.jwk), headers: { 'cache-control': 'no-store, max-age=0' } })
  const before = door.fetches(to)
  for (let n = 0; n < 5; n++) {
    expect(await door.push({ to })).toBe('ACK')
    door.ground.advance(11_000)
  }
  expect(door.fetches(to) - before).toBe(1)
})

test('case 46: a key that was withdrawn is refused once its set has run out, after a day at the latest', async () => {
  const usual = await hosted({ body: setOf(k1.jwk) })
  const lasting = await hosted({ body: setOf(k1.jwk), headers: { 'cache-control': 'max-age=31536000' } })
  const spots = [usual, lasting]
  const verdicts = async (): Promise<string[]> => {
    const told: string[] = []
    for (const to of spots) told.push(await door.push({ to }))
    return told
  }
  expect(await verdicts()).toEqual(['ACK', 'ACK'])
  for (const spot of spots) door.serve(spot, { body: setOf(k2.jwk) })
  door.ground.advance(20 * minute)
  expect(await verdicts()).toEqual(['DENY', 'ACK'])
  door.ground.advance(24 * hour)
  expect(await verdicts()).toEqual(['DENY', 'DENY'])
})
