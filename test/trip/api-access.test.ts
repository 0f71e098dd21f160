// Who may do what: tenants, keys and their scopes, and that nobody learns of what belongs to another.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createApi } from '../../functions/api/app.ts'
import { createRelay } from '../../shared/relay.ts'
import { type Api, expectDiscreet, expectProblem, pathOf, routes, startApi } from '../support/api.ts'

let api: Api
/** A key for each way of calling. */
const keys: Record<string, string> = {}

beforeAll(async () => {
  api = await startApi()
  for (const scope of ['read', 'write', 'admin']) {
    const made = await api.must<{ key: string }>('POST', '/v1/keys', { scopes: [scope], label: `a ${scope}` })
    keys[scope] = made.key
  }
  Object.assign(keys, { operator: api.local.operatorKey, nobody: '', unknown: `rk_${'A'.repeat(43)}` })
})

afterAll(() => api.stop())

/** Which callers a route lets in. The operator has no tenant's data, only its keys, and messages that are nobody's. */
const admitted = {
  operator: ['operator'],
  keys: ['admin', 'operator'],
  mend: ['write', 'admin', 'operator'],
  admin: ['admin'],
  write: ['write', 'admin'],
  read: ['read', 'write', 'admin'],
}

describe.each(routes)('$method $path needs $needs', route => {
  const letIn = admitted[route.needs]
  const call = (caller: string) => api.ask(route.method, pathOf(route), { key: keys[caller] ?? '', body: {} })

  test.each(letIn)('%s is let in', async caller => {
    // Nothing of the kind exists and most bodies lack something: all that matters is who was stopped.
    const { status } = await call(caller)
    expect([200, 201, 204, 404, 422]).toContain(status)
  })

  test.each(['read', 'write', 'admin', 'operator'].filter(caller => !letIn.includes(caller)))(
    '%s is kept out',
    async caller => expectProblem(api, await call(caller), 'forbidden'),
  )

  test.each(['nobody', 'unknown'])('%s must say who calls', async caller => {
    const answer = await call(caller)
    expectProblem(api, answer, 'unauthorized')
    expect(answer.headers['www-authenticate']).toBe('Bearer')
  })
})

test('the table of routes above is the whole API', () => {
  const origin = 'http://rouse.example'
  const relay = createRelay('api', {
    ...{ TABLE_NAME: 't', LOOK_QUEUE_URL: 'q', DELIVER_QUEUE_URL: 'q', ROOT_KEYS: 'none' },
    ...{ PUBLIC_ORIGIN: origin, HOOK_ORIGIN: origin },
  })
  const served = createApi(relay)
    .routes.filter(({ method, path }) => method !== 'ALL' && path.startsWith('/v1/'))
    .map(({ method, path }) => `${method} ${path}`)
  expect(routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(served.sort())
})

describe('a method that a path does not take', () => {
  const paths = [...new Set(routes.map(({ path }) => path))]
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']

  test.each(paths)('%s says which it takes', async path => {
    const takes = routes.filter(one => one.path === path).flatMap(({ method }) => withHead(method))
    for (const method of methods.filter(one => !takes.includes(one))) {
      const answer = await api.ask(method, pathOf({ path }))
      expect({ method, status: answer.status }).toEqual({ method, status: 405 })
      if (method !== 'HEAD') expectProblem(api, answer, 'method_not_allowed')
      expect(answer.headers.allow?.split(', ').sort()).toEqual([...takes].sort())
    }
  })

  const withHead = (method: string): string[] => (method === 'GET' ? ['GET', 'HEAD'] : [method])
})

test('HEAD tells what GET would, without a body', async () => {
  const [head, got] = [await api.ask('HEAD', '/v1/keys'), await api.ask('GET', '/v1/keys')]
  expect({ status: head.status, type: head.headers['content-type'], text: head.text }).toEqual({
    status: got.status,
    type: got.headers['content-type'],
    text: '',
  })
})

describe('the key', () => {
  const ways: [name: string, authorization: (key: string) => string | string[], status: number][] = [
    ['any case of the scheme', key => `bEARER ${key}`, 200],
    ['two blanks after the scheme', key => `Bearer  ${key}`, 200],
    ['no scheme', key => key, 401],
    ['another scheme', key => `Basic ${key}`, 401],
    ['a scheme alone', () => 'Bearer', 401],
    ['a tab after the scheme', key => `Bearer\t${key}`, 401],
    ['two keys in one header', key => `Bearer ${key}, Bearer ${key}`, 401],
    ['two headers', key => [`Bearer ${key}`, `Bearer ${key}`], 401],
    ['a letter in another case', key => `Bearer ${key.toLowerCase()}`, 401],
    ['a letter outside ASCII', key => `Bearer ${key}\u00e9`, 401],
    ['10 kB', key => `Bearer ${key}${'A'.repeat(10_000)}`, 401],
  ]
  test.each(ways)('with %s', async (_name, authorization, status) => {
    const headers = { authorization: authorization(api.key) }
    const answer = await api.ask('GET', '/v1/agents', { key: '', headers })
    expect(answer.status).toBe(status)
  })
})

describe('keys', () => {
  test('a key is shown once, when it is made, and found by its id later', async () => {
    const made = await api.must('POST', '/v1/keys', { scopes: ['read', 'read'], label: 'phone' })
    const { key, ...shown } = made
    expect(made).toEqual({
      id: expect.stringMatching(/^key_[\w-]{24}$/),
      key: expect.stringMatching(/^rk_[\w-]{43}$/),
      tenant: 'demo',
      scopes: ['read'],
      label: 'phone',
      createdAt: expect.any(Number),
    })
    const { keys: listed } = await api.must<{ keys: unknown[] }>('GET', '/v1/keys')
    expect(listed).toContainEqual(shown)
    expect(JSON.stringify(await api.items())).not.toContain(key)
  })

  test('a deleted key opens nothing once it is no longer remembered', async () => {
    const { id, key } = await api.must<{ id: string; key: string }>('POST', '/v1/keys', { scopes: ['read'] })
    expect((await api.ask('GET', '/v1/agents', { key })).status).toBe(200)
    expect((await api.ask('DELETE', `/v1/keys/${id}`)).status).toBe(204)
    api.local.advance(30_000)
    expectProblem(api, await api.ask('GET', '/v1/agents', { key }), 'unauthorized')
    expectProblem(api, await api.ask('DELETE', `/v1/keys/${id}`), 'not_found')
  })

  test('an admin manages the keys of its own tenant only', async () => {
    const of = { tenant: 'other', scopes: ['admin'] }
    expectProblem(api, await api.ask('POST', '/v1/keys', { body: of }), 'not_found')
    expectProblem(api, await api.ask('GET', '/v1/keys?tenant=other'), 'not_found')
    const key = api.local.keys.other ?? ''
    const { id } = (await api.ask('POST', '/v1/keys', { key, body: { scopes: ['read'] } })).body
    expectProblem(api, await api.ask('DELETE', `/v1/keys/${id}`), 'not_found')
    expect((await api.ask('DELETE', `/v1/keys/${id}`, { key })).status).toBe(204)
  })

  test('the operator names the tenant', async () => {
    const key = api.local.operatorKey
    expectProblem(api, await api.ask('GET', '/v1/keys', { key }), 'invalid', ['?tenant'])
    const nameless = { scopes: ['read'] }
    expectProblem(api, await api.ask('POST', '/v1/keys', { key, body: nameless }), 'invalid', ['/tenant'])
    expect((await api.ask('GET', '/v1/keys?tenant=other', { key })).status).toBe(200)
    expectProblem(api, await api.ask('GET', '/v1/keys?tenant=nobody', { key }), 'not_found')
  })
})

describe('tenants', () => {
  const operator = (method: string, path: string, body?: unknown) =>
    api.ask(method, path, { key: api.local.operatorKey, body })

  test('a tenant is made, shown as it is, made again without harm, and deleted', async () => {
    const first = await operator('PUT', '/v1/tenants/acme', { label: 'Acme' })
    expect(first.body).toEqual({ tenant: 'acme', label: 'Acme', createdAt: expect.any(Number) })
    api.local.advance(1000)
    expect((await operator('PUT', '/v1/tenants/acme', { label: 'Acme' })).body).toEqual(first.body)
    expect((await operator('GET', '/v1/tenants/acme')).body).toEqual(first.body)
    expect((await operator('DELETE', '/v1/tenants/acme')).status).toBe(204)
    expectProblem(api, await operator('GET', '/v1/tenants/acme'), 'not_found')
  })

  test("a deleted tenant's name is nobody's while some of what belonged to it may be kept, nor are keys made for it", async () => {
    const name = 'brief'
    await operator('PUT', `/v1/tenants/${name}`, { label: 'First' })
    const of = { tenant: name, scopes: ['admin'] }
    const { id, key } = (await operator('POST', '/v1/keys', of)).body
    const theirs = (method: string, path: string, body?: unknown) =>
      api.ask(method, path, { key: String(key), body })
    await theirs('PUT', '/v1/agents/old', { cardUrl: api.agent.cardUrl() })
    await theirs('POST', '/v1/subscriptions', { agent: 'old', client: 'reader', taskId: 'never-was' })
    await api.local.drain()
    const { subscriptions } = (await theirs('GET', '/v1/subscriptions')).body
    for (const one of Array.isArray(subscriptions) ? subscriptions : [])
      await theirs('DELETE', `/v1/subscriptions/${one.id}`)
    await theirs('DELETE', '/v1/agents/old')
    await operator('DELETE', `/v1/keys/${id}?tenant=${name}`)
    const left = (await api.items()).filter(({ pk }) => String(pk).startsWith('K#'))
    expect(left).not.toEqual([])
    for (const _ of ['deleted', 'and deleted again'])
      expect((await operator('DELETE', `/v1/tenants/${name}`)).status).toBe(204)

    const again = await operator('PUT', `/v1/tenants/${name}`, { label: 'Second' })
    expectProblem(api, again, 'tenant_deleted', ['/tenant'])
    expect(again.body.detail).toMatch(/until \d{4}-\d\d-\d\dT/)
    expectProblem(api, await operator('POST', '/v1/keys', of), 'tenant_deleted', ['/tenant'])
    expectProblem(api, await operator('GET', `/v1/tenants/${name}`), 'not_found')
    api.local.advance(30_000)
    expectProblem(api, await theirs('GET', '/v1/agents'), 'unauthorized')
  })

  test('a tenant with keys is not deleted', async () => {
    expectProblem(api, await operator('DELETE', '/v1/tenants/other'), 'conflict')
    expect((await operator('GET', '/v1/tenants/other')).status).toBe(200)
  })
})

describe('what belongs to another tenant', () => {
  const things = {
    '/v1/agents/mine': '/v1/agents/none',
    '/v1/subscriptions/mine': '/v1/subscriptions/none',
    '/v1/targets/mine': '/v1/targets/none',
  }
  const theirs = (method: string, path: string, body?: unknown) =>
    api.ask(method, path, { key: api.local.keys.other ?? '', body })

  beforeAll(async () => {
    await api.must('PUT', '/v1/agents/mine', { cardUrl: api.agent.cardUrl() })
    await api.must('PUT', '/v1/targets/mine', { url: `${api.agent.origin}/hook` })
    await api.must('PUT', '/v1/subscriptions/mine', { agent: 'mine', client: 'c', targets: ['mine'] })
  })

  test.each(Object.entries(things))('%s is answered just like %s', async (path, nothing) => {
    const calls: [method: string, suffix: string, body?: unknown][] = [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/bind', { taskId: 't' }],
      ['POST', '/rotate', { generation: 1 }],
      ['PUT', '/credentials', { credentials: { type: 'bearer', token: 'x' } }],
    ]
    for (const [method, suffix, body] of path.includes('subscriptions') ? calls : calls.slice(0, 2)) {
      const answer = await theirs(method, path + suffix, body)
      expectProblem(api, answer, 'not_found')
      expect(answer.text).toBe((await theirs(method, nothing + suffix, body)).text)
    }
    expect((await api.ask('GET', path)).status).toBe(200)
  })

  test('is in no list and cannot be used', async () => {
    for (const kind of ['agents', 'targets', 'subscriptions'])
      expect((await theirs('GET', `/v1/${kind}`)).body).toEqual({ [kind]: [] })
    const wish = { agent: 'mine', client: 'c' }
    expectProblem(api, await theirs('POST', '/v1/subscriptions', wish), 'invalid', ['/agent'])
    expect((await theirs('PUT', '/v1/agents/own', { cardUrl: api.agent.cardUrl() })).status).toBe(201)
    const stolen = { agent: 'own', targets: ['mine'] }
    expectProblem(api, await theirs('POST', '/v1/subscriptions', stolen), 'invalid', ['/targets/0'])
  })

  test('does not keep anybody from the same name', async () => {
    await theirs('PUT', '/v1/targets/mine', { url: `${api.agent.origin}/theirs` })
    expect((await api.ask('GET', '/v1/targets/mine')).body.url).toBe(`${api.agent.origin}/hook`)
    expect((await theirs('GET', '/v1/targets/mine')).body.url).toBe(`${api.agent.origin}/theirs`)
  })
})

test('no log line of all this holds a secret', () => {
  expectDiscreet(api)
})
