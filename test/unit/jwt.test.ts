// Which tokens are believed by algorithm, header, key and signature, one row a case.
import { createHmac, createPublicKey } from 'node:crypto'
import { encode, makeKey, signatureOf, signText } from '../support/keys.ts'
import { attacker, claimsOf, jwtOf, k1, now, type Push, rule } from '../support/pushes.ts'
import { judged, type Row } from '../support/rows.ts'

const ec = makeKey('ES256', 'e1')
const ed = makeKey('EdDSA', 'd1')
const { kid: _kid, ...anonymous } = k1.jwk

const unsigned = (alg: string, last = ''): string =>
  `${encode(JSON.stringify({ alg, kid: 'k1' }))}.${encode(JSON.stringify(claimsOf()))}.${last}`

const spki = createPublicKey(k1.privateKey).export({ format: 'pem', type: 'spki' }).toString()
const hs256 = (secret: string | Uint8Array, kid = 'k1'): string => {
  const input = `${encode(JSON.stringify({ alg: 'HS256', kid }))}.${encode(JSON.stringify(claimsOf()))}`
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}

judged('algorithms and keys that a token brings along', [
  [0, 'an honest push is believed', {}, 'accepted'],
  ...['none', 'None', 'NONE', 'nOnE'].map(
    (alg): Row => [1, `alg ${alg} is refused`, { jwt: unsigned(alg) }, 'alg_not_allowed'],
  ),
  [1, 'alg none with a junk signature is refused', { jwt: unsigned('none', 'AAAA') }, 'alg_not_allowed'],
  [2, 'HS256 by the public PEM is refused', { jwt: hs256(spki) }, 'alg_not_allowed'],
  [2, 'HS256 by the PEM behind a newline is refused', { jwt: hs256(`\n${spki}`) }, 'alg_not_allowed'],
  [
    2,
    'HS256 by the DER is refused',
    () => ({ jwt: hs256(createPublicKey(k1.privateKey).export({ format: 'der', type: 'spki' })) }),
    'alg_not_allowed',
  ],
  [2, 'HS256 by the JWK text is refused', { jwt: hs256(JSON.stringify(k1.jwk)) }, 'alg_not_allowed'],
  [2, 'HS256 by the modulus is refused', { jwt: hs256(String(k1.jwk.n)) }, 'alg_not_allowed'],
  [
    2,
    'HS256 is refused even if it was registered',
    { jwt: hs256(spki), rule: { ...rule, algorithms: ['HS256', 'none'] } },
    'alg_not_allowed',
  ],
  [3, 'RS256 passes by a key without alg', { jwt: jwtOf() }, 'accepted'],
  [
    3,
    'PS256 is not on the list, whatever the key says',
    { jwt: jwtOf({}, { alg: 'PS256' }) },
    'alg_not_allowed',
  ],
  [
    3,
    'RS512 is not on the list, whatever the key says',
    { jwt: jwtOf({}, { alg: 'RS512' }) },
    'alg_not_allowed',
  ],
  [
    3,
    'PS256 passes once it is registered',
    { jwt: jwtOf({}, { alg: 'PS256' }), rule: { ...rule, algorithms: ['PS256'] } },
    'accepted',
  ],
  [
    4,
    'a symmetric key in the set lets nobody sign',
    { jwt: hs256('secret', 'o'), published: [{ kty: 'oct', kid: 'o', k: 'c2VjcmV0' }] },
    'alg_not_allowed',
  ],
  [
    5,
    'a key in the header is not used',
    { jwt: jwtOf({}, { jwk: attacker.jwk }, attacker) },
    'signature_wrong',
  ],
  [
    5,
    'a key in the header is not used without kid either',
    { jwt: jwtOf({}, { jwk: attacker.jwk, kid: undefined }, attacker) },
    'signature_wrong',
  ],
  [5, 'a genuine token may carry a jwk', { jwt: jwtOf({}, { jwk: attacker.jwk }) }, 'accepted'],
  [
    6,
    'jku and x5u are never followed',
    { jwt: jwtOf({}, { jku: 'https://attacker.example/jwks', x5u: 'http://169.254.169.254/' }, attacker) },
    'signature_wrong',
  ],
  ...['../../etc/passwd', "' OR 1=1--", 'k1\n[INFO] forged log line', ''].map(
    (kid): Row => [
      7,
      `kid ${JSON.stringify(kid)} is only a name`,
      { jwt: jwtOf({}, { kid }) },
      'unknown_key',
    ],
  ),
  [7, 'a kid of 5000 characters is refused', { jwt: jwtOf({}, { kid: 'A'.repeat(5000) }) }, 'jwt_malformed'],
  ...[1, null, ['k1']].map(
    (kid): Row => [7, `kid ${JSON.stringify(kid)} is no text`, { jwt: jwtOf({}, { kid }) }, 'jwt_malformed'],
  ),
  [8, 'an unknown kid is refused', { jwt: jwtOf({}, { kid: 'nope' }) }, 'unknown_key'],
])

const [r1, r2, r3] = [makeKey('RS256'), makeKey('RS256'), makeKey('RS256')]
const twin = makeKey('RS256', 'k1')
const ecTwin = makeKey('ES256', 'k1')

judged('choosing among published keys', [
  [
    19,
    'bad members do not spoil the set',
    {
      published: [
        null,
        { kty: 'FOO', kid: 'x' },
        { kty: 'EC', crv: 'P-256', x: '!!', y: '!!', kid: 'k1' },
        { ...k1.jwk, n: 17 },
        k1.jwk,
      ],
    },
    'accepted',
  ],
  [
    20,
    'without kid every key of the shape is tried',
    { jwt: jwtOf({}, {}, r3), published: [r1.jwk, r2.jwk, r3.jwk] },
    'accepted',
  ],
  [
    20,
    'not more than five keys are tried',
    {
      jwt: jwtOf({}, {}, r3),
      published: [...[1, 2, 3, 4, 5].map(kid => ({ ...r1.jwk, kid: `${kid}` })), r3.jwk],
    },
    'signature_wrong',
  ],
  [20, 'a key without kid may be the one that is named', { published: [anonymous] }, 'accepted'],
  [21, 'an EC and an RSA key may share a kid', { published: [ecTwin.jwk, k1.jwk] }, 'accepted'],
  [21, 'two RSA keys may share a kid: the first signs', { published: [k1.jwk, twin.jwk] }, 'accepted'],
  [21, 'two RSA keys may share a kid: the second signs', { published: [twin.jwk, k1.jwk] }, 'accepted'],
  [22, 'a key for encryption is not used', { published: [{ ...k1.jwk, use: 'enc' }] }, 'unknown_key'],
  [
    22,
    'a key that may only sign is not used',
    { published: [{ ...k1.jwk, key_ops: ['sign'] }] },
    'unknown_key',
  ],
  [22, 'a key for RS512 verifies no RS256', { published: [{ ...k1.jwk, alg: 'RS512' }] }, 'unknown_key'],
  [
    22,
    'a key for verifying is used',
    { published: [{ ...k1.jwk, use: 'sig', key_ops: ['verify'], alg: 'RS256' }] },
    'accepted',
  ],
  ...['EdDSA', 'Ed25519'].flatMap(alg =>
    [undefined, 'EdDSA', 'Ed25519'].map(
      (named): Row => [
        23,
        `header ${alg} and key ${named ?? 'without alg'} are the same thing`,
        { jwt: jwtOf({}, { alg }, ed), published: [{ ...ed.jwk, alg: named }] },
        'accepted',
      ],
    ),
  ),
  ...[['EdDSA'], ['Ed25519']].flatMap(algorithms =>
    ['EdDSA', 'Ed25519'].map(
      (alg): Row => [
        23,
        `header ${alg} passes where ${algorithms} is registered`,
        { jwt: jwtOf({}, { alg }, ed), published: [ed.jwk], rule: { ...rule, algorithms } },
        'accepted',
      ],
    ),
  ),
  [
    23,
    'Ed448 is refused',
    { jwt: jwtOf({}, { kid: 'd1' }, ed), published: [{ ...makeKey('Ed448', 'd1').jwk }] },
    'unknown_key',
  ],
  [
    23,
    'X25519 is refused',
    { jwt: jwtOf({}, { kid: 'd1' }, ed), published: [{ ...makeKey('X25519', 'd1').jwk }] },
    'unknown_key',
  ],
  [
    24,
    'ES256K is refused',
    () => {
      const key = makeKey('ES256K', 'z')
      return {
        jwt: signText({ ...key, alg: 'ES256' }, '{"alg":"ES256K","kid":"z"}', JSON.stringify(claimsOf())),
        published: [key.jwk],
      }
    },
    'alg_not_allowed',
  ],
  [
    24,
    'a secp256k1 key verifies no ES256',
    () => {
      const key = makeKey('ES256K', 'z')
      return { jwt: jwtOf({}, {}, { ...key, alg: 'ES256' }), published: [key.jwk] }
    },
    'unknown_key',
  ],
  [
    24,
    'a curve must fit its algorithm',
    { jwt: jwtOf({}, { alg: 'ES256' }, makeKey('ES384', 'e1')), published: [makeKey('ES384', 'e1').jwk] },
    'unknown_key',
  ],
  [
    27,
    'a private key in the set verifies nothing',
    { published: [k1.privateKey.export({ format: 'jwk' })] },
    'unknown_key',
  ],
  [
    27,
    'the other members stay usable',
    { published: [{ ...twin.privateKey.export({ format: 'jwk' }), kid: 'k1' }, k1.jwk] },
    'accepted',
  ],
])

const ecInput = `${encode('{"alg":"ES256","kid":"e1"}')}.${encode(JSON.stringify(claimsOf()))}`
const ecSigned = (signature: Uint8Array): Push => ({
  jwt: `${ecInput}.${encode(signature)}`,
  published: [ec.jwk],
})
const ecRight = signatureOf('ES256', ec.privateKey, ecInput)

judged('signatures', [
  [26, 'an ES256 signature of fixed length passes', ecSigned(ecRight), 'accepted'],
  [26, 'the DER form is refused', () => ecSigned(derOf(ecRight)), 'signature_wrong'],
  [26, 'zeros are refused', ecSigned(new Uint8Array(64)), 'signature_wrong'],
  [26, '63 bytes are refused', ecSigned(ecRight.subarray(0, 63)), 'signature_wrong'],
  [26, '65 bytes are refused', ecSigned(Buffer.concat([ecRight, Buffer.of(0)])), 'signature_wrong'],
  [26, 'another key of the right shape is refused', { jwt: jwtOf({}, {}, attacker) }, 'signature_wrong'],
])

/** The ASN.1 form of a signature that JOSE writes as r and s. */
function derOf(signature: Uint8Array): Uint8Array {
  const numbers = [signature.subarray(0, 32), signature.subarray(32)].map(part => [2, 33, 0, ...part])
  return Uint8Array.of(48, 70, ...numbers.flat())
}

const header = (changes: Record<string, unknown>): Push => ({ jwt: jwtOf({}, changes) })

judged('headers and shapes', [
  [28, 'crit names an unknown extension', header({ crit: ['x'], x: 1 }), 'crit_not_supported'],
  [28, 'crit is empty', header({ crit: [] }), 'crit_not_supported'],
  [28, 'crit names a registered parameter', header({ crit: ['alg'] }), 'crit_not_supported'],
  [28, 'crit asks for an unencoded payload', header({ crit: ['b64'], b64: false }), 'crit_not_supported'],
  [28, 'crit names what is not there', header({ crit: ['exp'] }), 'crit_not_supported'],
  [28, 'crit is null', header({ crit: null }), 'crit_not_supported'],
  [28, 'an unencoded payload without crit', header({ b64: false }), 'crit_not_supported'],
  [47, '64 kB', { jwt: 'A'.repeat(65_536) }, 'jwt_too_long'],
  [47, '100 000 dots', { jwt: '.'.repeat(100_000) }, 'jwt_too_long'],
  [
    47,
    'an encrypted token is never opened',
    { jwt: `${encode('{"alg":"dir","enc":"A256GCM","zip":"DEF"}')}..AAAA.AAAA.AAAA` },
    'jwt_malformed',
  ],
  [47, 'two parts', { jwt: 'AAAA.AAAA' }, 'jwt_malformed'],
  [47, 'four parts', { jwt: `${jwtOf()}.AAAA` }, 'jwt_malformed'],
  [47, 'a leading blank is a second blank of the scheme', { jwt: ` ${jwtOf()}` }, 'accepted'],
  [47, 'a trailing equals sign', { jwt: `${jwtOf()}=` }, 'jwt_malformed'],
  [47, 'a padded header that its signer signed so', () => ({ jwt: paddedHeader() }), 'jwt_malformed'],
  [47, 'a newline inside', { jwt: jwtOf().replace('.', '\n.') }, 'authorization_malformed'],
  [
    47,
    'claims that are no object',
    { jwt: signText(k1, '{"alg":"RS256","kid":"k1"}', '[]') },
    'jwt_malformed',
  ],
  [
    47,
    'claims that are no JSON',
    { jwt: signText(k1, '{"alg":"RS256","kid":"k1"}', 'hello') },
    'jwt_malformed',
  ],
  [
    47,
    'claims nested 1000 deep',
    { jwt: signText(k1, '{"alg":"RS256","kid":"k1"}', `{"x":${'['.repeat(1000)}${']'.repeat(1000)}}`) },
    'jwt_malformed',
  ],
  [
    48,
    'of two alg the last counts: RS256',
    { jwt: signText(k1, '{"alg":"none","alg":"RS256","kid":"k1"}', JSON.stringify(claimsOf())) },
    'accepted',
  ],
  [
    48,
    'of two alg the last counts: none',
    { jwt: signText(k1, '{"alg":"RS256","alg":"none","kid":"k1"}', JSON.stringify(claimsOf())) },
    'alg_not_allowed',
  ],
  [48, 'of two iat the last counts: fresh', { jwt: claimsText(`"iat":1,"iat":${now}`) }, 'accepted'],
  [48, 'of two iat the last counts: old', { jwt: claimsText(`"iat":${now},"iat":1`) }, 'too_old'],
])

/** The padding that base64url in a JWS must not have (RFC 7515 section 2), under a right signature. */
function paddedHeader(): string {
  const input = `${encode('{"alg":"RS256","kid":"k1" }')}=.${encode(JSON.stringify(claimsOf()))}`
  return `${input}.${encode(signatureOf('RS256', k1.privateKey, input))}`
}

/** A signed JWT whose times are given as JSON text, for what JSON.stringify would not write. */
function claimsText(times: string): string {
  const { iat: _iat, exp: _exp, ...rest } = claimsOf()
  return signText(k1, '{"alg":"RS256","kid":"k1"}', JSON.stringify(rest).replace(/}$/, `,${times}}`))
}
