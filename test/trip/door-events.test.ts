// Ways to the door: every event shape of Lambda, paths that try to be another, methods, the old handshake, and a Host that is not ours. One row a case.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hopHeader } from '../../shared/names.ts'
import { type Dialect, dialects } from '../support/dialects.ts'
import {
  type Door,
  handOver,
  overWire,
  type Push,
  played,
  type Row,
  signed,
  startDoor,
} from '../support/door.ts'
import { body } from '../support/pushes.ts'
import type { Kind } from '../support/spots.ts'

let door: Door

beforeAll(async () => {
  door = await startDoor()
})

afterAll(() => door.stop())

const byToken: Kind = { token: true }
const x = 'x-a2a-notification-token'
const asUrl = dialects['Function URL']
const shapes: [name: string, as: Dialect][] = Object.entries(dialects)
const inText =
  (as: Dialect): Dialect =>
  sent => ({ ...as(sent), body: Buffer.from(sent.body).toString(), isBase64Encoded: false })
const inBase64 =
  (as: Dialect): Dialect =>
  sent => ({ ...as(sent), body: Buffer.from(sent.body).toString('base64'), isBase64Encoded: true })

describe('the same request by any front door', () => {
  for (const [name, as] of shapes)
    played(name, () => door, [
      [
        105,
        'a signed push and its copy',
        [as, as].map((shape): Push => ({ as: shape, jwt: signed({ jti: 'j' }) })),
        ['ACK', 'NOOP'],
      ],
      [105, 'a push by token', { to: byToken, as }, 'ACK'],
      [
        105,
        'a push by token with an umlaut in its body',
        { to: byToken, as, body: body.replace('c-1', 'ü') },
        'ACK',
      ],
      [105, 'the body as text', { as: inText(as), body: body.replace('c-1', 'ü') }, 'ACK'],
      [105, 'the body as base64', { as: inBase64(as), body: body.replace('c-1', 'ü') }, 'ACK'],
      [
        105,
        'header names in capitals',
        async ({ spot, push }) => {
          const to = await spot(byToken)
          const names = {
            [x]: undefined,
            [x.toUpperCase()]: to.hook.token ?? '',
            'content-type': undefined,
            'Content-Type': 'application/json',
          }
          return push({ to, as, headers: names })
        },
        'ACK',
      ],
      [105, 'a forged push', { to: byToken, as, headers: { [x]: 'no' } }, 'DENY'],
      [
        68,
        'two Authorization lines',
        { jwt: () => null, as, headers: { authorization: ['Bearer x', 'Bearer y'] } },
        'DENY',
      ],
      [105, 'a body that is none', { to: byToken, as, body: '' }, 'BAD'],
      [105, 'another method', { to: byToken, as, method: 'PUT' }, '405'],
      [105, 'another path', { to: byToken, as, path: path => `${path}/x` }, '404'],
      [
        107,
        'the handshake',
        async ({ send }) =>
          handshake(
            await send({ to: byToken, as, method: 'GET', body: '', query: `validationToken=${uuid}` }),
          ),
        [200, uuid],
      ],
    ])
})

const uuid = '3f0c7a52-9d1e-4d7e-8f0a-2b6c1e5d4a90'
const handshake = ({ status, text }: { status: number; text: string }) => [status, text]

test.each<[string, unknown]>([
  ['of a queue', { Records: [{ messageId: 'm', body, eventSource: 'aws:sqs' }] }],
  ['with nothing in it', {}],
  ['of a schedule', { source: 'aws.events', 'detail-type': 'Scheduled Event', detail: {} }],
  ['that is null', null],
  ['that is a list', []],
  ['that is text', 'POST /hooks'],
  ['whose path is no text', { version: '2.0', rawPath: 7, requestContext: { http: { method: 'POST' } } }],
  ['whose method is no text', { rawPath: '/', requestContext: { http: { method: ['POST'] } } }],
])('case 105: an event %s is refused without a call', async (_what, event) => {
  const { result, effects } = await door.during(() => handOver(door.instance(), event))
  expect(result).toMatchObject({ status: 400, headers: { 'content-type': 'application/problem+json' } })
  expect(effects).toEqual([])
})

/** At the hook's very own address no letter may be another. */
const paths: [says: string, path: (path: string) => string][] = [
  ['a slash behind', path => `${path}/`],
  ['two slashes in front', path => `/${path}`],
  ['two slashes inside', path => path.replace('/hooks/', '/hooks//')],
  ['an encoded slash', path => path.replace('/hooks/', '/hooks%2F')],
  ['an encoded slash behind', path => `${path}%2f`],
  ['dots that lead back', path => path.replace('/hooks/', '/x/../hooks/')],
  ['a dot that leads nowhere', path => path.replace('/hooks/', '/hooks/./')],
  ['encoded dots', path => path.replace('/hooks/', '/x/%2e%2e/hooks/')],
  ['capitals', path => path.replace('/hooks/', '/Hooks/')],
  ['an encoded letter', path => path.replace('/hooks/', '/h%6Foks/')],
  ['a parameter in the path', path => `${path};a=b`],
  ['a null byte', path => `${path}%00`],
  ['a backslash', path => path.replace('/hooks/', '\\hooks\\')],
  ['the hook twice', path => path + path.slice('/hooks'.length)],
  ['the hook cut short', path => path.slice(0, -1)],
  ['the hook in capitals', path => `/hooks/${path.slice('/hooks/'.length).toUpperCase()}`],
  ['no hook', () => '/hooks/'],
  ['the root', () => '/'],
  ['an asterisk', () => '*'],
  ['another relay before it', path => `https://other.example${path}`],
]

played('paths that try to be another', () => door, [
  ...paths.map(([says, path]): Row => [0, says, { to: byToken, path, as: asUrl }, '404']),
  [0, 'a query, which means nothing', { to: byToken, query: 'token=x&a=%zz' }, 'ACK'],
])

test.each([...paths, ['a query', (path: string): string => `${path}x`] as const])(
  '%s costs no call',
  async (_says, path) => {
    const to = await door.spot(byToken)
    const { effects } = await door.during(() => door.send({ to, path, query: 'a=b' }))
    expect(effects).toEqual([])
  },
)

const asked = (method: string, more: Push = {}): Push => ({ to: byToken, method, ...more })

played('methods', () => door, [
  ...['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'TRACE', 'PROPFIND'].map(
    (method): Row => [106, `${method} is not taken, and is told what is`, asked(method), '405'],
  ),
  [106, 'POST in small letters', { ...asked('post'), as: asUrl }, '405'],
  [106, 'GET with a body', asked('GET', { headers: { 'content-type': 'application/json' } }), '405'],
  [106, 'a method at a hook that is none', asked('GET', { path: () => '/hooks/none' }), '404'],
  ...['<script>alert(1)</script>', '', 'short', `${uuid} `, 'a'.repeat(129), 'ü'.repeat(20)].map(
    (token): Row => [
      107,
      `the handshake never repeats ${token.slice(0, 12)}`,
      asked('GET', { query: `validationToken=${encodeURIComponent(token)}` }),
      '405',
    ],
  ),
  [
    107,
    'a handshake of 1 MB',
    { ...asked('GET', { query: `validationToken=${'a'.repeat(1e6)}` }), as: asUrl },
    '405',
  ],
  [
    107,
    'a handshake with two tokens',
    asked('GET', { query: `validationToken=${uuid}&validationToken=${uuid}` }),
    '405',
  ],
  [
    107,
    'a handshake at a hook that is none',
    asked('GET', { path: () => '/hooks/none', query: `validationToken=${uuid}` }),
    '404',
  ],
  [
    107,
    'a handshake by POST is a push without a body',
    { to: byToken, body: '', query: `validationToken=${uuid}` },
    'BAD',
  ],
])

test('case 107: the handshake is answered as plain text that nobody may guess about, and changes nothing', async () => {
  const ask = (method: string) =>
    door.send({
      to: byToken,
      method,
      body: '',
      headers: { [x]: undefined },
      query: `validationToken=${uuid}`,
    })
  await door.spot(byToken)
  const { result, effects } = await door.during(async () => [await ask('GET'), await ask('HEAD')])
  const headers = {
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  }
  expect(result).toMatchObject([
    { status: 200, headers, text: uuid },
    { status: 200, headers, text: '' },
  ])
  expect(effects).toEqual([])
})

test('no refusal lets a browser in, or is kept by a cache', async () => {
  const origin = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
  const answers = [
    await door.send(asked('OPTIONS', { body: '', headers: origin })),
    await door.send({ to: byToken, headers: { ...origin, [x]: 'no' } }),
    await door.send({ to: byToken, path: () => '/hooks/none', headers: origin }),
  ]
  for (const { headers } of answers) {
    expect(headers['cache-control']).toBe('no-store')
    expect(Object.keys(headers).filter(name => name.startsWith('access-control'))).toEqual([])
  }
})

const evil = { host: 'evil.example', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }

played('a Host that is not ours', () => door, [
  ...shapes.map(
    ([name, as]): Row => [
      119,
      `means nothing by ${name}`,
      { as, headers: evil, body: body.replace('COMPLETED', 'INPUT_REQUIRED') },
      'ACK',
    ],
  ),
  [119, 'means nothing on the wire', { headers: evil }, 'ACK'],
  [
    119,
    'is no audience',
    {
      headers: evil,
      jwt: signed(({ aud }) => ({ aud: String(aud).replace(/\/\/[^/]+/, '//evil.example') })),
    },
    'DENY',
  ],
])

played('a wake of a relay', () => door, [
  [134, 'is taken for a push by no relay', { headers: { [hopHeader]: '1' } }, 'BAD'],
  [134, 'is not, though it were proven', { to: byToken, headers: { [hopHeader]: '' } }, 'BAD'],
])

test('case 119: the address handed out is the one that was set, whatever the request says', async () => {
  const { agent } = await door.spot(byToken)
  const headers = { ...evil, authorization: `Bearer ${door.key}`, 'content-type': 'application/json' }
  const made = await overWire(door.ground.apiOrigin, {
    ...{ method: 'POST', path: '/v1/subscriptions', query: '', headers: Object.entries(headers), source: '' },
    body: Buffer.from(JSON.stringify({ agent, client: 'c', scope: 'agent' })),
  })
  expect(made.text).toContain(`"url":"${door.ground.hookOrigin}/hooks/`)
  expect(made.text).not.toContain('evil.example')
  expect(JSON.stringify([await door.ground.messages('look'), await door.ground.items()])).not.toContain(
    'evil.example',
  )
})
