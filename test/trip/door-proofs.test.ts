// Tokens, Authorization and timestamps at the door, and what registration refuses of them. One row a case.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dialects } from '../support/dialects.ts'
import { type Door, type Push, played, type Row, signed, startDoor } from '../support/door.ts'
import { body } from '../support/pushes.ts'
import type { Kind, Spot } from '../support/spots.ts'

let door: Door

beforeAll(async () => {
  door = await startDoor()
})

afterAll(() => door.stop())

const byToken: Kind = { token: true }
const byBearer: Kind = { authorization: 'Bearer' }
const byBasic: Kind = { authorization: 'Basic' }
const either: Kind = { token: true, authorization: 'Bearer' }
const x = 'x-a2a-notification-token'
const plain = 'a2a-notification-token'
const asUrl = dialects['Function URL']

/** A push whose headers are told from what was handed out. */
const handed =
  (
    kind: Kind,
    headers: (hook: { token: string; credentials: string }) => Push['headers'],
    more: Push = {},
  ): Row[2] =>
  async ({ spot, push }) => {
    const to = await spot(kind)
    const { token = '', authentication } = to.hook
    return push({ to, headers: headers({ token, credentials: authentication?.credentials ?? '' }), ...more })
  }

/** The same letters, but for the last. */
const nearly = (text: string): string => text.slice(0, -1) + (text.endsWith('A') ? 'B' : 'A')

played('the token that was handed out', () => door, [
  [
    0,
    'under the name of Go and Rust',
    handed(byToken, ({ token }) => ({ [x]: undefined, [plain]: token })),
    'ACK',
  ],
  [0, 'under both names, one wrong', handed(byToken, () => ({ [plain]: 'no' })), 'DENY'],
  [0, 'nearly', handed(byToken, ({ token }) => ({ [x]: nearly(token) })), 'DENY'],
  [0, 'in two lines', handed(byToken, ({ token }) => ({ [x]: [token, token] })), 'DENY'],
  [63, 'outside ASCII', { to: byToken, headers: { [x]: 'tök' } }, 'DENY'],
  [63, 'as an adapter would rewrite it', { to: byToken, headers: { [x]: 't%C3%B6k' } }, 'DENY'],
  ...Object.entries(dialects).map(
    ([name, as]): Row => [
      63,
      `outside ASCII, by ${name}`,
      { to: byToken, headers: { [x]: 'tök' }, as },
      'DENY',
    ],
  ),
  [
    64,
    'as long in characters, not in bytes',
    handed(byToken, ({ token }) => ({ [x]: `é${token.slice(1)}` })),
    'DENY',
  ],
  [64, 'of 1 MB', { to: byToken, headers: { [x]: 'a'.repeat(1e6) }, as: asUrl }, 'DENY'],
  [
    65,
    'empty, blank or missing',
    [
      { to: byToken, headers: { [x]: '' } },
      { to: byToken, headers: { [x]: '  ' } },
      { to: byToken, headers: { [x]: undefined } },
    ],
    ['DENY', 'DENY', 'DENY'],
  ],
  [
    65,
    'empty by every name at once',
    { to: either, headers: { [x]: '', [plain]: '', authorization: '' } },
    'DENY',
  ],
  [66, 'with blanks around', handed(byToken, ({ token }) => ({ [x]: ` ${token} ` })), 'ACK'],
  [
    66,
    'with a line break inside',
    handed(byToken, ({ token }) => ({ [x]: `${token}\r\nx: y` }), { as: asUrl }),
    'DENY',
  ],
])

const bearer = (write: (credentials: string) => string | string[], more: Push = {}): Row[2] =>
  handed(byBearer, ({ credentials }) => ({ authorization: write(credentials) }), more)
const basic = (write: (credentials: string) => string): Row[2] =>
  handed(byBasic, ({ credentials }) => ({ authorization: `Basic ${write(credentials)}` }), { as: asUrl })
const inClear = (credentials: string): string => Buffer.from(credentials, 'base64').toString()

played('the Authorization that was handed out', () => door, [
  [67, 'in lower case', bearer(text => `bearer ${text}`), 'ACK'],
  [67, 'in upper case, behind two blanks', bearer(text => `BEARER  ${text}`), 'ACK'],
  [67, 'behind a tab', bearer(text => `Bearer\t${text}`), 'DENY'],
  [67, 'behind nothing', bearer(text => `Bearer${text}`), 'DENY'],
  [67, 'the scheme alone', bearer(() => 'Bearer'), 'DENY'],
  [67, 'under another scheme', bearer(text => `Token ${text}`), 'DENY'],
  [67, 'in other letters', bearer(text => `Bearer ${text.toLowerCase()}${text.toUpperCase()}`), 'DENY'],
  [68, 'twice in one line', bearer(text => `Bearer ${text}, Bearer evil`), 'DENY'],
  [68, 'in two lines', bearer(text => [`Bearer ${text}`, 'Bearer evil']), 'DENY'],
  [68, 'in two lines that are both right', bearer(text => [`Bearer ${text}`, `Bearer ${text}`]), 'DENY'],
  [68, 'in two lines of a JWT', { jwt: (honest, now) => `${signed()(honest, now)}, Bearer evil` }, 'DENY'],
  [69, 'as Basic', { to: byBasic }, 'ACK'],
  [69, 'with padding too much', basic(text => `${text}=`), 'DENY'],
  [69, 'with a newline inside', basic(text => `${text.slice(0, 8)}\n${text.slice(8)}`), 'DENY'],
  [69, 'not encoded', basic(inClear), 'DENY'],
  [
    69,
    'with a colon more in the password',
    basic(text => Buffer.from(`${inClear(text)}:x`).toString('base64')),
    'DENY',
  ],
  [
    69,
    'without user',
    basic(text => Buffer.from(inClear(text).replace(/^\w+/, '')).toString('base64')),
    'DENY',
  ],
  [
    70,
    'by a scheme that we know nothing of',
    { to: byBearer, headers: { authorization: 'ApiKey x' } },
    'DENY',
  ],
  [
    70,
    'not at all, by an SDK that cannot send it',
    { to: byBearer, headers: { authorization: undefined } },
    'DENY',
  ],
  [
    0,
    'either suffices, but nothing may be wrong',
    [
      { to: either, headers: { [x]: undefined, authorization: 'Bearer no' } },
      { to: either, headers: { authorization: 'Bearer no' } },
      { to: either, headers: { authorization: undefined } },
    ],
    ['DENY', 'DENY', 'ACK'],
  ],
])

const stamped = (stamp: unknown): string =>
  body.replace('"status":{', `"status":{"timestamp":${JSON.stringify(stamp)},`)
const stamps: [number, string][] = [
  [50, '2026-06-15T14:00:00+02:00'],
  [51, '2026-06-15T12:00:00.123456'],
  [53, '2025-02-30T00:00:00Z'],
  [53, '2025-01-01T24:00:00Z'],
  [53, '2025-01-01'],
  [53, '2025-01-01t00:00:00z'],
  [58, '0001-01-01T00:00:00Z'],
  [58, '1970-01-01T00:00:00Z'],
]

played('a fresh push is never stale by the time that its status tells', () => door, [
  ...['1767225600', '1767225600000', '1767225600.5', '1767225600abc', '-1', '0', ' 1767225600'].map(
    (stamp): Row => [
      49,
      `a header of ${JSON.stringify(stamp)} is not signed, so nobody asks it`,
      { headers: { 'x-timestamp': stamp, 'webhook-timestamp': stamp, date: stamp } },
      'ACK',
    ],
  ),
  ...stamps.map(([number, stamp]): Row => [number, stamp, { body: stamped(stamp) }, 'ACK']),
  [
    50,
    'an older instant after a younger one',
    ['2026-06-15T12:30:00Z', '2026-06-15T14:00:00+02:00'].map(stamp => ({ body: stamped(stamp) })),
    ['ACK', 'ACK'],
  ],
  [
    56,
    'two events in one millisecond',
    ['12:00:00.680795Z', '12:00:00.680794Z'].map(time => ({
      to: byToken,
      body: stamped(`2026-06-15T${time}`),
    })),
    ['ACK', 'ACK'],
  ],
  [57, 'no time at all, twice under two ids', [{}, {}], ['ACK', 'ACK']],
  [58, 'a number', { body: stamped(0) }, 'ACK'],
])

describe('what registration refuses', () => {
  const agent = { url: 'http://127.0.0.1:9/a2a', binding: 'JSONRPC', version: '1.0', offline: true }
  test.each<[name: string, path: string, body: unknown]>([
    [
      'case 63: a token that the client chooses',
      '/v1/subscriptions',
      { agent: 'a', client: 'c', token: 'tök' },
    ],
    ['case 65: an empty token', '/v1/subscriptions', { agent: 'a', client: 'c', token: '' }],
    ['case 65: an agent whose pushes prove nothing', '/v1/agents/none', { ...agent, verification: {} }],
    [
      'case 65: a token that is switched off and nothing else',
      '/v1/agents/none',
      { ...agent, verification: { token: false } },
    ],
    ...['tok\r\nX-Admin: 1', 'tok en', 'tok\u0000', ' tok', ''].map((token): [string, string, unknown] => [
      `case 66: the credentials ${JSON.stringify(token)}`,
      '/v1/agents/none',
      { ...agent, credentials: { type: 'bearer', token } },
    ]),
    ...['ApiKey', 'Digest', 'HMAC', ''].map((authorization): [string, string, unknown] => [
      `case 70: the scheme ${JSON.stringify(authorization)}`,
      '/v1/agents/none',
      { ...agent, verification: { authorization } },
    ]),
    [
      'case 71: a list of schemes',
      '/v1/agents/none',
      { ...agent, verification: { authorization: ['Basic', 'Bearer'] } },
    ],
    ['case 71: no scheme at all', '/v1/agents/none', { ...agent, verification: { authorization: [] } }],
    ['case 45: keys at a metadata address', '/v1/agents/none', withKeysAt('http://169.254.169.254/jwks')],
    ['case 45: keys in a file', '/v1/agents/none', withKeysAt('file:///etc/passwd')],
    ['case 134: a hook of ours as target', '/v1/targets/loop', { url: 'HOOK' }],
  ])('%s', async (_name, path, asked) => {
    const { hook } = await door.spot(byToken)
    const wish = JSON.parse(JSON.stringify(asked).replace('HOOK', hook.url))
    const method = path === '/v1/subscriptions' ? 'POST' : 'PUT'
    expect((await door.refused(method, path, wish)).status).toBe(422)
    expect((await door.ground.items()).filter(({ pk }) => /#(?:none|loop)$/.test(String(pk)))).toEqual([])
  })

  function withKeysAt(jwksUrl: string) {
    return { ...agent, verification: { jwt: { jwksUrl, issuer: 'https://agent.example' } } }
  }
})

test('case 71: the scheme is handed out in the shape of either version', async () => {
  const { pushNotificationConfigs: configs } = await door.call<{
    pushNotificationConfigs: Record<string, { authentication: unknown }>
  }>('POST', '/v1/subscriptions', { agent: (await door.spot(byBasic)).agent, client: 'c', scope: 'agent' })
  expect(configs).toMatchObject({
    '1.0': { authentication: { scheme: 'Basic' } },
    '0.3': { authentication: { schemes: ['Basic'] } },
  })
})

test('case 72: whatever is wrong with a push, the refusal is the same byte for byte', async () => {
  const wrong: Push[] = [
    { to: byToken, headers: { [x]: 'no' } },
    { to: byToken, headers: { [x]: undefined } },
    { to: byBearer, headers: { authorization: 'Bearer no' } },
    { to: byBasic, headers: { authorization: 'Basic no' } },
    { jwt: () => null },
    { jwt: () => 'no' },
    { jwt: signed({ iss: 'https://other.example' }) },
    { jwt: signed({}, { kid: 'nope' }) },
    { jwt: signed({ taskId: 't-999' }) },
  ]
  const answers = new Set<string>()
  for (const push of wrong) {
    const answer = await door.send(push)
    // The server's own clock stands in every answer of it, whatever was asked.
    const { date: _, ...headers } = answer.headers
    answers.add(JSON.stringify({ ...answer, headers }))
  }
  expect([...answers].map(answer => JSON.parse(answer).status)).toEqual([401])
})

test('case 72: a hook that never was and one that is no more answer alike', async () => {
  const gone = await door.spot({ token: true, n: 1 })
  expect(await door.push({ to: gone })).toBe('ACK')
  await door.call('DELETE', `/v1/subscriptions/${gone.id}`)
  door.ground.advance(31_000)
  const guess = { to: gone, path: (path: string) => nearly(nearly(path).slice(0, -1)) }
  const answers = [await door.send({ to: gone }), await door.send(guess)]
  expect(answers.map(({ status }) => status)).toEqual([404, 404])
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
})

describe('case 73: what was handed out is never read back', () => {
  const secretsOf = ({ hook }: Spot): string[] =>
    [hook.url.split('/').at(-1), hook.token, hook.authentication?.credentials].filter(
      text => text !== undefined,
    )

  test('by its owner', async () => {
    const spot = await door.spot(either)
    const seen = JSON.stringify([
      await door.call('GET', `/v1/subscriptions/${spot.id}`),
      await door.call('GET', '/v1/subscriptions?limit=100'),
      await door.call('GET', `/v1/agents/${spot.agent}`),
    ])
    expect(seen).toContain(spot.id)
    expect(secretsOf(spot)).toHaveLength(3)
    for (const secret of secretsOf(spot)) expect(seen).not.toContain(secret)
  })

  test('by another tenant, to whom it is not there', async () => {
    const { id } = await door.spot(either)
    const mine = await door.other.refused('GET', `/v1/subscriptions/${id}`)
    const none = await door.other.refused('GET', '/v1/subscriptions/none')
    expect(mine).toEqual(none)
    expect(mine.status).toBe(404)
  })
})

test('no log line gives a secret away', async () => {
  const spots = await Promise.all([byToken, byBearer, byBasic, either, {}].map(kind => door.spot(kind)))
  const secrets = spots.flatMap(({ hook }) =>
    [hook.url.split('/').at(-1), hook.token, hook.authentication?.credentials].filter(
      text => text !== undefined,
    ),
  )
  expect(door.lines.some(line => line.includes('push.refused'))).toBe(true)
  expect(
    door.lines.filter(line => /eyJ|\/hooks\//.test(line) || secrets.some(secret => line.includes(secret))),
  ).toEqual([])
})
