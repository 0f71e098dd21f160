// What the API answers is what its page says: each route is asked through the real door, and every field of its answer is looked up there.
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { routes } from '../support/api.ts'
import { type Routes, routesOf } from '../support/routes.ts'
import { startTrip, type Trip } from '../support/trip.ts'

const page = readFileSync(new URL('../../API.md', import.meta.url), 'utf8')
const [, answers = ''] = page.split('\n## Answers\n')
const cellsOf = (line: string): string[] => line.split('|').map(cell => cell.trim())
const codes = (text: string): string[] => [...text.matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name)

/** The fields of each thing that has a table of its own. */
const things = new Map(
  answers
    .split('\n### ')
    .slice(1)
    .map(section => {
      const [title = '', ...lines] = section.split('\n')
      const rows = lines.filter(line => line.startsWith('| `')).map(line => cellsOf(line)[1] ?? '')
      return [title.toLowerCase(), rows.flatMap(codes)]
    }),
)

/** The fields that a route's row names: its own, those of a thing, and those of the things in a list. */
function fieldsOf(row: string): string[] {
  const plain = row.replaceAll(/\([^()]*\)/g, '').replaceAll(/\]\s*/g, '] ')
  return plain.split(',').flatMap(item => {
    const [name] = codes(item)
    const thing = /\[(\w+)\]/.exec(item)?.[1]
    const parts = thing === undefined ? [] : things.get(thing)
    if (parts === undefined) throw new Error(`No table tells what a ${thing} is`)
    return name === undefined ? parts : [name, ...parts.map(part => `${name}.${part}`)]
  })
}

const stated = new Map(
  (answers.split('\n### ')[0] ?? '')
    .split('\n')
    .filter(line => line.startsWith('| `'))
    .map(line => cellsOf(line))
    .map(([, route = '', row = '']): [string, string[]] => [route.slice(1, -1), fieldsOf(row)]),
)

/** Every field of a value as a path; into a field only where the page says what is in it. */
function pathsIn(value: unknown, known: string[], at = ''): string[] {
  if (Array.isArray(value)) return value.flatMap(one => pathsIn(one, known, at))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => {
    const path = at === '' ? name : `${at}.${name}`
    return [path, ...(known.some(one => one.startsWith(`${path}.`)) ? pathsIn(inner, known, path) : [])]
  })
}

/** What these answers have no reason to say, or only at times. */
const rare = [
  ...['about', 'afterMs', 'again', 'answer', 'data', 'disabledAt', 'earlier'],
  ...['folded', 'nextProbeAt', 'queue', 'reason', 'times'],
]

let trip: Trip
const seen = new Map<string, Set<string>>()

beforeAll(async () => {
  trip = await startTrip()
})
afterAll(() => trip.stop())

test('the page says of every route what it answers', () => {
  expect([...stated.keys()]).toEqual(routes.map(({ method, path }) => `${method} ${path}`))
})

test('each route answers fields that the page states, and no other', async () => {
  const operator = routesOf(trip.local.apiOrigin, trip.local.operatorKey)
  /** Asks one route, and notes which fields its answer has. */
  const ask = async (
    route: string,
    names: string[] = [],
    body?: unknown,
    { by = trip, query = '' }: { by?: Pick<Routes, 'call'>; query?: string } = {},
  ) => {
    const [method = '', path = ''] = route.split(' ')
    const filled = names.reduce((left, name) => left.replace(/:\w+/, name), path)
    const answer = await by.call<Record<string, unknown>>(method, filled + query, body)
    const known = stated.get(route) ?? []
    const paths = seen.get(route) ?? new Set()
    for (const field of pathsIn(answer, known)) paths.add(field)
    seen.set(route, paths)
    return answer
  }

  const asOperator = { by: operator }
  await ask('PUT /v1/tenants/:tenant', ['acme'], { label: 'Acme' }, asOperator)
  await ask('GET /v1/tenants/:tenant', ['acme'], undefined, asOperator)
  const made = await ask('POST /v1/keys', [], { tenant: 'acme', scopes: ['read'], label: 'r' }, asOperator)
  await ask('GET /v1/keys', [], undefined, { by: operator, query: '?tenant=acme&limit=1' })
  await ask('DELETE /v1/keys/:id', [String(made.id)], undefined, { by: operator, query: '?tenant=acme' })
  await ask('DELETE /v1/tenants/:tenant', ['acme'], undefined, asOperator)

  const oauth = { type: 'oauth2', grant: 'client_credentials', clientId: 'c', clientSecret: 's' }
  const agent = await trip.startAgent({ sign: 'ES256' })
  const jwt = { jwksUrl: agent.jwksUrl, issuer: agent.origin }
  const card = agent.cardUrl()
  await ask('PUT /v1/agents/:agent', ['signs'], {
    ...{ cardUrl: card, verification: { jwt }, floorSeconds: 60, agentTenant: 'a' },
    ...{ credentials: { ...oauth, tokenUrl: `${agent.origin}/token` } },
  })
  await ask('PUT /v1/agents/:agent', ['idle'], { cardUrl: card })
  await ask('GET /v1/agents/:agent/health', ['signs'])
  await ask('GET /v1/agents/:agent', ['idle'])
  await ask('GET /v1/agents', [], undefined, { query: '?limit=1' })
  await ask('DELETE /v1/agents/:agent', ['idle'])

  const scene = await trip.scene()
  const phone = trip.clients.make()
  const { secret } = await ask('PUT /v1/targets/:target', ['phone'], { url: phone.url, ratePerSecond: 100 })
  phone.secret = String(secret)
  await ask('POST /v1/targets/:target/test', ['phone'])
  await ask('POST /v1/targets/:target/rotate', ['phone'], { secretGeneration: 1 })
  await ask('GET /v1/targets/:target', ['phone'])
  await ask('GET /v1/targets', [], undefined, { query: '?limit=1' })
  await ask('PUT /v1/operations', [], { targets: ['phone'] })
  await ask('GET /v1/operations')
  await ask('DELETE /v1/operations')

  const { taskId, made: sub, client } = await trip.begin(scene, { states: ['working', 'failed'] })
  const parentTask = { agent: scene.id, taskId }
  const more = { taskId: 't-none', parentTask, hopTimeoutSeconds: 60, endToEndSeconds: 60, client: 'c' }
  await ask('PUT /v1/subscriptions/:id', ['below'], {
    ...{ agent: scene.id, ...more },
    targets: ['phone', { url: phone.url }],
  })
  const unbound = await ask('POST /v1/subscriptions', [], { agent: scene.id, client: 'c' })
  await ask('POST /v1/subscriptions/:id/bind', [String(unbound.id)], { taskId })
  await ask('POST /v1/subscriptions/:id/rotate', [String(unbound.id)], { generation: 1 })
  const credentials = { type: 'bearer', token: 't' }
  await ask('PUT /v1/subscriptions/:id/credentials', [String(unbound.id)], { credentials })
  await ask('GET /v1/subscriptions/:id', [String(unbound.id)])
  await ask('GET /v1/subscriptions', [], undefined, { query: '?limit=1' })
  await ask('DELETE /v1/subscriptions/:id', [String(unbound.id)])

  const unwanted = await trip.begin(scene)
  await ask('POST /v1/tasks/:agent/:taskId/cancel', [scene.id, unwanted.taskId], {})
  await ask('GET /v1/tasks', [], undefined, { query: `?parent=${scene.id}/${taskId}` })
  await scene.agent.addArtifact(taskId, 'half of it')
  client.answer({ status: 410 })
  await scene.agent.setState(taskId, 'failed')
  // Looks that waited for the window of one before have had their turn.
  await trip.pass(10_000, 4)
  await ask('GET /v1/agents/:agent/health', [scene.id])
  await ask('GET /v1/tasks/:agent/:taskId', [scene.id, taskId])
  await ask('GET /v1/tasks/:agent/:taskId', [scene.id, 't-none'])
  await ask('GET /v1/tasks/:agent/:taskId', [scene.id, unwanted.taskId])
  await ask('GET /v1/inbox', [], undefined, { query: `?client=${client.name}` })
  const { wakes } = await trip.call<{ wakes: { id: string }[] }>(
    'GET',
    `/v1/wakes?task=${taskId}&agent=${scene.id}`,
  )
  await ask('GET /v1/wakes', [], undefined, { query: `?task=${taskId}&agent=${scene.id}&limit=1` })
  await ask('POST /v1/redrive', [], { dryRun: true })
  const [target = ''] = sub.targets.map(one => one.target)
  await ask('POST /v1/targets/:target/enable', [target])
  client.answer({})
  await ask('POST /v1/redrive', [], {})
  await trip.settle()
  await ask('POST /v1/inbox/replay', [], { client: client.name, target })
  await trip.settle()
  const [wake] = wakes
  await ask('GET /v1/wakes/:id', [wake?.id ?? ''])
  await ask('POST /v1/wakes/:id/retry', [wake?.id ?? ''])
  await ask('DELETE /v1/targets/:target', ['phone'])

  const strange = [...stated].flatMap(([route, fields]) =>
    [...(seen.get(route) ?? [])]
      .filter(path => !fields.includes(path) && !fields.some(one => one.startsWith(`${path}.`)))
      .map(path => `${route}: ${path}`),
  )
  expect(strange).toEqual([])
  expect([...stated.keys()].filter(route => !seen.has(route))).toEqual([])
  const last = (path: string): string => path.split('.').at(-1) ?? ''
  const found = new Set([...seen.values()].flatMap(paths => [...paths].map(last)))
  const unseen = new Set([...stated.values()].flat().map(last))
  expect([...unseen].filter(name => !found.has(name) && !rare.includes(name))).toEqual([])
})
