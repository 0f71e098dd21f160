// Where the API may be told to send: addresses that must not be called are refused by name in every field, and nothing is fetched.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Api, expectDiscreet, expectProblem, type Fields, startApi } from '../support/api.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'

let api: Api
let near: Receiver

beforeAll(async () => {
  // The rules that hold on AWS.
  const net = { allowHttp: false, allowAddresses: [], allowPorts: [443] }
  ;[api, near] = await Promise.all([startApi({ net }), startReceiver()])
  await api.must('PUT', '/v1/agents/demo', hand('https://agent.example/'))
})

afterAll(() => Promise.all([api.stop(), near.stop()]))

const hand = (url: string): Fields => ({ url, binding: 'JSONRPC', version: '1.0', offline: true })
const jwt = (jwksUrl: string): Fields => ({
  ...hand('https://agent.example/'),
  verification: { jwt: { jwksUrl, issuer: 'i' } },
})

/** Every field that takes an address: where, by which body, named how. */
const places: [path: string, body: (url: string) => Fields, pointer: string][] = [
  ['/v1/agents/bad', url => ({ cardUrl: url }), '/cardUrl'],
  ['/v1/agents/bad', hand, '/url'],
  ['/v1/agents/bad', jwt, '/verification/jwt/jwksUrl'],
  ['/v1/targets/bad', url => ({ url }), '/url'],
  ['/v1/subscriptions/bad', url => ({ agent: 'demo', targets: [{ url }] }), '/targets/0/url'],
]

const hosts = [
  ...['2130706433', '0x7f.1', '0177.0.0.1', '127.1', '0', '017700000001', '0xa9fea9fe'],
  ...['0.0.0.0', '127.0.0.2', '10.0.0.1', '172.16.0.1', '192.168.0.1', '100.64.0.1', '169.254.169.254'],
  ...[
    '169.254.170.2',
    '192.0.0.192',
    '198.18.0.1',
    '224.0.0.1',
    '240.0.0.1',
    '100.100.100.200',
    '168.63.129.16',
  ],
  ...[
    '[::]',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[fe80::1]',
    '[fec0::1]',
    '[fd00:ec2::254]',
    '[64:ff9b::7f00:1]',
  ],
  ...['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'ip6-localhost', 'metadata.google.internal'],
  ...['metadata.google.internal.', 'instance-data', 'intranet', 'printer.local', 'client.example.'],
  ...[
    '①②⑦.⓪.⓪.①',
    '127。0。0。1',
    'ⓛocalhost',
    'cli\tent.example',
    'client.example\r\nX-A: b',
    'a b.example',
  ],
  ...['user:pw@client.example', 'user@client.example', 'client.example@169.254.169.254'],
  ...[
    'client.example:0',
    'client.example:22',
    'client.example:6379',
    'client.example:8443',
    'client.example:65536',
  ],
]
const schemes = ['ftp:', 'file:', 'gopher:', 'ws:', 'http:'].map(scheme => `${scheme}//client.example/`)
const none = [
  'data:text/plain,a',
  'javascript:alert(1)',
  '//client.example/',
  'client.example',
  '/',
  '',
  ' https://client.example/ ',
]

test.each([...hosts.map(host => `https://${host}/`), ...schemes, ...none])(
  '%j is refused wherever it is given',
  async url => {
    const before = await api.items()
    for (const [path, body, pointer] of places)
      expectProblem(api, await api.ask('PUT', path, { body: body(url) }), 'address_not_allowed', [pointer])
    expect(await api.items()).toEqual(before)
  },
)

test('nothing near is called, whichever way it is given', async () => {
  const [port, path] = [near.port, 'x']
  for (const origin of [
    near.origin,
    `https://127.0.0.1:${port}`,
    `http://localhost:${port}`,
    api.agent.origin,
  ])
    for (const [place, body, pointer] of places) {
      const answer = await api.ask('PUT', place, { body: body(`${origin}/${path}`) })
      expectProblem(api, answer, 'address_not_allowed', [pointer])
      // Who asks learns no more of it than that.
      expect(answer.text).not.toContain(`127.0.0.1:${port}`)
    }
  expect({ near: near.connections(), agent: api.agent.calls('card') }).toEqual({ near: 0, agent: 0 })
})

test('an address is kept in its normal form', async () => {
  for (const [given, kept] of [
    ['HTTPS://Hooks.Example:443/a/../b?c#d', 'https://hooks.example/b?c'],
    ['https://hooks.example\\@10.0.0.1/', 'https://hooks.example/@10.0.0.1/'],
    ['https:hooks.example', 'https://hooks.example/'],
    ['https://раypal.com/', 'https://xn--ypal-43d9g.com/'],
    ['https://hooks.example/%0d%0aX-A:b', 'https://hooks.example/%0d%0aX-A:b'],
  ])
    expect((await api.ask('PUT', '/v1/targets/kept', { body: { url: given } })).body.url).toBe(kept)
})

test('no log line of all this holds a secret', () => {
  expectDiscreet(api)
})
