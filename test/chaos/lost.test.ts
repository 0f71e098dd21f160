// Tasks that an agent does not show for a while: their loss is told once to each whom it concerns, taken back when they are seen, and hides nothing else.
import { expect, test } from 'vitest'
import type { Answer } from '../support/receiver.ts'
import { status } from '../support/scripted.ts'
import { push, statusPush } from '../support/trip.ts'
import { day, hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

waitsOfFile()

const gone = (asked: { id: string }) => ({
  body: JSON.stringify({ jsonrpc: '2.0', id: asked.id, error: { code: -32001, message: 'gone' } }),
})
const told: [string, boolean, (asked: { id: string }) => Answer][] = [
  ['task.lost_access', false, gone],
  ['task.orphaned', true, gone],
  ['task.too_large', true, () => ({ body: 'x'.repeat(9 * 1024 * 1024) })],
]
test.each(told)(
  'whoever subscribes after %s was told is told it, too, and nobody twice',
  async (type, seen, answer) => {
    const { agent, id } = await world.agentOf()
    const taskId = `late-${id}`
    if (seen) agent.put(taskId, status('working'))
    const one = await trip.subscribe(id, { taskId })
    await trip.pass(3000, 3)
    agent.instead(answer)
    await trip.pass(hour, 20)
    expect(typesTold(one.client)).toEqual([type])
    const two = await trip.subscribe(id, { taskId })
    await trip.pass(hour, 12)
    expect(typesTold(two.client)).toEqual([type])
    expect(typesTold(one.client)).toEqual([type])
  },
)

test('a task that an agent shows only minutes after its push is told to who waits for all of the agent’s', async () => {
  const { agent, id } = await world.agentOf()
  const wide = await trip.subscribe(id, { scope: 'agent' })
  agent.instead(({ method, id: call }) => (method === 'ListTasks' ? gone({ id: call }) : undefined))
  await trip.pass(3000, 3)
  const taskId = `slow-${id}`
  expect(await push(wide.hook, statusPush(taskId, 'completed'))).toBe(202)
  await trip.pass(5 * minute, 30)
  agent.put(taskId, status('completed'))
  await trip.pass(hour, 12)
  expect(typesTold(wide.client)).toEqual(['task.lost_access', 'task.completed'])
})

test('a task that is pushed again long after it was given up is asked for with patience anew', async () => {
  const { agent, id } = await world.agentOf()
  const wide = await trip.subscribe(id, { scope: 'agent' })
  agent.instead(({ method, id: call }) => (method === 'ListTasks' ? gone({ id: call }) : undefined))
  await trip.pass(3000, 3)
  const taskId = `again-${id}`
  await push(wide.hook, statusPush(taskId, 'completed'))
  await trip.pass(day, 60)
  await push(wide.hook, { ...statusPush(taskId, 'completed'), again: true })
  await trip.pass(4000, 4)
  agent.put(taskId, status('completed'))
  await trip.pass(hour, 12)
  expect(typesTold(wide.client).at(-1)).toBe('task.completed')
})

test('what was told of a task stands, though a push to somebody else finds it gone', async () => {
  const { agent, id, taskId, made: first } = await world.begin({}, { client: 'keeper' })
  agent.put(taskId, status('completed'))
  await trip.pass(10 * minute, 10)
  const before = await trip.task(id, taskId)
  await trip.call('DELETE', `/v1/subscriptions/${first.id}`)
  const unbound = await trip.subscribe(id)
  agent.instead(() => ({ status: 404 }))
  await push(unbound.hook, statusPush(taskId, 'completed'))
  await trip.pass(10 * minute, 20)
  agent.instead(undefined)
  expect(await trip.task(id, taskId)).toMatchObject({ state: 'completed', rev: before.rev })
  await trip.subscribe(id, { taskId, client: 'keeper' })
  await trip.pass(minute, 6)
  const { entries } = await trip.inbox('keeper')
  expect(entries.map(({ state, rev }) => [state, rev])).toEqual([['completed', before.rev]])
})

test.each([
  ['forbids it', { status: 403 }],
  ['says that there is none', undefined],
])('news reach who sees a task though to a later subscription the agent %s', async (_, answer) => {
  const { agent, id, taskId, client } = await world.begin(
    {},
    { credentials: { type: 'bearer', token: 'good' } },
  )
  const other = await trip.subscribe(id, { taskId, credentials: { type: 'bearer', token: 'less' } })
  agent.instead(asked =>
    agent.calls(taskId).at(-1)?.headers.authorization === 'Bearer less' ? (answer ?? gone(asked)) : undefined,
  )
  await trip.pass(5 * minute, 10)
  agent.put(taskId, status('completed'))
  await trip.pass(hour, 12)
  expect(typesTold(client)).toEqual(['task.completed'])
  expect(typesTold(other.client)).toEqual(['task.completed'])
})

test('a signed push is disputed though the agent did not find the task at first', async () => {
  const { agent, id } = await world.agentOf()
  const { origin, jwksUrl } = agent
  const verification = { jwt: { jwksUrl, issuer: origin, algorithms: ['EdDSA'] } }
  const hand = { url: `${origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true, verification }
  await trip.call('PUT', `/v1/agents/${id}`, hand)
  const taskId = `task-of-${id}`
  agent.put(taskId, status('working'))
  const { hook, client } = await trip.subscribe(id, { taskId })
  await trip.pass(3000, 3)
  agent.instead(gone)
  const body = JSON.stringify(statusPush(taskId, 'completed'))
  await push(hook, body, agent.sign({ body, audience: hook.url, now: trip.local.now() }))
  await trip.pass(3 * minute, 20)
  agent.instead(undefined)
  await trip.pass(hour, 20)
  expect(typesTold(client)).toEqual(['task.disputed'])
})

const useless: [string, (asked: { id: string }) => Answer][] = [
  ['unreadable', () => ({ body: '<html>portal</html>' })],
  [
    'failed',
    ({ id }) => ({ body: JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32603, message: 'x' } }) }),
  ],
  [
    'wrong_task',
    ({ id }) => ({
      body: JSON.stringify({ jsonrpc: '2.0', id, result: { ...status('completed'), id: 'z' } }),
    }),
  ],
]
test.each(useless)(
  'answers that are %s for long are told to operations once, and the end once it is shown',
  async (reason, answer) => {
    const ops = trip.clients.make()
    const target = `ops-${reason}`
    ops.secret = (
      await trip.call<{ secret: string }>('PUT', `/v1/targets/${target}`, { url: ops.url })
    ).secret
    await trip.call('PUT', '/v1/operations', { targets: [target] })
    const { agent, id, taskId, client } = await world.begin()
    await trip.subscribe(id, { taskId: `${taskId}-other` })
    agent.instead(answer)
    await trip.pass(9 * minute, 18)
    expect(ops.told()).toEqual([])
    await trip.pass(5 * hour, 60)
    expect(ops.told()).toMatchObject([
      {
        type: 'agent.unusable',
        data: {
          about: { agent: id },
          reason,
          taskId: expect.stringMatching(taskId),
          failingSince: expect.any(Number),
        },
      },
    ])
    agent.instead(undefined)
    agent.put(taskId, status('completed'))
    await trip.pass(20 * minute, 10)
    expect(typesTold(client)).toEqual(['task.completed'])
    await trip.call('DELETE', '/v1/operations')
  },
)

test('what a client was told as lost is taken back, whatever the agent answered in between', async () => {
  const { agent, taskId, client } = await world.begin({}, { states: ['working', 'completed'] })
  agent.instead(gone)
  await trip.pass(40 * minute, 40)
  agent.instead(useless[1]?.[1])
  await trip.pass(40 * minute, 40)
  agent.instead(undefined)
  await trip.pass(hour, 20)
  expect(typesTold(client)).toEqual(['task.working', 'task.orphaned', 'task.working'])
  agent.put(taskId, status('completed'))
})

test('one useless answer after an outage is no news to operations, and refused credentials after useless answers are', async () => {
  const ops = trip.clients.make()
  ops.secret = (await trip.call<{ secret: string }>('PUT', '/v1/targets/ops', { url: ops.url })).secret
  await trip.call('PUT', '/v1/operations', { targets: ['ops'] })
  const { agent, id, taskId } = await world.begin({ credentials: { type: 'bearer', token: 'secret' } })
  const about = () => ops.told().filter(({ data }) => JSON.stringify(data).includes(`"${id}"`))
  const html: Answer = { body: '<html>' }
  agent.instead(() => ({ status: 503 }))
  await trip.pass(30 * minute, 30)
  const calls = agent.calls(taskId).length
  agent.instead(() => (agent.calls(taskId).length > calls + 1 ? undefined : html))
  await trip.pass(10 * minute, 10)
  expect(about().map(({ type }) => type)).not.toContain('agent.unusable')
  agent.instead(() => html)
  await trip.pass(hour, 30)
  agent.instead(() => ({ status: 401 }))
  await trip.pass(2 * hour, 30)
  const told = about().map(({ type }) => type)
  expect(told.filter(type => /unusable|credentials/.test(type))).toEqual([
    'agent.unusable',
    'subscription.credentials_expired',
  ])
  await trip.call('DELETE', '/v1/operations')
})

test('what was told as orphaned is taken back though an older answer comes first', async () => {
  const { agent, taskId, client } = await world.begin()
  const asks = { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { messageId: 'm', parts: [] } } }
  agent.put(taskId, asks)
  await trip.pass(10 * minute, 10)
  agent.instead(gone)
  await trip.pass(hour, 30)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.orphaned'])
  agent.put(taskId, status('working'))
  const before = agent.calls(taskId).length
  agent.instead(() => {
    if (agent.calls(taskId).length > before + 1) agent.put(taskId, asks)
    return undefined
  })
  await trip.pass(6 * hour, 60)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.orphaned', 'task.input_required'])
})
