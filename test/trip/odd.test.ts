// What lasts is told though an agent answers in ways that nobody would expect: too many parts, other versions, no word on a cancellation.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Client } from '../support/clients.ts'
import { type Scripted, startScripted, status } from '../support/scripted.ts'
import { push, startTrip, statusPush, type Trip } from '../support/trip.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

let trip: Trip
const agents: Scripted[] = []
let made = 0
beforeAll(async () => {
  trip = await startTrip()
})
afterAll(async () => {
  await Promise.all([trip.stop(), ...agents.map(agent => agent.stop())])
})

/** An agent of its own, so that what it is asked and how it fares is of one test alone. */
async function agentOf(more: Record<string, unknown> = {}) {
  const agent = await startScripted()
  agents.push(agent)
  const id = `odd-${++made}`
  await trip.call('PUT', `/v1/agents/${id}`, {
    ...{ url: `${agent.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true, ...more },
  })
  return { agent, id }
}

/** Somebody waits for a task that works. */
async function begin(more: Record<string, unknown> = {}, asked: Record<string, unknown> = {}) {
  const { agent, id } = await agentOf(more)
  const taskId = `task-${made}`
  agent.put(taskId, status('working'))
  const subscribed = await trip.subscribe(id, { taskId, ...asked })
  await trip.pass(3000, 3)
  return { ...subscribed, agent, id, taskId }
}

const types = (client: Client) => client.told().map(({ type }) => type)

test('a task that ends with 200 000 artifacts is told as any other', async () => {
  const { agent, id, taskId, hook, client } = await begin()
  agent.put(taskId, { ...status('completed'), artifacts: Array.from({ length: 200_000 }, () => 1) })
  expect(await push(hook, statusPush(taskId, 'completed'))).toBe(202)
  await trip.pass(minute, 4)
  expect(types(client)).toEqual(['task.completed'])
  const { state, artifacts } = await trip.task(id, taskId)
  expect([state, artifacts?.count]).toEqual(['completed', 200_000])
})

const refusals: [string, object][] = [
  ['fails', { status: 500 }],
  ['takes no calls', { status: 429 }],
  ['is not authorized', { status: 401 }],
]
for (const [how, answer] of refusals)
  test(`the end of a task is told while its cancellation ${how}`, async () => {
    const { agent, id, taskId, client } = await begin()
    agent.instead(({ method }) => (method === 'CancelTask' ? answer : undefined))
    await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
    await trip.pass(5000, 5)
    agent.put(taskId, status('completed'))
    await trip.pass(10 * minute, 10)
    expect(types(client)).toEqual(['task.completed'])
    expect((await trip.task(id, taskId)).trouble).toBeUndefined()
  })

test('a cancellation that fails again and again is told as refused, and not asked for for ever', async () => {
  const { agent, id, taskId, client } = await begin()
  agent.instead(({ method }) => (method === 'CancelTask' ? { status: 401 } : undefined))
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(2 * hour, 60)
  expect(types(client)).toEqual(['task.cancel_refused'])
  expect(client.told()[0]?.data).toMatchObject({ by: 'client', reason: 'unauthorized' })
  const asked = () => agent.calls(taskId).filter(({ method }) => method === 'CancelTask').length
  const before = asked()
  expect(before).toBeLessThanOrEqual(10)
  await trip.pass(day, 6)
  expect(asked()).toBe(before)
})

test('a cancellation that worked is not called refused, whatever its answer was', async () => {
  const { agent, id, taskId, client } = await begin()
  agent.instead(({ method }) => {
    if (method !== 'CancelTask') return undefined
    agent.put(taskId, status('canceled'))
    return { body: '<html>done</html>' }
  })
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(minute, 6)
  expect(types(client)).toEqual(['task.canceled'])
  const { timeline } = await trip.task(id, taskId)
  const notes = timeline.steps.map(({ note }) => note).filter(note => note !== undefined)
  expect(notes).toEqual([expect.not.stringContaining('refused')])
})

test('a cancellation goes with the subscription whose budget asked for it', async () => {
  const { agent, id, taskId, made: first } = await begin({}, { hopTimeoutSeconds: 600, onOverdue: 'cancel' })
  const other = await trip.subscribe(id, { taskId })
  await trip.pass(3000, 3)
  agent.instead(() => ({ status: 503 }))
  await trip.pass(20 * minute, 20)
  await trip.call('DELETE', `/v1/subscriptions/${first.id}`)
  agent.instead(undefined)
  await trip.pass(hour, 10)
  expect(agent.calls(taskId).filter(({ method }) => method === 'CancelTask')).toEqual([])
  await trip.call('DELETE', `/v1/subscriptions/${other.made.id}`)
})

test('a cancellation ends with the last subscription, and does not meet who comes later', async () => {
  const { agent, id, taskId, made: first } = await begin()
  agent.instead(() => ({ status: 503 }))
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(minute, 6)
  await trip.call('DELETE', `/v1/subscriptions/${first.id}`)
  await trip.pass(10 * minute, 10)
  agent.instead(undefined)
  await trip.pass(30 * day, 10)
  await trip.subscribe(id, { taskId })
  await trip.pass(10 * minute, 10)
  expect(agent.calls(taskId).filter(({ method }) => method === 'CancelTask').length).toBeLessThan(8)
  expect((await trip.task(id, taskId)).timeline.steps.filter(({ note }) => note !== undefined)).toEqual([])
})
