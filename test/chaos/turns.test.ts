// Many tasks of one agent at once: it is never called more often than it takes, left alone while it is down, and nothing is lost.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type BusyAgent, startBusyAgent } from '../support/busy.ts'
import { type Subscribed, startTrip, type Trip } from '../support/trip.ts'

let trip: Trip
let agent: BusyAgent
let named = 0
let id = ''

beforeAll(async () => {
  trip = await startTrip()
})

beforeEach(async () => {
  agent = await startBusyAgent()
  id = `busy-${++named}`
})

afterEach(async () => {
  await agent.stop()
  expect(await trip.local.dead()).toEqual([])
  expect(trip.steps.filter(({ step }) => step === 'message.failed')).toEqual([])
})

afterAll(() => trip.stop())

/** Registers the agent, and subscribes a client of its own to each task. */
async function subscribe(tasks: number, more = {}): Promise<Subscribed[]> {
  const { url } = agent
  await trip.call('PUT', `/v1/agents/${id}`, { url, binding: 'JSONRPC', version: '1.0', ...more })
  const all: Subscribed[] = []
  for (let at = 0; at < tasks; at++) all.push(await trip.subscribe(id, { taskId: `t-${at}` }))
  return all
}

type Seen = { calls: Record<string, unknown> }
const callsOf = async () => (await trip.call<Seen>('GET', `/v1/agents/${id}/health`)).calls
const told = (all: Subscribed[]): number => all.filter(({ client }) => client.told().length > 0).length

const notes = (): number =>
  trip.calls.filter(({ body }) => String(body.UpdateExpression).includes('#oldest = :since')).length

test('ten tasks that end at once never take more than the stated number of calls at a time, and all are told', async () => {
  agent.state = 'COMPLETED'
  agent.hold()
  const all = await subscribe(10, { maxConcurrentCalls: 2 })
  // Whoever finds no room notes since when he waits.
  await trip.until(() => agent.calls === 2 && notes() > 0)
  expect(await callsOf()).toMatchObject({ breaker: 'closed', inFlightAtMost: 2, maxConcurrentCalls: 2 })
  expect((await callsOf()).oldestWaitingSeconds).toEqual(expect.any(Number))
  agent.release()
  await trip.pass(180_000, 12)
  expect(told(all)).toBe(10)
  expect(agent.most).toBeLessThanOrEqual(2)
  expect(await callsOf()).toMatchObject({ inFlightAtMost: 0, oldestWaitingSeconds: null })
})

test('an agent that is down is left alone and told of once, and its tasks are told once it is back', async () => {
  const owner = trip.clients.make()
  owner.secret = (await trip.call<{ secret: string }>('PUT', '/v1/targets/owner', { url: owner.url })).secret
  await trip.call('PUT', '/v1/operations', { targets: ['owner'] })
  const all = await subscribe(4)
  await trip.pass(2000)
  agent.refuses = { status: 500 }
  await trip.pass(600_000, 10)
  expect(await callsOf()).toMatchObject({ breaker: expect.stringMatching(/open/), fault: 'HTTP 500' })
  const before = agent.calls
  await trip.pass(600_000, 10)
  // A probe each five minutes or so, whatever waits.
  expect(agent.calls - before).toBeLessThanOrEqual(5)
  agent.refuses = undefined
  agent.state = 'COMPLETED'
  await trip.pass(900_000, 15)
  expect(told(all)).toBe(4)
  expect(await callsOf()).toMatchObject({ breaker: 'closed', failures: 0, fault: null })
  expect(owner.told()).toMatchObject([
    { type: 'agent.unreachable', data: { about: { agent: id }, reason: 'HTTP 500' } },
    { type: 'agent.recovered', data: { about: { agent: id } } },
  ])
})

test('a sweep that is not let in waits for no turn', async () => {
  const { url } = agent
  await trip.call('PUT', `/v1/agents/${id}`, { url, binding: 'JSONRPC', version: '1.0' })
  agent.refuses = { status: 429, retryAfter: '3600' }
  await trip.subscribe(id, { scope: 'agent' })
  await trip.pass(620_000, 2)
  const sweeps = trip.steps.filter(({ step, agent: of }) => step === 'agent.swept' && of === id)
  // The first is refused by the agent, those after it are not let in.
  expect(sweeps.length).toBeGreaterThan(1)
  expect(new Set(sweeps.map(({ ended }) => ended))).toEqual(new Set(['part']))
  expect(await callsOf()).toMatchObject({ breaker: 'open', oldestWaitingSeconds: null })
})

test('an agent that asks for a while is not called before it is over', async () => {
  agent.refuses = { status: 429, retryAfter: '120' }
  const all = await subscribe(3)
  await trip.settle()
  const { calls } = agent
  expect(await callsOf()).toMatchObject({ breaker: 'open', askedByRetryAfter: true })
  await trip.pass(110_000, 4)
  expect(agent.calls).toBe(calls)
  agent.refuses = undefined
  agent.state = 'COMPLETED'
  await trip.pass(300_000, 10)
  expect(told(all)).toBe(3)
})
