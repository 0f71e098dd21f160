// Bad input: each is answered by a clear problem that names the place, and leaves the table as it was.
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ErrorCode, errorCodes, says, statusOf } from '../../shared/errors.ts'
import {
  type Api,
  type Ask,
  expectDiscreet,
  expectProblem,
  type Fields,
  routes,
  startApi,
} from '../support/api.ts'

let api: Api
let before: Fields[]

beforeAll(async () => {
  api = await startApi()
  await api.must('PUT', '/v1/agents/demo', { cardUrl: api.agent.cardUrl() })
  await api.must('PUT', '/v1/subscriptions/mine', { agent: 'demo', client: 'me' })
  before = await api.items()
})

afterAll(async () => {
  await api.stop()
})

/** Asks what must be refused, and sees that nothing was stored for it. */
async function refused(
  method: string,
  path: string,
  ask: Ask,
  [code, ...pointers]: [code: ErrorCode, ...pointers: string[]],
): Promise<void> {
  const answer = await api.ask(method, path, ask)
  expectProblem(api, answer, code, pointers)
  expect(await api.items()).toEqual(before)
}

const url = 'http://127.0.0.1:9/'
const target = '/v1/targets/phone'
let made = 0
/** A name that was never used: who makes a target again is looked after, for somebody may wait for the one before. */
const targetOnce = () => `/v1/targets/once-${++made}`

test('a hundred thousand wrong values are refused in few words', async () => {
  const scopes = Array.from({ length: 100_000 }, () => 0)
  const many = await api.ask('POST', '/v1/keys', { body: { scopes } })
  expectProblem(api, many, 'invalid', ['/scopes'])
  const fields = Object.fromEntries(scopes.map((_, at) => [`f${at}`, 1]).slice(0, 10_000))
  const unknown = await api.ask('PUT', target, { body: { url, ...fields } })
  expect(unknown.status).toBe(422)
  expect(JSON.stringify(unknown.body).length).toBeLessThan(5000)
})

describe('a body', () => {
  const json = JSON.stringify({ url })
  const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  const bad: [name: string, body: unknown, code: ErrorCode, ...pointers: string[]][] = [
    ['that is empty', '', 'bad_request'],
    ['that is not JSON', '{', 'bad_request'],
    ['with a comma too many', `{"url":"${url}",}`, 'bad_request'],
    ['with a comment', `{/**/"url":"${url}"}`, 'bad_request'],
    ['of two values', `${json}${json}`, 'bad_request'],
    ['with NaN', '{"url":NaN}', 'bad_request'],
    ['with a raw line break in a string', '{"url":"a\nb"}', 'bad_request'],
    ['that is a form', 'url=http%3A%2F%2F127.0.0.1', 'bad_request'],
    ['that is not UTF-8', Buffer.from(`{"url":"${url}\xff"}`, 'latin1'), 'bad_request'],
    ['in UTF-16', Buffer.from(`\ufeff${json}`, 'utf16le'), 'bad_request'],
    ['of 10 000 levels', deep(10_000), 'bad_request'],
    ['with a field of 10 000 levels', `{"url":${deep(10_000)}}`, 'bad_request'],
    ['with an unknown field of 100 000 levels', `{"a":${deep(100_000)}}`, 'bad_request'],
    ['over the cap', { url: url + 'x'.repeat(256 * 1024) }, 'too_large'],
    ['that is null', 'null', 'invalid', ''],
    ['that is a list', '[]', 'invalid', ''],
    ['that is a string', '"{}"', 'invalid', ''],
    ['that is a number beyond all numbers', '1e999', 'invalid', ''],
    ['without what it needs', {}, 'invalid', '/url'],
    ['with a wrong type', { url: 1e308 }, 'invalid', '/url'],
    ['with null in a field', { url: null }, 'invalid', '/url'],
    ['with unknown fields', { url, a: 1, 'b/c~d': 2 }, 'invalid', '/a', '/b~1c~0d'],
    ['with a field without a name', `{"url":"${url}","":1}`, 'invalid', '/'],
    ['with __proto__', `{"url":"${url}","__proto__":{"url":1}}`, 'invalid', '/__proto__'],
    ['with constructor', `{"url":"${url}","constructor":{"prototype":{}}}`, 'invalid', '/constructor'],
    [
      'with a name as long as the cap',
      `{"url":"${url}","${'n'.repeat(200_000)}":1}`,
      'invalid',
      `/${'n'.repeat(100)}`,
    ],
    [
      'with limits of none',
      { url, maxConcurrency: 0, ratePerSecond: 0 },
      'invalid',
      '/maxConcurrency',
      '/ratePerSecond',
    ],
    [
      'with limits beyond all',
      { url, maxConcurrency: 101, ratePerSecond: 0.5 },
      'invalid',
      '/maxConcurrency',
      '/ratePerSecond',
    ],
    ['with a name that comes twice, wrong at last', `{"url":"${url}","url":1}`, 'invalid', '/url'],
  ]
  test.each(bad)('%s is refused', (_name, body, ...expected) => refused('PUT', target, { body }, expected))

  const types = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'application/jsonx',
    'json',
    '*/*',
    'text/json',
  ]
  test.each(types)('of type %s is refused', type =>
    refused('PUT', target, { body: json, headers: { 'content-type': type } }, ['unsupported_media_type']),
  )

  test.each(['gzip', 'br', 'deflate', 'identity, gzip', 'x'])('encoded as %s is refused', coding =>
    refused('PUT', target, { body: gzipSync(json), headers: { 'content-encoding': coding } }, [
      'unsupported_media_type',
    ]),
  )

  test('larger than what Lambda takes is refused before it is read', async () => {
    const answer = await api.ask('PUT', target, { body: Buffer.alloc(5_000_000, 0x20) })
    expect(answer.status).toBe(413)
    expect(await api.items()).toEqual(before)
  })

  test.each([
    ['application/json; charset=utf-8', {}],
    ['Application/JSON', {}],
    ['application/merge-patch+json', {}],
    ['application/json', { 'content-encoding': 'identity' }],
  ])('of type %s, %j is read', async (type, more) => {
    const once = targetOnce()
    const answer = await api.ask('PUT', once, { body: json, headers: { 'content-type': type, ...more } })
    expect(answer.status).toBe(200)
    expect((await api.ask('DELETE', once)).status).toBe(204)
  })

  test('with a byte order mark is read (RFC 8259 section 8.1)', async () => {
    const once = targetOnce()
    expect((await api.ask('PUT', once, { body: `\ufeff${json}` })).status).toBe(200)
    expect((await api.ask('DELETE', once)).status).toBe(204)
  })
})

const strange = {
  'with a blank': 'a%20b',
  'with a slash': 'a%2Fb',
  'with a backslash': 'a%5Cb',
  'with NUL': 'a%00b',
  'with a line break': 'a%0d%0aX-A:b',
  'with a hash': 'D%23demo%23agents',
  'with an emoji': '%F0%9F%98%80',
  'that begins with a dot': '.a',
  'that begins with a dash': '-a',
  'in half an escape': 'a%',
  'in a wrong escape': 'a%zz',
  'in what is not UTF-8': 'a%ff%fe',
  'escaped twice': 'a%2525b',
  'of 65 characters': 'a'.repeat(65),
  'of 10 kB': 'a'.repeat(10_000),
  'that looks like code': "a';alert(1)--",
}

describe.each(Object.entries(strange))('an id %s', (_name, id) => {
  test('makes nothing', async () => {
    const making = {
      '/agent': [`/v1/agents/${id}`, { cardUrl: api.agent.cardUrl() }],
      '/id': [`/v1/subscriptions/${id}`, { agent: 'demo', client: 'me' }],
      '/target': [`/v1/targets/${id}`, { url }],
    } as const
    for (const [pointer, [path, body]] of Object.entries(making))
      await refused('PUT', path, { body }, ['invalid', pointer])
    const key = api.local.operatorKey
    await refused('PUT', `/v1/tenants/${id}`, { key, body: {} }, ['invalid', '/tenant'])
  })

  test('finds nothing', async () => {
    for (const kind of ['agents', 'subscriptions', 'targets', 'wakes'])
      await refused('GET', `/v1/${kind}/${id}`, {}, ['not_found'])
    for (const kind of ['agents', 'subscriptions', 'targets', 'keys'])
      await refused('DELETE', `/v1/${kind}/${id}`, {}, ['not_found'])
    await refused('GET', `/v1/tasks/${id}/t`, {}, ['not_found'])
    await refused('GET', `/v1/tasks/demo/${id}`, {}, ['not_found'])
    const key = api.local.operatorKey
    await refused('GET', `/v1/tenants/${id}`, { key }, ['not_found'])
    await refused('GET', `/v1/keys?tenant=${id}`, { key }, ['not_found'])
  })
})

describe('a path', () => {
  const nowhere = [
    '/',
    '/v1',
    '/v1/',
    '/v1/agents/',
    '/v1/agents/..',
    '/v1/agents/%2e%2e/%2e%2e',
    '/v1//agents',
    '/V1/agents',
    '/v1/agents/demo/',
    '//v1/agents',
    '*',
    'http://other.example/v1/agents',
    '/v1/agents/demo/../../../etc/passwd',
    '/.env',
    '/v2/agents',
    `/${'a/'.repeat(5000)}`,
  ]
  test.each(nowhere)('%s leads nowhere', path => refused('GET', path, {}, ['not_found']))

  test('is the same whatever Host says', async () => {
    for (const host of ['other.example', 'a b', '[::1', 'x:99999', '']) {
      const answer = await api.ask('GET', '/v1/agents/none', { headers: { host } })
      expectProblem(api, answer, 'not_found')
    }
  })

  test('is read without a body where a body means nothing', async () => {
    expect((await api.ask('GET', '/v1/agents/demo', { body: '{' })).status).toBe(200)
    expect((await api.ask('HEAD', '/v1/agents/demo', { body: '{' })).status).toBe(200)
  })
})

describe('a query', () => {
  const forged = Buffer.from(JSON.stringify({ pk: 'T#demo', sk: '.', slot: 'f#other', due: 1 })).toString(
    'base64url',
  )
  const bad: [path: string, ...pointers: string[]][] = [
    ['/v1/agents?limit=0', '?limit'],
    ['/v1/agents?limit=101', '?limit'],
    ['/v1/agents?limit=-1', '?limit'],
    ['/v1/agents?limit=1.5', '?limit'],
    ['/v1/agents?limit=1e2', '?limit'],
    ['/v1/agents?limit=', '?limit'],
    ['/v1/agents?limit=NaN', '?limit'],
    ['/v1/agents?limit=99999999999999999999', '?limit'],
    ['/v1/agents?limit=%zz', '?limit'],
    ['/v1/agents?limit=1&limit=1', '?limit'],
    ['/v1/agents?after=x&after=y', '?after'],
    ['/v1/agents?after=zzz', '?after'],
    ['/v1/agents?after=%00', '?after'],
    [`/v1/agents?after=${'A'.repeat(8000)}`, '?after'],
    [`/v1/subscriptions?after=${Buffer.from('0:mine').toString('base64url')}`, '?after'],
    ['/v1/wakes?state=failed&after=zzz', '?after'],
    [`/v1/wakes?state=failed&after=${forged}`, '?after'],
    ['/v1/agents?lim%69t=1&Limit=1', '?Limit'],
    ['/v1/agents?a=1&b=2', '?a', '?b'],
    ['/v1/agents?__proto__=1', '?__proto__'],
    [`/v1/agents?${'q'.repeat(5000)}=1`, `?${'q'.repeat(100)}`],
    ['/v1/agents/demo?force=true', '?force'],
    ['/v1/subscriptions?client=a&agent=b', '?agent'],
    ['/v1/subscriptions?client=', '?client'],
    ['/v1/subscriptions?client=a%23b', '?client'],
    [`/v1/subscriptions?agent=${'a'.repeat(5000)}`, '?agent'],
    ['/v1/inbox', '?client'],
    ['/v1/inbox?client=a/b', '?client'],
    ['/v1/inbox?client=a&after=x', '?after'],
    ['/v1/inbox?client=a&after=-1', '?after'],
    ['/v1/inbox?client=a&after=9007199254740992', '?after'],
    ['/v1/inbox?client=a&limit=101', '?limit'],
    ['/v1/wakes?task=', '?task'],
    ['/v1/wakes?task=%00', '?task'],
    [`/v1/wakes?task=${'%F0%9F%98%80'.repeat(65)}`, '?task'],
    ['/v1/wakes?task=t&agent=a/b', '?agent'],
    ['/v1/tasks/demo/t?principal=a&principal=b', '?principal'],
    ['/v1/targets/phone?gate=1', '?gate'],
  ]
  test.each(bad)('%s is refused by name', (path, ...pointers) =>
    refused('GET', path, {}, ['invalid', ...pointers]),
  )

  test('beside a body is refused by name', async () => {
    for (const { method, path } of routes.filter(
      route => route.method === 'PUT' || route.method === 'POST',
    )) {
      const key = path.includes('tenants') ? api.local.operatorKey : api.key
      const there = path.replace(/:id/, 'mine').replace(/:\w+/, 'demo')
      await refused(method, `${there}?dry=1`, { key, body: {} }, ['invalid', '?dry'])
    }
  })
})

describe('a subscription', () => {
  const bad: [name: string, more: Fields, ...pointers: string[]][] = [
    ['nobody to wake', { client: undefined }, '/targets'],
    ['an agent that is not there', { agent: 'none' }, '/agent'],
    ['an agent that is a path', { agent: '../x' }, '/agent'],
    ['a target that is not there', { targets: ['none'] }, '/targets/0'],
    [
      'a target that may not be called',
      { targets: [{ url }, { url: 'ftp://127.0.0.1/' }] },
      '/targets/1/url',
    ],
    ['an unknown field in a target', { targets: [{ url, method: 'GET' }] }, '/targets/0/method'],
    ['a secret that is none', { targets: [{ url, secret: 'whsec_x' }] }, '/targets/0/secret'],
    ['a misspelt field in a target', { targets: [{ uri: url }] }, '/targets/0/url', '/targets/0/uri'],
    ['a target of another type', { targets: [5] }, '/targets/0'],
    ['an address of another type', { targets: [{ url: 5 }] }, '/targets/0/url'],
    ['eleven targets', { targets: Array(11).fill({ url }) }, '/targets'],
    ['a task id with a control character', { taskId: 'a\u0007' }, '/taskId'],
    ['a task id with half a surrogate', { taskId: '\udc00' }, '/taskId'],
    ['a task id of 257 bytes', { taskId: `${'é'.repeat(128)}x` }, '/taskId'],
    ['a task id that is a number', { taskId: 7 }, '/taskId'],
    ['no state', { states: [] }, '/states'],
    ['a state that is none', { states: ['completed', 'TASK_STATE_COMPLETED'] }, '/states/1'],
    ['a scope that is none', { scope: 'all' }, '/scope'],
    ['a life of nothing', { ttlSeconds: 0 }, '/ttlSeconds'],
    ['a life without end', { ttlSeconds: 1e308 }, '/ttlSeconds'],
    ['a life of half a second', { ttlSeconds: 60.5 }, '/ttlSeconds'],
    ['a life in words', { ttlSeconds: '3600' }, '/ttlSeconds'],
    ['a token of its own', { token: 'mine' }, '/token'],
  ]
  test.each(bad)('with %s is refused by name', async (_name, more, ...pointers) => {
    const body = { agent: 'demo', client: 'me', ...more }
    const code = pointers[0] === '/targets/1/url' ? 'address_not_allowed' : 'invalid'
    await refused('POST', '/v1/subscriptions', { body }, [code, ...pointers])
    await refused('PUT', '/v1/subscriptions/bad', { body }, [code, ...pointers])
  })

  test('keeps its task and its credentials from bad requests', async () => {
    const bind = '/v1/subscriptions/mine/bind'
    for (const body of [{}, { taskId: '' }, { taskId: ['t'] }])
      await refused('POST', bind, { body }, ['invalid', '/taskId'])
    const credentials = '/v1/subscriptions/mine/credentials'
    await refused('PUT', credentials, { body: {} }, ['invalid', '/credentials'])
    await refused('PUT', credentials, { body: { credentials: null } }, ['invalid', '/credentials'])
  })
})

test.each([
  ['an agent', { agent: 'none' }, '/agent'],
  ['a target', { target: 'none' }, '/target'],
])('a redrive of %s that is not there is refused by name', (_name, body, pointer) =>
  refused('POST', '/v1/redrive', { body: { dryRun: true, ...body } }, ['invalid', pointer]),
)

test('wakes that are asked for by nothing are refused in words that say by what they may be', async () => {
  const { status, body } = await api.ask('GET', '/v1/wakes')
  expect(status).toBe(422)
  expect(body.errors).toEqual([
    { pointer: '?task', detail: 'Expected one of task, agent, target, or state=failed' },
  ])
})

test('no body is an empty one where nothing is required, and a route without fields refuses them by name', async () => {
  expect((await api.ask('POST', '/v1/redrive')).body).toMatchObject({ dryRun: false })
  const key = api.local.operatorKey
  await refused('POST', '/v1/targets/none/enable', { body: { force: true } }, ['invalid', '/force'])
  await refused('POST', '/v1/targets/none/test', { body: [] }, ['invalid', ''])
  await refused('POST', '/v1/wakes/none/retry', { body: { at: 1 } }, ['invalid', '/at'])
  await refused('POST', '/v1/wakes/none/retry', {}, ['not_found'])
  await refused('POST', '/v1/keys', { key }, ['bad_request'])
})

describe('what is wrong with a field', () => {
  const bad: [name: string, more: Fields, ...details: string[]][] = [
    ['left out', { agent: undefined, targets: [{}] }, 'Required', 'Required'],
    ['of another type', { taskId: 7 }, 'Expected string, received number'],
    ['of a type that it may not have', { targets: [5] }, 'Expected string or object'],
    [
      'of no form that there is',
      { credentials: { type: 'x' } },
      'Expected one of bearer, basic, apiKey, oauth2',
    ],
    ['none of some words', { scope: 'all' }, 'Expected one of "task"|"agent"'],
    ['too low a number', { ttlSeconds: 5 }, 'Expected at least 60'],
    ['too high a number', { ttlSeconds: 4e7 }, 'Expected at most 31536000'],
    ['no whole number', { ttlSeconds: 60.5 }, 'Expected a whole number'],
    [
      'beyond all numbers',
      { ttlSeconds: 1e308 },
      'Expected at most 9007199254740991',
      'Expected at most 31536000',
    ],
    ['an empty text', { taskId: '' }, 'Expected at least 1 character'],
    ['too long a text', { targets: [{ url: 'u'.repeat(2049) }] }, 'Expected at most 2048 characters'],
    ['an empty list', { states: [] }, 'Expected at least 1 item'],
    ['too long a list', { targets: Array(11).fill('t') }, 'Expected at most 10 items'],
  ]
  test.each(bad)('that is %s is told in plain words', async (_name, more, ...details) => {
    const { body } = await api.ask('POST', '/v1/subscriptions', {
      body: { agent: 'demo', client: 'me', ...more },
    })
    expect(body.errors).toMatchObject(details.map(detail => ({ detail })))
  })
})

describe('a key', () => {
  const bad: [name: string, body: Fields, pointer: string][] = [
    ['no scope', { scopes: [] }, '/scopes'],
    ['a scope that is none', { scopes: ['root'] }, '/scopes/0'],
    ['a label of a page', { scopes: ['read'], label: 'x'.repeat(201) }, '/label'],
    ['a label with a control character', { scopes: ['read'], label: 'a\u001b[2J' }, '/label'],
    ['a key of its own', { scopes: ['read'], key: 'rk_mine' }, '/key'],
  ]
  test.each(bad)('with %s is refused by name', (_name, body, pointer) =>
    refused('POST', '/v1/keys', { body }, ['invalid', pointer]),
  )
})

describe('the page of errors', () => {
  test('explains every code at the place that a problem points to', async () => {
    const page = await api.ask('GET', '/docs/errors', { key: '' })
    expect({ status: page.status, type: page.headers['content-type'] }).toEqual({
      status: 200,
      type: 'text/html; charset=UTF-8',
    })
    for (const code of errorCodes)
      expect(page.text).toContain(
        `<dt id="${code}">${code} (HTTP ${statusOf(code)})</dt><dd>${says(code)}</dd>`,
      )
    const { type } = (await api.ask('GET', '/v1/agents/none')).body
    const { pathname, hash } = new URL(String(type))
    expect((await api.ask('GET', pathname, { key: '' })).text).toContain(`id="${hash.slice(1)}"`)
  })
})

test('states may be spelled as in events, and are shown as in A2A 0.3', async () => {
  const body = { agent: 'demo', client: 'me', states: ['input_required', 'auth-required'] }
  const { id, states } = await api.must<{ id: string; states: string[] }>('POST', '/v1/subscriptions', body)
  await api.ask('DELETE', `/v1/subscriptions/${id}`)
  expect(states).toEqual(['input-required', 'auth-required'])
})

test('no log line of all this holds a secret, and nothing broke', () => {
  expectDiscreet(api)
  expect(api.lines.filter(line => line.includes('"level":"error","door":"api"'))).toEqual([])
})
