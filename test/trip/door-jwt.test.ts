// Signed pushes at the door itself: what a forger may try with algorithm, header, claims and times, one row a case.
import { createHmac, createPublicKey } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sha256Hex } from '../../shared/hash.ts'
import { type Dialect, dialects } from '../support/dialects.ts'
import { type Door, type Push, played, type Row, type Signer, signed, startDoor } from '../support/door.ts'
import { encode, signatureOf, signText } from '../support/keys.ts'
import { attacker, body, k1 } from '../support/pushes.ts'
import type { Kind } from '../support/spots.ts'

let door: Door

beforeAll(async () => {
  door = await startDoor()
})

afterAll(() => door.stop())

type Fields = Record<string, unknown>

const unsigned =
  (alg: string, last = ''): Signer =>
  honest =>
    `${encode(JSON.stringify({ alg, kid: 'k1' }))}.${encode(JSON.stringify(honest))}.${last}`

const hs256 =
  (secret: string | Uint8Array, kid = 'k1'): Signer =>
  honest => {
    const input = `${encode(JSON.stringify({ alg: 'HS256', kid }))}.${encode(JSON.stringify(honest))}`
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
  }

const pem = createPublicKey(k1.privateKey).export({ format: 'pem', type: 'spki' }).toString()
const der = createPublicKey(k1.privateKey).export({ format: 'der', type: 'spki' })

/** Honest but for the claims. */
const claims = (changes: Fields): Push => ({ jwt: signed(changes) })
/** Honest but for a time, told from now in seconds. */
const times = (changes: (now: number) => Fields): Push => ({ jwt: signed((_honest, now) => changes(now)) })
const header = (changes: Fields): Push => ({ jwt: signed({}, changes) })
/** Times as JSON text, for what JSON.stringify would not write. */
const timesText = (text: (now: number) => string, head = '{"alg":"RS256","kid":"k1"}'): Push => ({
  jwt: ({ iat: _iat, exp: _exp, ...rest }, now) =>
    signText(k1, head, JSON.stringify(rest).replace(/}$/, `,${text(now)}}`)),
})

const asUrl: Dialect = dialects['Function URL']

played('algorithms and keys that a token brings along', () => door, [
  [0, 'an honest push is taken', {}, 'ACK'],
  ...['none', 'None', 'NONE', 'nOnE'].map((alg): Row => [1, `alg ${alg}`, { jwt: unsigned(alg) }, 'DENY']),
  [1, 'alg none with a junk signature', { jwt: unsigned('none', 'AAAA') }, 'DENY'],
  [2, 'HS256 by the public PEM', { jwt: hs256(pem) }, 'DENY'],
  [2, 'HS256 by the PEM behind a newline', { jwt: hs256(`\n${pem}`) }, 'DENY'],
  [2, 'HS256 by the DER', { jwt: hs256(der) }, 'DENY'],
  [2, 'HS256 by the JWK text', { jwt: hs256(JSON.stringify(k1.jwk)) }, 'DENY'],
  [2, 'HS256 by the modulus', { jwt: hs256(String(k1.jwk.n)) }, 'DENY'],
  [3, 'RS256 by a key that names no algorithm', {}, 'ACK'],
  [
    3,
    'PS256 and RS512 that are not registered',
    [header({ alg: 'PS256' }), header({ alg: 'RS512' })],
    ['DENY', 'DENY'],
  ],
  [
    3,
    'PS256 where it is registered',
    { ...header({ alg: 'PS256' }), to: { jwt: { algorithms: ['PS256'] } } },
    'ACK',
  ],
  [5, 'a key in the header', { jwt: signed({}, { jwk: attacker.jwk }, attacker) }, 'DENY'],
  [
    5,
    'a key in the header, and no kid',
    { jwt: signed({}, { jwk: attacker.jwk, kid: undefined }, attacker) },
    'DENY',
  ],
  [5, 'a genuine token that carries a jwk', header({ jwk: attacker.jwk }), 'ACK'],
  ...['../../etc/passwd', "' OR 1=1--", 'A'.repeat(5000), 'k1\n[INFO] forged log line', 1, null, ['k1']].map(
    (kid): Row => [7, `kid ${JSON.stringify(kid).slice(0, 40)}`, header({ kid }), 'DENY'],
  ),
  [26, 'a signature of zeros', { jwt: withSignature(() => new Uint8Array(256)) }, 'DENY'],
  [26, 'a signature that is one byte short', { jwt: withSignature(right => right.subarray(1)) }, 'DENY'],
  [
    26,
    'a signature that is one byte long',
    { jwt: withSignature(right => Buffer.concat([right, right.subarray(0, 1)])) },
    'DENY',
  ],
  [
    28,
    'crit of any kind',
    [{ crit: ['x'], x: 1 }, { crit: [] }, { crit: ['alg'] }, { crit: ['exp'] }].map(header),
    Array(4).fill('DENY'),
  ],
  [
    28,
    'b64 with and without crit',
    [{ crit: ['b64'], b64: false }, { b64: false }].map(header),
    ['DENY', 'DENY'],
  ],
])

function withSignature(change: (right: Uint8Array) => Uint8Array): Signer {
  return honest => {
    const input = `${encode('{"alg":"RS256","kid":"k1"}')}.${encode(JSON.stringify(honest))}`
    return `${input}.${encode(change(signatureOf('RS256', k1.privateKey, input)))}`
  }
}

test('case 6: a key address in the header is asked for nothing', async () => {
  const asked = door.host.requests.length
  const [jku, x5u] = [`${door.host.origin}/attacker.json`, `${door.host.origin}/attacker.pem`]
  expect(await door.push({ jwt: signed({}, { jku, x5u }, attacker) })).toBe('DENY')
  expect(door.host.requests.slice(asked).filter(({ url }) => url.startsWith('/attacker'))).toEqual([])
})

const legacy: Kind = { jwt: { issuer: undefined, digest: 'required' } }
const url = (honest: Fields): string => String(honest.aud)
const audience = (aud: (url: string) => unknown): Push => ({
  jwt: signed(honest => ({ aud: aud(url(honest)) })),
})
const login = { taskId: undefined, request_body_sha256: undefined }

played('audience, issuer and kind of token', () => door, [
  [29, 'the audience in a list', audience(hook => ['https://x', hook]), 'ACK'],
  [29, 'the audience and a slash', audience(hook => `${hook}/`), 'DENY'],
  [29, 'the origin alone', audience(hook => new URL(hook).origin), 'DENY'],
  [29, 'the audience inside another text', audience(hook => `x${hook}x`), 'DENY'],
  [
    29,
    'an audience that is no text',
    [{ a: 1 }, [], undefined, null].map(aud => audience(() => aud)),
    Array(4).fill('DENY'),
  ],
  [
    30,
    'a genuine push sent on to another hook of the same agent',
    async ({ spot, push }) => {
      const [one, two] = [await spot({ n: 1 }), await spot({ n: 2 })]
      return [await push({ to: one }), await push({ to: two, ...audience(() => one.hook.url) })]
    },
    ['ACK', 'DENY'],
  ],
  [
    30,
    'a genuine push sent on to another tenant',
    async ({ spot, push }) => {
      const [one, two] = [await spot(), await spot({ tenant: 'other' })]
      return [await push({ to: two, ...audience(() => one.hook.url) }), await push({ to: two })]
    },
    ['DENY', 'ACK'],
  ],
  [31, 'a body that names another task than was signed', claims({ taskId: 't-999' }), 'DENY'],
  [31, 'a task claim that is no text', [claims({ taskId: 7 }), claims({ taskId: '' })], ['DENY', 'DENY']],
  [
    31,
    'ids in metadata are not the event’s',
    { body: body.replace('"contextId"', '"metadata":{"taskId":"t-999"},"contextId"') },
    'ACK',
  ],
  [
    31,
    'two ids of one event that differ',
    { body: body.replace('"contextId"', '"task_id":"t-999","contextId"') },
    'BAD',
  ],
  [32, 'a login token of the same issuer', claims(login), 'DENY'],
  [32, 'a login token where the digest is required', { ...claims(login), to: legacy }, 'DENY'],
  ...[
    'https://agent.example/',
    'http://agent.example',
    'https://AGENT.example',
    ['https://agent.example'],
    undefined,
  ].map((iss): Row => [33, `issuer ${JSON.stringify(iss)}`, claims({ iss }), 'DENY']),
  [
    38,
    'the legacy shape: a time and a digest',
    {
      ...claims({ iss: undefined, aud: undefined, exp: undefined, jti: undefined, taskId: undefined }),
      to: legacy,
    },
    'ACK',
  ],
])

played('times, by the second', () => door, [
  [34, 'exp now', times(now => ({ exp: now })), 'ACK'],
  [34, 'exp 60 s ago', times(now => ({ exp: now - 60 })), 'ACK'],
  [34, 'exp 61 s ago', times(now => ({ exp: now - 61 })), 'DENY'],
  [34, 'exp as text', claims({ exp: '1893456000' }), 'DENY'],
  [34, 'exp in milliseconds', times(now => ({ exp: (now + 60) * 1000 })), 'DENY'],
  [34, 'exp infinite', timesText(now => `"iat":${now},"exp":1e999`), 'DENY'],
  [34, 'exp negative', claims({ exp: -1 }), 'DENY'],
  [34, 'exp missing: iat tells the age', claims({ exp: undefined }), 'ACK'],
  [34, 'exp in a year: iat bounds its life', times(now => ({ exp: now + 31_536_000 })), 'ACK'],
  [34, 'exp in a year, and no iat', times(now => ({ iat: undefined, exp: now + 31_536_000 })), 'DENY'],
  [
    35,
    'iat and nbf ahead by the skew',
    times(now => ({ iat: now + 60, nbf: now + 60, exp: now + 90 })),
    'ACK',
  ],
  [35, 'iat ahead by more', times(now => ({ iat: now + 61, exp: now + 90 })), 'DENY'],
  [35, 'nbf ahead by more', times(now => ({ nbf: now + 61 })), 'DENY'],
  [36, 'iat with a fraction', times(now => ({ iat: now + 0.9 })), 'ACK'],
  [36, 'iat in scientific notation', timesText(now => `"iat":${now / 1e9}e9`), 'ACK'],
  [37, 'iat in milliseconds', times(now => ({ iat: now * 1000 })), 'DENY'],
  [38, 'exp without iat', claims({ iat: undefined }), 'ACK'],
  [38, 'neither iat nor exp', claims({ iat: undefined, exp: undefined }), 'DENY'],
  [59, 'an age of the window', times(now => ({ iat: now - 300, exp: undefined })), 'ACK'],
  [59, 'an age of window and skew', times(now => ({ iat: now - 360.999, exp: undefined })), 'ACK'],
  [59, 'an age of a second more', times(now => ({ iat: now - 361, exp: undefined })), 'DENY'],
  [59, 'ahead by the skew and a fraction', times(now => ({ iat: now + 60.999, exp: undefined })), 'ACK'],
  [59, 'ahead by a second more', times(now => ({ iat: now + 61, exp: undefined })), 'DENY'],
])

const digest = (change: (honest: string) => unknown): Push => ({
  jwt: signed(honest => ({ request_body_sha256: change(String(honest.request_body_sha256)) })),
})
const base64 = (hex: string, encoding: 'base64' | 'base64url'): string =>
  Buffer.from(hex, 'hex').toString(encoding)

played('the digest of the body', () => door, [
  [43, 'hex in upper case', digest(hex => hex.toUpperCase()), 'ACK'],
  [
    43,
    'base64, with either alphabet',
    [digest(hex => base64(hex, 'base64')), digest(hex => base64(hex, 'base64url'))],
    ['DENY', 'DENY'],
  ],
  [43, 'hex behind the name of the hash', digest(hex => `sha256=${hex}`), 'DENY'],
  [43, 'its first half', digest(hex => hex.slice(0, 32)), 'DENY'],
  [43, 'a number, or nothing in quotes', [digest(() => 7), digest(() => '')], ['DENY', 'DENY']],
  [43, 'the digest of another body', digest(() => sha256Hex('{}')), 'DENY'],
  [43, 'absent where it is optional', digest(() => undefined), 'ACK'],
  [43, 'absent where it is required', { ...digest(() => undefined), to: legacy }, 'DENY'],
  [
    43,
    'over the compact form of a body that was sent otherwise',
    {
      body: Buffer.from(JSON.stringify(JSON.parse(body), null, 2)),
      task: 't-100',
      ...digest(() => sha256Hex(body)),
    },
    'ACK',
  ],
])

played('tokens of odd size and shape', () => door, [
  [47, 'one of 64 kB', { jwt: () => 'A'.repeat(65_536), as: asUrl }, 'DENY'],
  [47, 'one of 100 000 dots', { jwt: () => '.'.repeat(100_000), as: asUrl }, 'DENY'],
  [
    47,
    'an encrypted one',
    { jwt: () => `${encode('{"alg":"dir","enc":"A256GCM","zip":"DEF"}')}..A.A.A` },
    'DENY',
  ],
  [
    47,
    'two parts, four parts',
    [{ jwt: () => 'AAAA.AAAA' }, { jwt: honest => `${signed()(honest, 0)}.AAAA` }],
    ['DENY', 'DENY'],
  ],
  [47, 'a blank in front', { jwt: (honest, now) => ` ${signed()(honest, now)}` }, 'ACK'],
  [47, 'an equals sign behind', { jwt: (honest, now) => `${signed()(honest, now)}=` }, 'DENY'],
  [
    48,
    'of two alg the last counts',
    timesText(now => `"iat":${now}`, '{"alg":"none","alg":"RS256","kid":"k1"}'),
    'ACK',
  ],
  [
    48,
    'of two alg the last counts: none',
    timesText(now => `"iat":${now}`, '{"alg":"RS256","alg":"none","kid":"k1"}'),
    'DENY',
  ],
  [48, 'of two iat the last counts: fresh', timesText(now => `"iat":1,"iat":${now}`), 'ACK'],
  [48, 'of two iat the last counts: old', timesText(now => `"iat":${now},"iat":1`), 'DENY'],
])
