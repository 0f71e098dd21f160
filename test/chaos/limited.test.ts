// An agent limits the calls of one's credentials, and asks them to wait: that is heeded for these, and keeps nobody else's news away.
import { expect, test } from 'vitest'
import { answering, bearer, whose } from '../support/bearers.ts'
import { status } from '../support/scripted.ts'
import { push, statusPush } from '../support/trip.ts'
import { hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

waitsOfFile()

const asks = status('input-required', { message: { messageId: 'q', parts: [] } })
const limited = (seconds: number) => ({ status: 429, headers: { 'retry-after': String(seconds) } })

test.each([[600], [3600]])(
  'news of a task come at once though another’s credentials are to wait for %i s',
  async seconds => {
    const { agent, id, taskId, client, hook } = await world.begin({}, bearer('good'))
    const two = `two-${id}`
    agent.put(two, status('working'))
    agent.instead(asked => (asked.params.id === two ? limited(seconds) : undefined))
    await trip.subscribe(id, { taskId: two, ...bearer('busy') })
    await trip.pass(minute, 20)
    agent.put(taskId, asks)
    await push(hook, statusPush(taskId, 'input-required'))
    await trip.pass(5000, 5)
    expect(typesTold(client)).toEqual(['task.input_required'])
    const before = agent.calls(two).length
    await trip.pass(6 * hour, 180)
    // Each is asked once the time is over, not before.
    const most = Math.ceil((6 * 3600) / seconds)
    expect(agent.calls(two).length - before).toBeGreaterThan(0)
    expect(agent.calls(two).length - before).toBeLessThanOrEqual(most)
  },
)

test('pushes of a task whose only credentials are to wait do not have the agent asked, and its news come then', async () => {
  const { agent, taskId, client, hook } = await world.begin({}, bearer('busy'))
  let busy = true
  answering(agent, taskId, () => (busy ? limited(1800) : undefined))
  await push(hook, statusPush(taskId, 'working'))
  await trip.pass(minute, 10)
  const before = agent.calls(taskId).length
  agent.put(taskId, asks)
  busy = false
  for (let n = 0; n < 5; n++) {
    await push(hook, statusPush(taskId, 'input-required'))
    await trip.pass(4 * minute, 4)
  }
  expect(agent.calls(taskId).length).toBe(before)
  expect(typesTold(client)).toEqual([])
  await trip.pass(20 * minute, 20)
  expect(typesTold(client)).toEqual(['task.input_required'])
})

test('news reach who has credentials of its own while the agent’s are to wait, again and again', async () => {
  const { agent, id, taskId, client, hook } = await world.begin(bearer('crowded'), bearer('good'))
  const others = Array.from({ length: 5 }, (_, n) => `other-${n}-${id}`)
  const crowd = (asked: { params: Record<string, unknown> }) => others.includes(String(asked.params.id))
  agent.instead(asked => (crowd(asked) ? limited(3600) : undefined))
  for (const other of others) {
    agent.put(other, status('working'))
    await trip.subscribe(id, { taskId: other })
  }
  await trip.pass(minute, 20)
  const crowded = () => others.reduce((sum, other) => sum + agent.calls(other).length, 0)
  const before = crowded()
  for (let n = 1; n <= 3; n++) {
    agent.put(taskId, status('input-required', { message: { messageId: `q-${n}`, parts: [] } }))
    await push(hook, statusPush(taskId, 'input-required'))
    await trip.pass(minute, 6)
    expect(typesTold(client)).toHaveLength(n)
  }
  // What the agent's own were asked is heeded all the same.
  expect(crowded()).toBe(before)
  await trip.pass(6 * hour, 120)
  expect(crowded() - before).toBeLessThanOrEqual(7)
})

test('an agent is not asked for its list before the time that it asked for is over', async () => {
  const { agent, id } = await world.agentOf()
  let lists = 0
  agent.instead(({ method }) => {
    if (method !== 'ListTasks') return undefined
    lists += 1
    return limited(1800)
  })
  const { made } = await trip.subscribe(id, { scope: 'agent', ...bearer('busy') })
  await trip.pass(3 * hour, 180)
  expect(lists).toBeGreaterThan(2)
  expect(lists).toBeLessThanOrEqual(6)
  await trip.call('DELETE', `/v1/subscriptions/${made.id}`)
})

test('a budget that ends while the only credentials are to wait is told then', async () => {
  const { agent, taskId, client, hook } = await world.begin(
    {},
    { hopTimeoutSeconds: 1200, ...bearer('busy') },
  )
  agent.instead(() => limited(3600))
  await push(hook, statusPush(taskId, 'working'))
  await trip.pass(19 * minute, 19)
  expect(typesTold(client)).toEqual([])
  const before = agent.calls(taskId).length
  await trip.pass(3 * minute, 3)
  expect(typesTold(client)).toEqual(['task.overdue'])
  expect(agent.calls(taskId).length).toBe(before)
})

test('while the agent’s own credentials are to wait all that others see is seen by theirs, though both wait for it', async () => {
  const { agent, id } = await world.agentOf({ credentials: { type: 'bearer', token: 'own' } })
  const many = Array.from({ length: 12 }, (_, n) => `both-${n}-${id}`)
  let lapsed = true
  agent.instead(asked => {
    if (whose(agent, asked.params.id) === 'own') return limited(1800)
    return lapsed ? { status: 500 } : undefined
  })
  for (const taskId of many) agent.put(taskId, status('working'))
  const clients = await Promise.all(
    many.map(async taskId => {
      await trip.subscribe(id, { taskId, ...bearer('good') })
      const { client, hook } = await trip.subscribe(id, { taskId })
      return { client, hook, taskId }
    }),
  )
  await trip.pass(2 * minute, 40)
  lapsed = false
  for (const { taskId, hook } of clients) {
    agent.put(taskId, asks)
    await push(hook, statusPush(taskId, 'input-required'))
  }
  await trip.pass(2 * minute, 40)
  expect(clients.map(({ client }) => typesTold(client))).toEqual(clients.map(() => ['task.input_required']))
})
