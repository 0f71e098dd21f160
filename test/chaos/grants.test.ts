// Tokens of agents through the real doors: a token endpoint that fails for long is told and shown, and credentials put anew keep what was granted.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Client } from '../support/clients.ts'
import { type Answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { type Scripted, startScripted, status } from '../support/scripted.ts'
import { push, startTrip, statusPush, type Trip } from '../support/trip.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

let trip: Trip
let tokens: Receiver
let agent: Scripted
let alarm: Client
let named = 0
let id: string
/** The refresh tokens that were used. */
let used: string[]

beforeAll(async () => {
  trip = await startTrip()
  tokens = await startReceiver()
  agent = await startScripted()
  alarm = trip.clients.make()
  const made = await trip.call<{ secret: string }>('PUT', '/v1/targets/alarm', { url: alarm.url })
  alarm.secret = made.secret
  await trip.call('PUT', '/v1/operations', { targets: ['alarm'] })
})

afterAll(async () => {
  await trip.stop()
  await Promise.all([tokens.stop(), agent.stop()])
})

beforeEach(() => {
  id = `a${++named}`
  used = []
  answering(rotate)
  agent.instead(undefined)
})

/** What the endpoint answers to this test's agent from now on. Agents of tests before go on asking, and count for nothing. */
function answering(answer: Answer | ((asked: { body: string }) => Answer)): void {
  const own = `/${id}`
  tokens.answer(asked => {
    if (asked.url !== own) return { status: 503 }
    return typeof answer === 'function' ? answer(asked) : answer
  })
}
const asked = () => tokens.requests.filter(({ url }) => url === `/${id}`)

/** A server that rotates, and takes each refresh token once. */
function rotate({ body }: { body: string }): Answer {
  const refresh = new URLSearchParams(body).get('refresh_token') ?? ''
  const fresh = { access_token: `at-${used.length}`, token_type: 'bearer', expires_in: 600 }
  if (refresh === '') return { body: JSON.stringify(fresh) }
  const wanted = `r-${used.length}`
  if (refresh !== wanted) return { status: 400, body: '{"error":"invalid_grant"}' }
  used.push(refresh)
  return { body: JSON.stringify({ ...fresh, refresh_token: `r-${used.length}` }) }
}

const common = () => ({
  type: 'oauth2',
  tokenUrl: `${tokens.origin}/${id}`,
  clientId: 'c',
  clientSecret: 's',
})
const byClient = () => ({ ...common(), grant: 'client_credentials' })
const byToken = () => ({ ...common(), grant: 'refresh_token', refreshToken: 'r-0' })

const register = (credentials?: object) =>
  trip.call('PUT', `/v1/agents/${id}`, {
    ...{ url: agent.origin, binding: 'JSONRPC', version: '1.0' },
    ...{ origins: [agent.origin, tokens.origin], ...(credentials && { credentials }) },
  })

const healthOf = async () => trip.call<{ token: Record<string, unknown> }>('GET', `/v1/agents/${id}/health`)

/** What operations were told about the agent. */
const alarms = () => alarm.told().filter(({ data }) => JSON.stringify(data).includes(`"${id}"`))
const typesOf = (told: { type: string }[]) => told.map(({ type }) => type)

test('a token endpoint that asks for a day is asked again within a quarter of an hour', async () => {
  await register(byClient())
  answering({ status: 503, headers: { 'retry-after': '86400' } })
  agent.put(id, status('completed'))
  const { client } = await trip.subscribe(id, { taskId: id })
  await trip.pass(minute, 2)
  expect(asked().length).toBe(1)
  answering(rotate)
  await trip.pass(35 * minute, 35)
  expect(typesOf(client.told())).toEqual(['task.completed'])
})

test.each<[name: string, answer: Answer]>([
  ['a 500', { status: 500 }],
  ['a page', { body: '<html>' }],
])(
  'a token endpoint that answers %s for long: operations are told once, health shows it, recovery is told',
  async (_name, answer) => {
    await register(byClient())
    expect(await healthOf()).toMatchObject({ token: { fault: null, failingSince: null } })
    answering(answer)
    agent.put(id, status('completed'))
    const { client } = await trip.subscribe(id, { taskId: id })
    await trip.pass(3 * hour, 60)
    expect(alarms()).toMatchObject([
      {
        type: 'agent.unreachable',
        data: { about: { agent: id }, reason: expect.stringMatching(/^The token endpoint: ./) },
      },
    ])
    expect(await healthOf()).toMatchObject({
      token: {
        fault: expect.any(String),
        failingSince: expect.any(Number),
        nextTryAt: expect.any(Number),
        spent: false,
      },
    })
    answering(rotate)
    await trip.pass(35 * minute, 35)
    expect(typesOf(client.told())).toEqual(['task.completed'])
    expect(typesOf(alarms())).toEqual(['agent.unreachable', 'agent.recovered'])
    expect(await healthOf()).toMatchObject({ token: { fault: null, failingSince: null, nextTryAt: null } })
  },
)

test("when it is a subscription's own, its client is told once, and the task's state after it", async () => {
  await register()
  answering({ status: 500 })
  agent.put(id, status('completed'))
  const { client } = await trip.subscribe(id, { taskId: id, credentials: byClient() })
  await trip.pass(3 * hour, 60)
  expect(typesOf(client.told())).toEqual(['subscription.credentials_expired'])
  answering(rotate)
  await trip.pass(35 * minute, 35)
  expect(typesOf(client.told())).toEqual(['subscription.credentials_expired', 'task.completed'])
  expect(alarms()).toEqual([])
})

test.each(['agent', 'subscription'])(
  'the same credentials put again for the %s keep the refresh token that the server rotated',
  async whose => {
    const own = whose === 'agent'
    await register(own ? byToken() : undefined)
    agent.put(id, status('working'))
    const { client, made } = await trip.subscribe(id, {
      taskId: id,
      ...(!own && { credentials: byToken() }),
    })
    await trip.pass(hour, 12)
    const before = used.length
    expect(before).toBeGreaterThan(0)
    if (own) await register(byToken())
    else await trip.call('PUT', `/v1/subscriptions/${made.id}/credentials`, { credentials: byToken() })
    await trip.pass(hour, 12)
    agent.put(id, status('completed'))
    await trip.pass(3 * hour, 60)
    expect(typesOf(client.told())).toEqual(['task.completed'])
    expect(used.length).toBeGreaterThan(before)
  },
)

test('spent credentials that are put again are tried once more', async () => {
  await register(byToken())
  answering({ body: '{"error":"invalid_grant"}' })
  agent.put(id, status('completed'))
  const { client } = await trip.subscribe(id, { taskId: id })
  await trip.pass(hour, 12)
  expect(asked().length).toBe(1)
  expect(typesOf(alarms())).toEqual(['subscription.credentials_expired'])
  expect(await healthOf()).toMatchObject({ token: { fault: 'invalid_grant', spent: true } })
  answering(rotate)
  await register(byToken())
  await trip.pass(hour, 60)
  expect(typesOf(client.told())).toEqual(['task.completed'])
})

test("an agent's credentials that run out again another day are told again", async () => {
  await register({ type: 'bearer', token: 'old' })
  agent.put(id, status('working'))
  await trip.subscribe(id, { taskId: id })
  await trip.pass(minute, 2)
  for (const times of [1, 2]) {
    agent.instead(() => ({ status: 401 }))
    await trip.pass(12 * hour, 60)
    expect(typesOf(alarms())).toEqual(Array(times).fill('subscription.credentials_expired'))
    agent.instead(undefined)
    await trip.pass(24 * hour, 60)
  }
})

test('bad credentials of one subscription keep no news from another that has good ones', async () => {
  await register()
  agent.put(id, status('working'))
  const first = await trip.subscribe(id, { taskId: id, credentials: { type: 'bearer', token: 'good' } })
  await trip.pass(3000, 3)
  agent.instead(() => {
    const { headers } = agent.calls(id).at(-1) ?? { headers: {} as Record<string, unknown> }
    return headers.authorization === 'Bearer good' ? undefined : { status: 401 }
  })
  const second = await trip.subscribe(id, { taskId: id, credentials: { type: 'bearer', token: 'bad' } })
  await trip.pass(3000, 3)
  agent.put(id, status('completed'))
  await trip.pass(7 * hour, 40)
  expect(typesOf(first.client.told())).toEqual(['task.completed'])
  expect(typesOf(second.client.told())).toContain('task.completed')
})

test('when the credentials of all are refused, each whose own they are is told', async () => {
  await register()
  agent.put(id, status('working'))
  const credentials = (token: string) => ({ credentials: { type: 'bearer', token } })
  const first = await trip.subscribe(id, { taskId: id, ...credentials('one') })
  const second = await trip.subscribe(id, { taskId: id, ...credentials('two') })
  await trip.pass(minute, 2)
  agent.instead(() => ({ status: 401 }))
  await trip.pass(7 * hour, 40)
  for (const { client } of [first, second])
    expect(typesOf(client.told())).toEqual(['subscription.credentials_expired'])
})

test('what is pushed to a subscription that is not bound yet outlasts hours without a token for it', async () => {
  await register()
  answering({ status: 500 })
  agent.put(id, status('completed'))
  const { hook, client } = await trip.subscribe(id, { credentials: byClient() })
  expect(await push(hook, statusPush(id, 'completed'))).toBe(202)
  await trip.pass(2 * hour, 60)
  answering(rotate)
  await trip.pass(4 * hour, 60)
  expect(typesOf(client.told())).toEqual(['subscription.credentials_expired', 'task.completed'])
})

test('what is pushed to who waits for all of an agent outlasts a night without a token for it', async () => {
  await register()
  answering({ status: 500 })
  agent.put(id, status('completed'))
  agent.instead(({ id: call, method }) =>
    method === 'ListTasks'
      ? { body: JSON.stringify({ jsonrpc: '2.0', id: call, error: { code: -32601, message: 'no' } }) }
      : undefined,
  )
  const { hook, client } = await trip.subscribe(id, { scope: 'agent', credentials: byClient() })
  expect(await push(hook, statusPush(id, 'completed'))).toBe(202)
  await trip.pass(8 * hour, 100)
  answering(rotate)
  await trip.pass(6 * hour, 60)
  // Once of the subscription, whose list of tasks cannot be had, and once of the task.
  const expired = 'subscription.credentials_expired'
  expect(typesOf(client.told())).toEqual([expired, expired, 'task.completed'])
  expect(
    client
      .told()
      .map(({ data }) => 'taskId' in data)
      .filter(Boolean),
  ).toHaveLength(2)
})

test('of many bad credentials a few are tried in one look, and the good ones are found', async () => {
  await register()
  agent.put(id, status('working'))
  const first = await trip.subscribe(id, { taskId: id, credentials: { type: 'bearer', token: 'good' } })
  await trip.pass(minute)
  for (let one = 0; one < 8; one++)
    await trip.subscribe(id, { taskId: id, credentials: { type: 'bearer', token: `bad-${one}` } })
  agent.instead(() =>
    agent.calls(id).at(-1)?.headers.authorization === 'Bearer good' ? undefined : { status: 401 },
  )
  const before = agent.calls(id).length
  await trip.pass(5 * minute, 20)
  agent.put(id, status('completed'))
  await trip.pass(30 * minute, 20)
  expect(typesOf(first.client.told()).at(-1)).toBe('task.completed')
  const calls = agent
    .calls(id)
    .slice(before)
    .filter(({ method }) => method === 'GetTask').length
  const looks = trip.stepsOf('look.failed', id).length + trip.stepsOf('task.looked', id).length
  expect(calls).toBeLessThanOrEqual(3 * looks)
})

test('each subscription whose own credentials run out is told so once, and once more of others that are refused', async () => {
  await register()
  agent.put(id, status('working'))
  agent.instead(() => ({ status: 401 }))
  const bad = (token: string) => ({ type: 'bearer', token })
  const one = await trip.subscribe(id, { taskId: id, credentials: bad('one') })
  await trip.pass(3 * hour, 30)
  const two = await trip.subscribe(id, { taskId: id, credentials: bad('two') })
  await trip.pass(8 * hour, 40)
  const expired = 'subscription.credentials_expired'
  expect([one, two].map(({ client }) => typesOf(client.told()))).toEqual([[expired], [expired]])
  await trip.call('PUT', `/v1/subscriptions/${one.made.id}/credentials`, { credentials: bad('three') })
  await trip.pass(day, 40)
  expect([one, two].map(({ client }) => typesOf(client.told()))).toEqual([[expired, expired], [expired]])
})

test('a refresh token that comes with an access token of no use is the one that is used next', async () => {
  await register(byToken())
  let spoiled = false
  answering(asked => {
    const answer = rotate(asked)
    if (spoiled || used.length !== 2) return answer
    spoiled = true
    return { body: String(answer.body).replace('"token_type":"bearer",', '') }
  })
  agent.put(id, status('working'))
  const { client } = await trip.subscribe(id, { taskId: id })
  await trip.pass(hour, 30)
  expect(spoiled).toBe(true)
  agent.put(id, status('completed'))
  await trip.pass(3 * hour, 60)
  expect(typesOf(client.told())).toEqual(['task.completed'])
  expect(alarms()).toEqual([])
})

test('what was told of a token endpoint is taken back when the agent has other credentials, and nothing of it is kept', async () => {
  const before = await grants()
  await register(byClient())
  answering({ status: 500 })
  agent.put(id, status('working'))
  await trip.subscribe(id, { taskId: id })
  await trip.pass(3 * hour, 60)
  expect(typesOf(alarms())).toEqual(['agent.unreachable'])
  await register({ type: 'bearer', token: 'other' })
  await trip.settle()
  expect(typesOf(alarms())).toEqual(['agent.unreachable', 'agent.recovered'])
  expect(await grants()).toEqual(before)
  await register({ type: 'bearer', token: 'another' })
  await trip.pass(hour, 12)
  expect(alarms().length).toBe(2)
})

test('health says nothing of credentials that were put anew and not asked with since', async () => {
  await register(byClient())
  answering({ status: 500 })
  agent.put(id, status('working'))
  await trip.subscribe(id, { taskId: id })
  await trip.pass(hour, 30)
  expect(await healthOf()).toMatchObject({ token: { fault: 'HTTP 500', failingSince: expect.any(Number) } })
  await register({ ...byClient(), clientSecret: 'another' })
  const nothing = { fault: null, failures: 0, failingSince: null, nextTryAt: null, spent: false }
  expect(await healthOf()).toMatchObject({ token: nothing })
  await trip.pass(hour, 30)
  expect(await healthOf()).toMatchObject({ token: { fault: 'HTTP 500', nextTryAt: expect.any(Number) } })
})

test.each<[name: string, asked: object, end: (id: string) => Promise<unknown>]>([
  ['for a task is deleted', {}, id => trip.call('DELETE', `/v1/subscriptions/${id}`)],
  ['for an agent is deleted', { scope: 'agent' }, id => trip.call('DELETE', `/v1/subscriptions/${id}`)],
  ['for a task runs out', { ttlSeconds: 3600 }, () => trip.pass(2 * hour, 40)],
  ['for an agent runs out', { scope: 'agent', ttlSeconds: 3600 }, () => trip.pass(2 * hour, 40)],
  [
    'has another kind of credentials',
    {},
    id =>
      trip.call('PUT', `/v1/subscriptions/${id}/credentials`, {
        credentials: { type: 'bearer', token: 'other' },
      }),
  ],
])('what was granted goes when a subscription %s', async (_name, wish, end) => {
  await register()
  agent.put(id, status('working'))
  const before = await grants()
  const where = 'scope' in wish ? {} : { taskId: id }
  const { made } = await trip.subscribe(id, { ...where, ...wish, credentials: byClient() })
  await trip.pass(10 * minute, 10)
  expect((await grants()).length).toBe(before.length + 1)
  await end(made.id)
  await trip.settle()
  expect(await grants()).toEqual(before)
})

/** Whose grants stand in the table. */
const grants = async () =>
  (await trip.local.items())
    .filter(({ sk }) => sk === 'grant')
    .map(({ pk }) => pk)
    .sort()
