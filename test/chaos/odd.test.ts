// What lasts is told though an agent answers in ways that nobody would expect: too many parts, other versions, times that run.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, startReceiver } from '../support/receiver.ts'
import { status } from '../support/scripted.ts'
import { push, statusPush, type Trip } from '../support/trip.ts'
import { day, hour, minute, startWaits, typesTold, type Waits } from '../support/waits.ts'

let world: Waits
let trip: Trip
beforeAll(async () => {
  world = await startWaits()
  trip = world.trip
})
afterAll(() => world.stop())

test('a task that ends with 200 000 artifacts is told as any other', async () => {
  const { agent, id, taskId, hook, client } = await world.begin()
  agent.put(taskId, { ...status('completed'), artifacts: Array.from({ length: 200_000 }, () => 1) })
  expect(await push(hook, statusPush(taskId, 'completed'))).toBe(202)
  await trip.pass(minute, 4)
  expect(typesTold(client)).toEqual(['task.completed'])
  const { state, artifacts } = await trip.task(id, taskId)
  expect([state, artifacts?.count]).toEqual(['completed', 200_000])
})

test('a question is told once though the agent dates each answer anew, and is overdue in time', async () => {
  const { agent, taskId, client } = await world.begin({}, { pauseTimeoutSeconds: 1800 })
  const ask = ({ id, method, params }: { id: string; method: string; params: { id: string } }) =>
    method === 'GetTask' && params.id === taskId
      ? {
          body: JSON.stringify({
            ...{ jsonrpc: '2.0', id },
            result: {
              id: taskId,
              ...status('input-required', { timestamp: new Date(trip.local.now()).toISOString() }),
            },
          }),
        }
      : undefined
  agent.instead(ask)
  await trip.pass(hour, 60)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.overdue'])
  const calls = agent.calls(taskId).length
  await trip.pass(hour, 60)
  expect(agent.calls(taskId).length - calls).toBeLessThan(10)
})

test('a question that is asked anew without a word is told again', async () => {
  const { agent, taskId, hook, client } = await world.begin()
  const asks = (minutes: number) =>
    status('input-required', { timestamp: new Date(trip.local.now() + minutes * minute).toISOString() })
  agent.put(taskId, asks(0))
  await push(hook, statusPush(taskId, 'input-required'))
  await trip.pass(minute, 6)
  agent.put(taskId, asks(1))
  await push(hook, statusPush(taskId, 'input-required'))
  await trip.pass(minute, 6)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.input_required'])
})

/** An agent of HTTP+JSON whose answers go by the path: A2A 0.3 puts its own below `/v1`. */
async function restAgent(answer: (old: boolean) => Answer) {
  const receiver = await startReceiver()
  world.alsoStop(receiver.stop)
  receiver.answer(({ url }) => answer(url.startsWith('/v1/')))
  const id = `rest-${world.count()}`
  await trip.call('PUT', `/v1/agents/${id}`, { url: receiver.origin, binding: 'HTTP+JSON', version: '1.0' })
  const { client } = await trip.subscribe(id, { taskId: 'task' })
  return { id, client }
}
const unknownVersion: Answer = {
  status: 400,
  body: JSON.stringify({ error: { code: 400, details: [{ reason: 'VERSION_NOT_SUPPORTED' }] } }),
}
const shown = (state: string): Answer => ({
  body: JSON.stringify({ id: 'task', contextId: 'c', ...status(state) }),
})
const unrouted: Answer = { status: 404, body: 'Cannot GET' }

test('one word of an unknown version does not make an agent one of the other, which a router knows nothing of', async () => {
  let now = shown('working')
  const { id, client } = await restAgent(old => (old ? unrouted : now))
  await trip.pass(3000, 3)
  now = unknownVersion
  await trip.pass(10 * minute, 10)
  now = shown('completed')
  await trip.pass(hour, 12)
  expect(typesTold(client)).toEqual(['task.completed'])
  const { calls } = await trip.call<{ calls: { version: { spoken: string } } }>(
    'GET',
    `/v1/agents/${id}/health`,
  )
  expect(calls.version.spoken).toBe('1.0')
})

test('an agent that gives up the version it was asked for in is asked for in the registered one before its task counts as gone', async () => {
  let upgraded = false
  const { client } = await restAgent(old => {
    if (old) return upgraded ? unrouted : shown('working')
    return upgraded ? shown('completed') : unknownVersion
  })
  await trip.pass(minute, 6)
  upgraded = true
  await trip.pass(hour, 12)
  expect(typesTold(client)).toEqual(['task.completed'])
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

test('a budget from end to end covers a task that comes to the tree after its root has ended', async () => {
  const root = await world.begin({}, { endToEndSeconds: 3600 })
  root.agent.put(root.taskId, status('completed'))
  await trip.pass(5 * minute, 5)
  expect(typesTold(root.client)).toEqual(['task.completed'])
  const middle = `${root.taskId}-middle`
  const leaf = `${root.taskId}-leaf`
  for (const taskId of [middle, leaf]) root.agent.put(taskId, status('working'))
  const under = (taskId: string, parent: string) =>
    trip.subscribe(root.id, { taskId, parentTask: { agent: root.id, taskId: parent } })
  await under(middle, root.taskId)
  await trip.pass(3000, 3)
  root.agent.put(middle, status('completed'))
  await trip.pass(10 * minute, 10)
  await under(leaf, middle)
  await trip.pass(hour, 12)
  expect(typesTold(root.client)).toEqual(['task.completed', 'task.overdue'])
  expect(root.client.told()[1]?.data).toMatchObject({ budget: 'end_to_end', open: `${root.id}/${leaf}` })
})

test.each([
  ['an object', { a: { parts: [{ text: 'SECRET' }] } }],
  ['a text', 'SECRET'],
])('unfinished work that is %s instead of a list is withheld', async (_, artifacts) => {
  const { agent, id, taskId } = await world.begin({}, { partialWork: 'withhold' })
  agent.put(taskId, { ...status('failed'), artifacts })
  await trip.pass(3 * minute, 3)
  const seen = await trip.task(id, taskId)
  expect(seen).toMatchObject({ state: 'failed', withheld: true, artifacts: { count: 1 } })
  expect(JSON.stringify(seen)).not.toContain('SECRET')
})

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

test.each([[''], [{}], [{ code: 0, message: '' }]])(
  'a task beside the error %j that says nothing is told',
  async error => {
    const { agent, taskId, client } = await world.begin()
    agent.instead(({ id, params }) => ({
      body: JSON.stringify({ jsonrpc: '2.0', id, result: { ...status('completed'), id: params.id }, error }),
    }))
    await trip.pass(10 * minute, 6)
    expect(typesTold(client)).toEqual(['task.completed'])
    void taskId
  },
)

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

test('a task that its own push binds below a root that has ended is covered by the budget of the root', async () => {
  const root = await world.begin({}, { endToEndSeconds: 3600 })
  root.agent.put(root.taskId, status('completed'))
  await trip.pass(5 * minute, 5)
  const child = `${root.taskId}-pushed`
  root.agent.put(child, status('working'))
  const below = await trip.subscribe(root.id, { parentTask: { agent: root.id, taskId: root.taskId } })
  await push(below.hook, statusPush(child, 'working'))
  await trip.pass(2 * hour, 24)
  expect(typesTold(root.client)).toEqual(['task.completed', 'task.overdue'])
})

test('a question that is asked anew is told within a minute though an older replica answers in between', async () => {
  const { agent, taskId, hook, client } = await world.begin()
  const asks = (minutes: number) =>
    status('input-required', { timestamp: new Date(trip.local.now() + minutes * minute).toISOString() })
  const first = asks(0)
  agent.put(taskId, first)
  await push(hook, statusPush(taskId, 'input-required'))
  await trip.pass(4 * hour, 30)
  const second = asks(1)
  let seen = 0
  agent.put(taskId, second)
  agent.instead(({ method }) => {
    if (method !== 'GetTask') return undefined
    seen += 1
    agent.put(taskId, seen === 2 || seen === 3 ? first : second)
    return undefined
  })
  await push(hook, { ...statusPush(taskId, 'input-required'), again: true })
  await trip.pass(minute, 30)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.input_required'])
})
