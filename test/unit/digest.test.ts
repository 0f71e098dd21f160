// Which digests cover which bodies, one row a case.
import { gzipSync } from 'node:zlib'
import { sha256Hex } from '../../shared/hash.ts'
import { body, jwtOf, type Push, rule } from '../support/pushes.ts'
import { judged, type Row } from '../support/rows.ts'

const right = sha256Hex(body)
const digest = (value: unknown, more: Push = {}): Push => ({
  jwt: jwtOf({ request_body_sha256: value }),
  ...more,
})
const spaced = JSON.stringify(JSON.parse(body), null, 2)
const fancy = '{"id":"t-1","n":1.0,"b":1,"a":"é ≈ \\"\\n\\\\ \\u0007","2":0,"1":0,"big":12345678901234567890}'
const escaped = fancy.replace('é ≈', '\\u00e9\\u0020\\u2248').replaceAll(',', ' ,\n ').replace('{', '{ ')

judged('body digests', [
  [43, 'upper-case hex', digest(right.toUpperCase()), 'accepted'],
  ...[
    Buffer.from(right, 'hex').toString('base64'),
    Buffer.from(right, 'hex').toString('base64url'),
    `sha256=${right}`,
    right.slice(0, 32),
    `${right}00`,
    12,
    '',
    null,
  ].map((value): Row => [43, `the digest ${JSON.stringify(value)}`, digest(value), 'digest_wrong']),
  [
    43,
    'no digest where it is required',
    digest(undefined, { rule: { ...rule, digest: 'required' } }),
    'digest_missing',
  ],
  [43, 'no digest where it is optional', digest(undefined), 'accepted'],
  [43, 'another body', { body: body.replace('COMPLETED', 'FAILED') }, 'digest_wrong'],
  [90, 'blanks between the tokens of a signed body', { body: spaced }, 'accepted'],
  [
    90,
    'another spelling of texts; numbers and order stay',
    { body: escaped, jwt: jwtOf({ request_body_sha256: sha256Hex(fancy) }) },
    'accepted',
  ],
  ...([64, 65] as const).map((deep): Row => {
    const nested = `${'['.repeat(deep)}1${']'.repeat(deep)}`
    const jwt = jwtOf({ request_body_sha256: sha256Hex(nested) })
    const told = deep > 64 ? 'digest_wrong' : 'accepted'
    return [90, `blanks in a body of ${deep} levels`, { body: ` ${nested}`, jwt }, told]
  }),
  [90, 'a body that is no JSON', { body: `${body}}` }, 'digest_wrong'],
  [90, 'a body that is no UTF-8', { body: Buffer.from([0xff, 0xfe]) }, 'digest_wrong'],
  [
    109,
    'a digest over the plain text does not cover a compressed body',
    { body: gzipSync(body) },
    'digest_wrong',
  ],
])
