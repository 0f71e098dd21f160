// Push configs that an agent refuses for a while: it is asked again, however old the subscription is.
import { expect, test } from 'vitest'
import { status } from '../support/scripted.ts'
import { day, hour, minute, trip, waitsOfFile, world } from '../support/waits.ts'

waitsOfFile()

type Shown = { registration: { status: string; again?: true }; generation: number }

/** An agent that refuses in other words each time while it is away, how often it was asked to take a config, and which it has. */
async function makeAgent() {
  const { agent, id } = await world.agentOf()
  const taskId = `task-of-${id}`
  agent.put(taskId, status('working'))
  const seen: { away: boolean; asked: number; kept?: unknown } = { away: false, asked: 0 }
  agent.instead(({ id: call, method, params }) => {
    if (method === 'CreateTaskPushNotificationConfig') seen.asked++
    if (seen.away) return { status: 502 + (seen.asked % 3) }
    const answer = (result: object) => ({ body: JSON.stringify({ jsonrpc: '2.0', id: call, result }) })
    if (method === 'ListTaskPushNotificationConfigs') return answer({ configs: [seen.kept] })
    if (method !== 'CreateTaskPushNotificationConfig') return undefined
    seen.kept = params
    return answer(params)
  })
  return { id, taskId, seen }
}

const shown = (id: string) => trip.call<Shown>('GET', `/v1/subscriptions/${id}`)

test('a config that was rotated while the agent was away is handed to it, though the subscription is two days old', async () => {
  const { id, taskId, seen } = await makeAgent()
  const { made } = await trip.subscribe(id, { taskId })
  expect(await shown(made.id)).toMatchObject({ registration: { status: 'registered' } })
  await trip.pass(2 * day, 20)
  seen.away = true
  await trip.call('POST', `/v1/subscriptions/${made.id}/rotate`, { generation: 1, overlapSeconds: 3600 })
  expect(await shown(made.id)).toMatchObject({ registration: { status: 'failed', again: true } })
  await trip.pass(10 * minute, 10)
  seen.away = false
  await trip.pass(hour, 30)
  expect(await shown(made.id)).toMatchObject({ registration: { status: 'registered' }, generation: 2 })
})

test('a config that is refused for ever is handed to the agent for a day, from each rotation on', async () => {
  const { id, taskId, seen } = await makeAgent()
  seen.away = true
  const { made } = await trip.subscribe(id, { taskId })
  await trip.pass(30 * hour, 40)
  const before = seen.asked
  expect(before).toBeGreaterThan(10)
  expect(before).toBeLessThan(20)
  await trip.pass(day, 10)
  expect(seen.asked).toBe(before)
  await trip.call('POST', `/v1/subscriptions/${made.id}/rotate`, { generation: 1 })
  await trip.pass(30 * hour, 40)
  const after = seen.asked
  expect(after - before).toBeGreaterThan(10)
  await trip.pass(day, 10)
  expect(seen.asked).toBe(after)
})

test('a config that is rotated while the one before is refused is handed to the agent as soon as a first one, not when that one was due', async () => {
  const { id, taskId, seen } = await makeAgent()
  seen.away = true
  const { made } = await trip.subscribe(id, { taskId })
  await trip.pass(11 * hour, 66)
  await trip.call('POST', `/v1/subscriptions/${made.id}/rotate`, { generation: 1 })
  const before = seen.asked
  await trip.pass(20 * minute, 20)
  expect(seen.asked - before).toBeGreaterThan(2)
  seen.away = false
  await trip.pass(hour / 2, 30)
  expect(await shown(made.id)).toMatchObject({ registration: { status: 'registered' }, generation: 2 })
})

test('a config that was taken with the secrets before a rotation, of which that comes to be known later, is handed out anew', async () => {
  const { id, taskId, seen } = await makeAgent()
  seen.away = true
  const { made } = await trip.subscribe(id, { taskId })
  seen.away = false
  const { held, release } = trip.hold(
    ({ who, operation, body }) =>
      who === 'look' && operation === 'UpdateItem' && JSON.stringify(body).includes('#registration'),
  )
  const passed = trip.pass(20 * minute, 20)
  await held
  seen.away = true
  const { pushNotificationConfig: config } = await trip.call<{ pushNotificationConfig: { token: string } }>(
    'POST',
    `/v1/subscriptions/${made.id}/rotate`,
    { generation: 1 },
  )
  release()
  await passed
  seen.away = false
  await trip.pass(hour, 30)
  expect(await shown(made.id)).toMatchObject({ registration: { status: 'registered' }, generation: 2 })
  expect(JSON.stringify(seen.kept)).toContain(config.token)
})

test('an agent that refuses the push config once is asked again, and one that always does not for ever', async () => {
  for (const [most, status] of [
    [1, 'registered'],
    [1000, 'failed'],
  ] as const) {
    const { agent, id } = await world.agentOf()
    const taskId = `refused-${id}`
    agent.put(taskId, { status: { state: 'TASK_STATE_WORKING' } })
    let refused = 0
    const kept: unknown[] = []
    agent.instead(({ id: call, method, params }) => {
      if (method === 'CreateTaskPushNotificationConfig') {
        refused += 1
        if (refused <= most) return { status: 503 }
        kept.push(params)
        return undefined
      }
      if (method !== 'ListTaskPushNotificationConfigs') return undefined
      return { body: JSON.stringify({ jsonrpc: '2.0', id: call, result: { configs: kept } }) }
    })
    const { made: sub } = await trip.subscribe(id, { taskId })
    expect(sub.registration.status).toBe('failed')
    await trip.pass(2 * day, 100)
    const seen = await trip.call<{ registration: { status: string } }>('GET', `/v1/subscriptions/${sub.id}`)
    expect(seen.registration.status).toBe(status)
    const asked = refused
    expect(asked).toBeLessThan(20)
    await trip.pass(2 * day, 20)
    expect(refused).toBe(asked)
  }
})
