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
    await claim(one, 'bound')
    await claim(one, 'bound')
    const pushedAt = trip.local.now()
    await trip.pass(100_000, 10)
    expect(heardBy(one.client)).toEqual([])
    await trip.pass(40_000, 8)
    const [told, ...more] = one.client.told()
    expect(more).toEqual([])
    expect(told).toMatchObject({
      type: 'task.disputed',
      data: { taskId: one.taskId, state: 'working', pushedState: 'completed' },
    })
    expect(told?.data).toMatchObject({ pushedSha256: expect.stringMatching(/^[\da-f]{64}$/) })
    expect(Math.abs(Number(told?.data.pushedAt) - pushedAt)).toBeLessThan(1000)
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
