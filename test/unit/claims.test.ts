// Which claims are believed: issuer, audience, kind and times, one row a case.
import { signText } from '../support/keys.ts'
import { claimsOf, hookUrl, jwtOf, k1, legacyRule, now, type Push, rule } from '../support/pushes.ts'
import { judged, type Row } from '../support/rows.ts'

/** A signed JWT whose times are given as JSON text, for what JSON.stringify would not write. */
function claimsText(times: string): string {
  const { iat: _iat, exp: _exp, ...rest } = claimsOf()
  return signText(k1, '{"alg":"RS256","kid":"k1"}', JSON.stringify(rest).replace(/}$/, `,${times}}`))
}

const claims = (changes: Record<string, unknown>, more: Push = {}): Push => ({ jwt: jwtOf(changes), ...more })
const login = { taskId: undefined, request_body_sha256: undefined }

judged('issuer, audience and kind', [
  [29, 'the audience as text', claims({ aud: hookUrl }), 'accepted'],
  [29, 'the audience in a list', claims({ aud: ['https://x', hookUrl] }), 'accepted'],
  ...[
    `${hookUrl}/`,
    'https://relay.example',
    `x${hookUrl}x`,
    { a: 1 },
    [],
    [[hookUrl]],
    undefined,
    null,
    'https://relay.example/hooks/S2',
  ].map((aud): Row => [29, `the audience ${JSON.stringify(aud)}`, claims({ aud }), 'audience_wrong']),
  [
    29,
    'an audience of the rule replaces the hook URL',
    claims({ aud: 'rouse' }, { rule: { ...rule, audience: 'rouse' } }),
    'accepted',
  ],
  [
    29,
    'the hook URL is not the audience of the rule',
    claims({}, { rule: { ...rule, audience: 'rouse' } }),
    'audience_wrong',
  ],
  [
    30,
    'a good token for another subscription',
    { expected: { hook: 'S2', hookUrl: 'https://relay.example/hooks/S2', tokens: ['other'] } },
    'audience_wrong',
  ],
  [31, 'a task claim that is no text', claims({ taskId: 7 }), 'task_claim_differs'],
  [31, 'an empty task claim', claims({ taskId: '' }), 'task_claim_differs'],
  [32, 'a login token of the same issuer', claims(login), 'not_a_push'],
  [
    32,
    'a login token where the digest is required',
    claims(login, { rule: { ...rule, digest: 'required' } }),
    'digest_missing',
  ],
  ...[
    'https://agent.example/',
    'http://agent.example',
    'https://AGENT.example',
    ['https://agent.example'],
    undefined,
  ].map((iss): Row => [33, `the issuer ${JSON.stringify(iss)}`, claims({ iss }), 'issuer_wrong']),
  [
    33,
    'a rule without issuer and without required digest believes nobody',
    { rule: { ...legacyRule, digest: 'optional' } },
    'issuer_wrong',
  ],
  [
    38,
    'the legacy shape: a time and a digest',
    claims(
      { iss: undefined, aud: undefined, exp: undefined, jti: undefined, taskId: undefined },
      { rule: legacyRule },
    ),
    'accepted',
  ],
  [
    38,
    'the legacy shape with an audience: it must be right',
    claims({ aud: 'https://x' }, { rule: legacyRule }),
    'audience_wrong',
  ],
])

const year = 365 * 24 * 3600

judged('times', [
  [34, 'exp now', claims({ exp: now }), 'accepted'],
  [34, 'exp 59 s ago passes by the skew', claims({ exp: now - 59 }), 'accepted'],
  [34, 'exp 61 s ago', claims({ exp: now - 61 }), 'expired'],
  [34, 'exp as text', claims({ exp: '1893456000' }), 'time_malformed'],
  [34, 'exp in milliseconds', claims({ exp: (now + 60) * 1000 }), 'time_in_milliseconds'],
  [34, 'exp infinite', { jwt: claimsText(`"iat":${now},"exp":1e999`) }, 'time_malformed'],
  [34, 'exp negative', claims({ exp: -1 }), 'time_malformed'],
  [34, 'exp null', claims({ exp: null }), 'time_malformed'],
  [34, 'exp missing, for iat tells the age', claims({ exp: undefined }), 'accepted'],
  [34, 'exp an hour after iat', claims({ iat: now, exp: now + 3600 }), 'accepted'],
  [34, 'exp in a year, for iat bounds its life', claims({ exp: now + year }), 'accepted'],
  [34, 'exp in a year, once the window is over', claims({ iat: now - 361, exp: now + year }), 'too_old'],
  [34, 'exp in a year and no iat', claims({ iat: undefined, exp: now + year }), 'lifetime_too_long'],
  [34, 'an old token with a far exp', claims({ iat: now - 361, exp: now + 3000 }), 'too_old'],
  [35, 'iat 1 s ahead', claims({ iat: now + 1 }), 'accepted'],
  [35, 'iat 59 s ahead', claims({ iat: now + 59 }), 'accepted'],
  [35, 'iat 61 s ahead', claims({ iat: now + 61, exp: now + 90 }), 'from_the_future'],
  [35, 'nbf 1 s ahead', claims({ nbf: now + 1 }), 'accepted'],
  [35, 'nbf 59 s ahead', claims({ nbf: now + 59 }), 'accepted'],
  [35, 'nbf 61 s ahead', claims({ nbf: now + 61 }), 'from_the_future'],
  [35, 'nbf as text', claims({ nbf: '1' }), 'time_malformed'],
  [36, 'iat a fraction ahead', claims({ iat: now + 0.9 }), 'accepted'],
  [36, 'iat in scientific notation', { jwt: claimsText('"iat":1.7672256e9') }, 'accepted'],
  [37, 'iat in milliseconds', claims({ iat: now * 1000 }), 'time_in_milliseconds'],
  [38, 'iat without exp', claims({ exp: undefined }), 'accepted'],
  [38, 'exp without iat', claims({ iat: undefined }), 'accepted'],
  [
    38,
    'exp without iat at most an hour and the skew ahead',
    claims({ iat: undefined, exp: now + 3660 }),
    'accepted',
  ],
  [38, 'exp without iat further ahead', claims({ iat: undefined, exp: now + 3661 }), 'lifetime_too_long'],
  [38, 'neither iat nor exp', claims({ iat: undefined, exp: undefined }), 'no_freshness'],
  [38, 'nbf alone is no freshness', claims({ iat: undefined, exp: undefined, nbf: now }), 'no_freshness'],
  ...[0, 0.999].flatMap((fraction): Row[] => [
    [
      59,
      `an age of the window + ${fraction} s`,
      claims({ iat: now - 300 - fraction, exp: undefined }),
      'accepted',
    ],
    [
      59,
      `an age of window and skew + ${fraction} s`,
      claims({ iat: now - 360 - fraction, exp: undefined }),
      'accepted',
    ],
    [
      59,
      `an age of a second more + ${fraction} s`,
      claims({ iat: now - 361 - fraction, exp: undefined }),
      'too_old',
    ],
    [
      59,
      `ahead by the skew + ${fraction} s`,
      claims({ iat: now + 60 + fraction, exp: undefined }),
      'accepted',
    ],
    [
      59,
      `ahead by a second more + ${fraction} s`,
      claims({ iat: now + 61 + fraction, exp: undefined }),
      'from_the_future',
    ],
    [
      59,
      `our clock ${fraction} s into the last second`,
      claims({ iat: now - 360 }, { nowMs: (now + fraction) * 1000 }),
      'accepted',
    ],
    [
      59,
      `our clock ${fraction} s past the last second`,
      claims({ iat: now - 361 }, { nowMs: (now + fraction) * 1000 }),
      'too_old',
    ],
  ]),
  [
    59,
    'half a second of our clock brings no future token in',
    claims({ iat: now + 61, exp: now + 90 }, { nowMs: (now + 0.5) * 1000 }),
    'from_the_future',
  ],
  [
    59,
    'window and skew are the rule’s own',
    claims({ iat: now - 12 }, { rule: { ...rule, windowSeconds: 10, skewSeconds: 1 } }),
    'too_old',
  ],
])
