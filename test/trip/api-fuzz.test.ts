// Anything at all: random methods, paths, parameters, headers and bodies never break the API, and what is refused leaves nothing.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ErrorCode, errorCodes } from '../../shared/errors.ts'
import { type Api, expectDiscreet, expectProblem, type Fields, routes, startApi } from '../support/api.ts'

let api: Api

beforeAll(async () => {
  api = await startApi()
  await api.must('PUT', '/v1/agents/demo', { cardUrl: api.agent.cardUrl() })
  await api.must('PUT', '/v1/targets/demo', { url: 'http://127.0.0.1:9/' })
  await api.must('PUT', '/v1/subscriptions/demo', { agent: 'demo', client: 'demo' })
})

afterAll(() => api.stop())

/** A value in its place, seldom another one. */
const mostly = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other })

const json = fc.jsonValue({ maxDepth: 4 })
/** What a path or a query can hold on the wire: visible ASCII. */
const wire = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map(at => String.fromCharCode(at)),
  maxLength: 40,
})
const word = fc.oneof(fc.constantFrom('demo', 'none', '.', '..', '%2e%2e', '%00', '%', '%ff'), wire)

/** Fields that some route knows, each with a value that is right somewhere. */
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
}

const object = fc
  .subarray(Object.keys(known), { maxLength: 6 })
  .chain(names => fc.record(Object.fromEntries(names.map(name => [name, mostly<unknown>(undefined, json)]))))
  .map(fields =>
    Object.fromEntries(Object.entries(fields).map(([name, other]) => [name, other ?? known[name]?.()])),
  )

const body = fc.oneof<fc.Arbitrary<unknown>[]>(
  { weight: 4, arbitrary: object } as never,
  json,
  fc.string({ unit: 'binary' }),
  fc.uint8Array({ maxLength: 200 }),
  fc.constant(undefined),
)

const query = fc.array(
  fc.tuple(fc.oneof(fc.constantFrom('limit', 'after', 'client', 'task', 'state'), wire), wire),
  { maxLength: 2 },
)

const request = fc.record({
  route: fc.constantFrom(...routes),
  words: fc.array(word, { minLength: 3, maxLength: 3 }),
  method: mostly('', fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE')),
  path: mostly('', wire),
  query,
  body,
  headers: fc.dictionary(
    fc.constantFrom(
      'content-type',
      'content-encoding',
      'accept',
      'host',
      'cookie',
      'x-forwarded-host',
      'transfer-encoding-x',
    ),
    fc.oneof(
      fc.constantFrom('application/json', 'gzip', '*/*'),
      fc.string({
        unit: fc.integer({ min: 0x20, max: 0xff }).map(at => (at === 0x7f ? ' ' : String.fromCharCode(at))),
      }),
    ),
    { maxKeys: 2 },
  ),
  key: mostly<'demo' | 'operator' | 'none'>('demo', fc.constantFrom('operator', 'none')),
})

test('no request breaks the API, and whatever is refused is refused by a problem and leaves nothing', {
  timeout: 180_000,
}, async () => {
  const keys = { demo: api.key, operator: api.local.operatorKey, none: '' }
  const statuses = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(request, async ({ route, words, method, path, query, body, headers, key }) => {
      const names = [...words]
      const place = path === '' ? route.path.replace(/:\w+/g, () => names.pop() ?? '') : `/${path}`
      const asked = query.map(([name, value]) => `${name}=${value}`).join('&')
      const before = await api.items()
      const answer = await api.ask(method || route.method, `${place}${asked && `?${asked}`}`, {
        key: keys[key],
        headers,
        body,
      })
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      expect(answer.status).toBeLessThan(500)
      if (answer.status < 400) return settle()
      if (answer.text !== '') expectProblem(api, answer, codeOf(answer.body))
      expect(await api.items()).toEqual(before)
    }),
    { numRuns: 300 },
  )
  // All of it would be in vain if nothing were let in.
  expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 401, 403, 404, 405, 422]))
})

/** Looks that a success brought on change the table too. */
const settle = (): Promise<void> => api.local.drain()

const codeOf = ({ code }: Fields): ErrorCode => errorCodes.find(one => one === code) ?? 'internal'

test('no log line of all this holds a secret, and nothing broke', () => {
  expectDiscreet(api)
  expect(api.lines.filter(line => line.includes('"error"'))).toEqual([])
})
