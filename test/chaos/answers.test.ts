// What agents answer that is odd, wrong or too much: it is never taken for the task's state, and whoever waits hears what is so.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../support/clients.ts'
import { type Scripted, startScripted, status } from '../support/scripted.ts'
import { push, type Subscribed, startTrip, statusPush, type Trip } from '../support/trip.ts'

let trip: Trip
let agent: Scripted
let tasksMade = 0

beforeAll(async () => {
  ;[trip, agent] = await Promise.all([startTrip(), startScripted()])
  const { origin, jwksUrl } = agent
  const hand = { url: `${origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true }
  await trip.call('PUT', '/v1/agents/plain', hand)
  const verification = { jwt: { jwksUrl, issuer: origin, algorithms: ['EdDSA'] } }
  await trip.call('PUT', '/v1/agents/signing', { ...hand, verification })
})

afterAll(() => Promise.all([trip.stop(), agent.stop()]))

type Begun = Subscribed & { taskId: string }

/** A task that works, subscribed to and looked at. */
async function begin(at: string, asked: Record<string, unknown> = {}): Promise<Begun> {
  const taskId = `odd-${++tasksMade}`
  agent.put(taskId, status('working'))
  const subscribed = await trip.subscribe(at, { taskId, ...asked })
  await trip.pass(2000)
  return { ...subscribed, taskId }
}

const heardBy = (client: Client): string[] => client.told().map(({ type }) => type)

describe('a push that the agent’s own answers contradict', () => {
  /** Pushes an end that GetTask does not show. */
  async function claim({ hook, taskId }: Begun, how: 'bound' | 'unbound' | 'token', state = 'completed') {
    const body = JSON.stringify(statusPush(taskId, state))
    const of = { body, audience: hook.url, now: trip.local.now() }
    const signed = agent.sign(how === 'bound' ? of : { ...of, taskId })
    expect(await push(hook, body, how === 'token' ? undefined : signed)).toBe(202)
  }

  test('is disputed once if it was signed, with what either says, and only after a patience', async () => {
    const one = await begin('signing')
    const begun = trip.local.now()
    await claim(one, 'bound')
    await claim(one, 'bound')
    const over = trip.local.now()
    await trip.pass(100_000, 10)
    expect(heardBy(one.client)).toEqual([])
    await trip.pass(40_000, 8)
    const [told, ...more] = one.client.told()
    expect(more).toEqual([])
    expect(told).toMatchObject({
      type: 'task.disputed',
      data: { taskId: one.taskId, state: 'working', pushedState: 'completed' },
    })
    expect(told?.data).toMatchObject({
      ...{ pushedSha256: expect.stringMatching(/^[\da-f]{64}$/) },
      ...{ pushedAt: expect.any(Number), lookedAt: expect.any(Number) },
    })
    // By this machine's clock a push takes as long as it takes.
    expect(told?.data.pushedAt).toBeGreaterThanOrEqual(begun)
    expect(told?.data.pushedAt).toBeLessThanOrEqual(over)
    await trip.pass(1_800_000, 6)
    agent.put(one.taskId, status('completed'))
    await trip.pass(3_600_000, 2)
    expect(heardBy(one.client)).toEqual(['task.disputed', 'task.completed'])
  })

  test('is disputed at once if the task has ended otherwise, though everybody was told of that end', async () => {
    const one = await begin('signing')
    agent.put(one.taskId, status('failed'))
    await claim(one, 'bound', 'failed')
    await trip.pass(4000, 2)
    await claim(one, 'bound')
    await trip.pass(4000, 2)
    expect(heardBy(one.client)).toEqual(['task.failed', 'task.disputed'])
  })

  test.each([
    ['signing', 'unbound', 'completed'],
    ['plain', 'token', 'completed'],
    ['signing', 'bound', 'working'],
  ] as const)('is not disputed by %s, %s, naming %s', async (at, how, state) => {
    const one = await begin(at)
    if (state === 'working') agent.put(one.taskId, status('submitted'))
    await claim(one, how, state)
    await trip.pass(300_000, 10)
    expect(heardBy(one.client)).toEqual([])
  })

  test.each([
    ['while others stay', false],
    ['after all others left', true],
  ])('is disputed to who subscribed %s since it was told, once, by its own push', async (_, leaves) => {
    const one = await begin('signing')
    await claim(one, 'bound')
    await trip.pass(150_000, 10)
    expect(heardBy(one.client)).toEqual(['task.disputed'])
    if (leaves) await trip.call('DELETE', `/v1/subscriptions/${one.made.id}`)
    const two = { ...(await trip.subscribe('signing', { taskId: one.taskId })), taskId: one.taskId }
    await trip.pass(150_000, 10)
    expect(heardBy(two.client)).toEqual([])
    for (let times = 0; times < 2; times++) {
      await claim(two, 'bound')
      if (!leaves) await claim(one, 'bound')
      await trip.pass(150_000, 10)
    }
    expect(heardBy(two.client)).toEqual(['task.disputed'])
    expect(heardBy(one.client)).toEqual(['task.disputed'])
  })

  test('is forgotten if the agent comes to show it', async () => {
    const one = await begin('signing')
    await claim(one, 'bound')
    await trip.pass(60_000, 10)
    agent.put(one.taskId, status('completed'))
    await trip.pass(300_000, 10)
    expect(heardBy(one.client)).toEqual(['task.completed'])
  })
})

describe('an agent that does not cancel', () => {
  test.each([
    [-32002, 'not_cancelable'],
    [-32601, 'not_supported'],
    [-32004, 'not_supported'],
  ])('by %i is told of once as %s, is asked no more, and its task goes on', async (code, reason) => {
    const one = await begin('plain')
    let asked = 0
    agent.instead(({ id, method }) => {
      if (!/cancel/i.test(method)) return undefined
      asked += 1
      return { body: JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: 'No.' } }) }
    })
    const path = `/v1/tasks/plain/${one.taskId}/cancel`
    const first = await trip.call('POST', path, { reason: 'too late' })
    expect(await trip.call('POST', path, { reason: 'again' })).toEqual(first)
    await trip.pass(600_000, 5)
    expect(one.client.told()).toMatchObject([
      { type: 'task.cancel_refused', data: { state: 'working', by: 'client', why: 'too late', reason } },
    ])
    expect(asked).toBe(1)
    agent.put(one.taskId, status('completed'))
    await trip.pass(3_600_000, 2)
    agent.instead(undefined)
    expect(heardBy(one.client)).toEqual(['task.cancel_refused', 'task.completed'])
  })
})

describe('an answer that is too large', () => {
  /** A task with an artifact of 9 MB, before its status or behind it. */
  const large = (state: string, order: 'first' | 'last'): Record<string, unknown> => {
    const artifacts = [{ artifactId: 'a', parts: [{ text: 'x'.repeat(9 * 2 ** 20) }] }]
    return order === 'last' ? { ...status(state), artifacts } : { artifacts, ...status(state) }
  }

  test('tells the state that its start shows, as too large, to inbox, target and reader', async () => {
    const one = await begin('plain')
    agent.put(one.taskId, large('failed', 'last'))
    await trip.pass(120_000, 2)
    const [told, ...more] = one.client.told()
    expect(more).toEqual([])
    expect(told).toMatchObject({ type: 'task.failed', data: { state: 'failed', rev: 2, tooLarge: true } })
    const { entries } = await trip.inbox(one.client.name)
    expect(entries).toMatchObject([{ type: 'task.failed', tooLarge: true }])
    expect(await trip.wake(told?.id ?? '')).toMatchObject({ tooLarge: true })
    const seen = await trip.call('GET', `/v1/tasks/plain/${one.taskId}`)
    expect(seen).toMatchObject({
      ...{ state: 'failed', tooLarge: true, task: null, artifacts: null, incomplete: true, stale: false },
      timeline: { steps: [{ to: 'working' }, { to: 'failed' }] },
    })
  })

  test('that does not show its state within that is told as such once, and the state once it is shown', async () => {
    const one = await begin('plain')
    agent.put(one.taskId, large('completed', 'first'))
    await trip.pass(3_600_000, 6)
    expect(heardBy(one.client)).toEqual(['task.too_large'])
    expect(one.client.told()).toMatchObject([{ data: { state: 'working', rev: 1 } }])
    const path = `/v1/tasks/plain/${one.taskId}`
    expect(await trip.call('GET', path)).toMatchObject({ state: 'working', trouble: { code: 'too_large' } })
    agent.put(one.taskId, status('completed'))
    await trip.pass(6 * 3_600_000, 2)
    expect(heardBy(one.client)).toEqual(['task.too_large', 'task.completed'])
    expect(await trip.call('GET', path)).toMatchObject({ state: 'completed', tooLarge: false })
  })
})

test('case 145: push configs are set and deleted in the version that the agent is found to speak', async () => {
  const methods: string[] = []
  const kept: unknown[] = []
  agent.instead(({ id, method, params }) => {
    methods.push(method)
    const known = method.includes('/')
    const error = { code: -32601, message: 'No such method' }
    if (method.endsWith('/set')) kept.push(params)
    const result = method.endsWith('/list') ? kept : params
    return { body: JSON.stringify({ jsonrpc: '2.0', id, ...(known ? { result } : { error }) }) }
  })
  const hand = { url: `${agent.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true }
  await trip.call('PUT', '/v1/agents/aged', hand)
  const subscribe = () => trip.subscribe('aged', { taskId: `odd-${++tasksMade}` })
  const { made } = await subscribe()
  expect(made).toMatchObject({ registration: { status: 'registered' } })
  expect((await subscribe()).made).toMatchObject({ registration: { status: 'registered' } })
  await trip.call('DELETE', `/v1/subscriptions/${made.id}`)
  agent.instead(undefined)
  const config = 'tasks/pushNotificationConfig'
  expect(methods.filter(method => /Config/.test(method))).toEqual([
    ...['CreateTaskPushNotificationConfig', `${config}/set`, `${config}/list`],
    ...[`${config}/set`, `${config}/list`, `${config}/delete`],
  ])
})

test('case 146: an answer about another task is dropped, counted, and its owner is to look into it', async () => {
  const one = await begin('plain')
  const health = () =>
    trip.call<{ calls: { wrongAnswers: { count: number; lastAt: number | null } } }>(
      'GET',
      '/v1/agents/plain/health',
    )
  expect((await health()).calls.wrongAnswers).toEqual({ count: 0, lastAt: null })
  agent.instead(({ id }) => {
    const result = { id: 'of-somebody-else', ...status('completed') }
    return { body: JSON.stringify({ jsonrpc: '2.0', id, result }) }
  })
  await trip.pass(120_000, 2)
  agent.instead(undefined)
  const { count, lastAt } = (await health()).calls.wrongAnswers
  expect(count).toBeGreaterThan(0)
  expect(lastAt).toBeGreaterThan(0)
  expect(trip.stepsOf('agent.answered_wrong', one.taskId)[0]).toMatchObject({
    level: 'error',
    agent: 'plain',
  })
  expect(heardBy(one.client)).toEqual([])
})

test('a question is told twice at most though its agent dates each answer anew and keeps it for ten seconds', async () => {
  const { taskId, client } = await begin('plain', { pauseTimeoutSeconds: 900 })
  agent.instead(({ id, method, params }) => {
    if (method !== 'GetTask' || params.id !== taskId) return undefined
    const timestamp = new Date(Math.floor(trip.local.now() / 10_000) * 10_000).toISOString()
    const result = { id: taskId, ...status('input-required', { timestamp }) }
    return { body: JSON.stringify({ jsonrpc: '2.0', id, result }) }
  })
  await trip.pass(20 * 60_000, 600)
  agent.instead(undefined)
  agent.put(taskId, status('completed'))
  await trip.pass(600_000, 5)
  // Its pause of a quarter of an hour began anew once at most.
  const [first, ...more] = heardBy(client)
  expect(first).toBe('task.input_required')
  expect(more.filter((type, at) => at > 0 || type !== first)).toEqual(['task.overdue', 'task.completed'])
})
