// Anything at all: random methods, paths, parameters, headers and bodies never break the API, and what is refused leaves nothing.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ErrorCode, errorCodes } from '../../shared/errors.ts'
import {
  type Api,
  expectDiscreet,
  expectProblem,
  type Fields,
  routes,
  startApi,
  unread,
} from '../support/api.ts'

let api: Api

beforeAll(async () => {
  api = await startApi({ faults: unread })
  await api.must('PUT', '/v1/agents/demo', { cardUrl: api.agent.cardUrl() })
  await api.must('PUT', '/v1/targets/demo', { url: 'http://127.0.0.1:9/' })
  await api.must('PUT', '/v1/subscriptions/demo', { agent: 'demo', client: 'demo' })
})

afterAll(() => api.stop())

/** A value in its place, seldom another one. */
const mostly = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other })

const letters = (min: number, max: number): fc.Arbitrary<string> =>
  fc.integer({ min, max }).map(at => String.fromCharCode(at === 0x7f ? 0x20 : at))

const json = fc.jsonValue({ maxDepth: 4 })
/** What a path or a query can hold on the wire: visible ASCII. */
const wire = fc.string({ unit: letters(0x21, 0x7e), maxLength: 40 })
const word = fc.oneof(
  fc.constantFrom('demo', 'other', 'none'),
  fc.constantFrom('.', '..', '%2e%2e', '%00', '%', '%ff'),
  wire,
)

/** Fields that some route knows, each with a value that is right there. */
const known: Record<string, () => unknown> = {
  agent: () => 'demo',
  client: () => 'demo',
  scope: () => 'agent',
  taskId: () => 'task',
  principal: () => 'alice',
  states: () => ['completed'],
  targets: () => ['demo', { url: 'http://127.0.0.1:9/' }],
  credentials: () => ({ type: 'bearer', token: 'fuzz-token-9f2c7a41' }),
  ttlSeconds: () => 3600,
  cardUrl: () => api.agent.cardUrl(),
  card: () => ({ url: api.agent.endpointUrl({ version: '0.3' }), protocolVersion: '0.3.0' }),
  url: () => api.agent.endpointUrl(),
  binding: () => 'JSONRPC',
  version: () => '1.0',
  origins: () => [api.agent.origin],
  verification: () => ({ token: true }),
  offline: () => true,
  secret: () => `whsec_${Buffer.alloc(32, 9).toString('base64')}`,
  scopes: () => ['read'],
  label: () => 'fuzz',
  generation: () => 1,
}

/** What each route's body needs. */
const needs: Record<string, string[]> = {
  '/v1/agents/:agent': ['cardUrl'],
  '/v1/subscriptions': ['agent', 'client'],
  '/v1/subscriptions/:id': ['agent', 'client'],
  '/v1/subscriptions/:id/bind': ['taskId'],
  '/v1/subscriptions/:id/rotate': ['generation'],
  '/v1/subscriptions/:id/credentials': ['credentials'],
  '/v1/targets/:target': ['url'],
  '/v1/keys': ['scopes'],
}

const fields = fc.constantFrom(...Object.keys(known), 'other')

/** A right body with at most two fields more, some of them wrong. */
const bodyOf = (path: string): fc.Arbitrary<unknown> =>
  fc.dictionary(fields, mostly<unknown>(undefined, json), { maxKeys: 2 }).map(more => {
    const names = [...(needs[path] ?? []), ...Object.keys(more)]
    return Object.fromEntries(names.map(name => [name, more[name] ?? known[name]?.()]))
  })

const rubbish = fc.oneof(json, fc.string({ unit: 'binary' }), fc.uint8Array({ maxLength: 200 }))

const query = fc.array(
  fc.tuple(fc.oneof(fc.constantFrom('limit', 'after', 'client', 'task', 'state'), wire), wire),
  { maxLength: 2 },
)

const headers = fc.dictionary(
  fc.constantFrom('content-type', 'content-encoding', 'accept', 'host', 'cookie', 'x-forwarded-host'),
  fc.oneof(fc.constantFrom('application/json', 'gzip', '*/*'), fc.string({ unit: letters(0x20, 0xff) })),
  { maxKeys: 2 },
)

const methods = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE')

const request = fc.constantFrom(...routes).chain(({ method, path, needs: scope }) =>
  fc.record({
    words: fc.array(word, { minLength: 3, maxLength: 3 }),
    method: mostly<string>(method, methods),
    path: mostly(
      path,
      wire.map(text => `/${text}`),
    ),
    query: mostly<[string, string][]>([], query),
    body: method === 'GET' ? fc.constant(undefined) : fc.oneof(bodyOf(path), bodyOf(path), rubbish),
    headers: mostly<Record<string, string>>({}, headers),
    key: mostly<'demo' | 'operator' | 'none'>(
      scope === 'operator' ? 'operator' : 'demo',
      fc.constantFrom('demo', 'operator', 'none'),
    ),
  }),
)

test('no request breaks the API, and whatever is refused is refused by a problem and leaves nothing', {
  timeout: 180_000,
}, async () => {
  const keys = { demo: api.key, operator: api.local.operatorKey, none: '' }
  const statuses = new Set<number>()
  await fc.assert(
    fc.asyncProperty(request, async ({ words, method, path, query, key, headers, body }) => {
      const left = [...words]
      const place = path.replace(/:\w+/g, () => left.pop() ?? '')
      const asked = query.map(([name, value]) => `${name}=${value}`).join('&')
      const before = await api.items()
      const ask = { headers, body, key: keys[key] }
      const answer = await api.ask(method, `${place}${asked && `?${asked}`}`, ask)
      statuses.add(answer.status)
      expect(answer.status).toBeLessThan(500)
      if (answer.status < 400) return
      if (answer.text !== '') expectProblem(api, answer, codeOf(answer.body))
      expect(await api.items()).toEqual(before)
    }),
    { numRuns: 300 },
  )
  // All of it would be in vain if nothing were let in.
  expect([...statuses]).toEqual(expect.arrayContaining([200, 401, 403, 404, 405, 422]))
})

const codeOf = ({ code }: Fields): ErrorCode => errorCodes.find(one => one === code) ?? 'internal'

test('no log line of all this holds a secret, and nothing broke', () => {
  expectDiscreet(api)
  expect(api.lines.filter(line => line.includes('"level":"error","door":"api"'))).toEqual([])
})
