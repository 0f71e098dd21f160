// Many wait for one task, each with credentials of its own: whoever sees it tells all, and each hears of its own refusals only.
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Asked, answering, bearer, error, forbidden, gone, refused, whose } from '../support/bearers.ts'
import { makeFolder } from '../support/folder.ts'
import { freePorts } from '../support/ports.ts'
import { type Answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { type Scripted, startScripted, status } from '../support/scripted.ts'
import { push, startTrip, statusPush } from '../support/trip.ts'
import { day, hearOperations, hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

waitsOfFile()
let tokens: Receiver
/** What operations were told of an agent. */
let aboutAgent: (id: string) => string[]
beforeAll(async () => {
  tokens = await startReceiver()
  world.alsoStop(tokens.stop)
  aboutAgent = await hearOperations(trip)
})

const expired = 'subscription.credentials_expired'

/** An agent whose subscriptions may get their tokens from an endpoint of the test's. */
async function agentWithTokens() {
  const { agent, id } = await world.agentOf()
  const origins = [agent.origin, tokens.origin]
  const hand = { url: `${agent.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true, origins }
  await trip.call('PUT', `/v1/agents/${id}`, hand)
  const taskId = `task-of-${id}`
  agent.put(taskId, status('working'))
  const tokenUrl = `${tokens.origin}/${id}`
  const oauth = { type: 'oauth2', grant: 'client_credentials', tokenUrl, clientId: 'c', clientSecret: 's' }
  return { agent, id, taskId, credentials: oauth }
}
const granted = { body: JSON.stringify({ access_token: 'good', token_type: 'bearer', expires_in: 600 }) }

test.each<[string, (asked: Asked) => Answer]>([
  ['forbids it', forbidden],
  ['says that there is none', gone],
])('news reach who sees a task though to five later subscriptions the agent %s', async (_, answer) => {
  const { agent, id, taskId, hook, client } = await world.begin({}, bearer('good'))
  answering(agent, taskId, (token, asked) => (token === 'good' ? undefined : answer(asked)))
  const others = []
  for (let n = 0; n < 5; n++) others.push(await trip.subscribe(id, { taskId, ...bearer(`less-${n}`) }))
  await trip.pass(5 * minute, 10)
  agent.put(taskId, status('input-required'))
  await push(hook, statusPush(taskId, 'input-required'))
  const before = agent.calls(taskId).length
  await trip.pass(minute, 10)
  expect(typesTold(client)).toEqual(['task.input_required'])
  // Whose credentials served last are shown first.
  const shown = agent.calls(taskId).slice(before)
  expect(shown.map(({ headers }) => headers.authorization)).toEqual(shown.map(() => 'Bearer good'))
  agent.put(taskId, status('completed'))
  await trip.pass(day, 48)
  for (const one of [client, ...others.map(other => other.client)])
    expect(typesTold(one).at(-1)).toBe('task.completed')
  expect(typesTold(client)).toEqual(['task.input_required', 'task.completed'])
})

test('of 36 credentials 35 run out over night: the good ones are found within hours', async () => {
  const { agent, taskId, client } = await world.begin({}, bearer('good'))
  const bad = 35
  for (let n = 0; n < bad; n++) await trip.subscribe(taskId.slice(8), { taskId, ...bearer(`short-${n}`) })
  await trip.pass(12 * hour, 60)
  answering(agent, taskId, token => (token === 'good' ? undefined : refused()))
  agent.put(taskId, status('completed'))
  const before = agent.calls(taskId).length
  await trip.pass(8 * hour, 200)
  expect(typesTold(client)).toEqual(['task.completed'])
  expect(agent.calls(taskId).length - before).toBeLessThanOrEqual(bad + 1)
})

test('good credentials behind three later bad ones are found though each look runs in another process', async () => {
  const own = await startTrip({ dir: makeFolder(), ports: await freePorts() })
  const agent = await startScripted()
  onTestFinished(async () => {
    await own.stop()
    await agent.stop()
  })
  const hand = { url: `${agent.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true }
  await own.call('PUT', '/v1/agents/x', hand)
  agent.put('t', status('working'))
  const good = await own.subscribe('x', { taskId: 't', ...bearer('good') })
  await own.pass(3000, 3)
  for (const n of [1, 2, 3]) await own.subscribe('x', { taskId: 't', ...bearer(`bad-${n}`) })
  answering(agent, 't', token => (token === 'good' ? undefined : refused()))
  agent.put('t', status('completed'))
  for (let n = 0; n < 12; n++) {
    await own.pass(n < 8 ? minute : 20 * minute)
    await own.restart()
  }
  expect(typesTold(good.client)).toEqual(['task.completed'])
})

test('of two subscriptions the one is told that its credentials are refused, the other that its own show no task', async () => {
  const { agent, id, taskId, client, made } = await world.begin({}, bearer('good'))
  const other = await trip.subscribe(id, { taskId, ...bearer('less') })
  answering(agent, taskId, (token, asked) => (token === 'good' ? refused() : gone(asked)))
  await trip.pass(day, 100)
  expect(typesTold(client)).toEqual([expired])
  expect(typesTold(other.client)).toEqual(['task.orphaned'])
  // Of new ones that show no task either it is told, too, and of nothing twice.
  answering(agent, taskId, (_, asked) => gone(asked))
  await trip.call('PUT', `/v1/subscriptions/${made.id}/credentials`, bearer('new'))
  await trip.pass(day, 100)
  expect(typesTold(client)).toEqual([expired, 'task.orphaned'])
  expect(typesTold(other.client)).toEqual(['task.orphaned'])
  agent.instead(undefined)
  agent.put(taskId, status('completed'))
  await trip.pass(day, 40)
  for (const one of [client, other.client]) expect(typesTold(one).at(-1)).toBe('task.completed')
})

test('a short fault of a token endpoint is not told because the credentials of another are refused', async () => {
  const { agent, id, taskId, credentials } = await agentWithTokens()
  tokens.answer(() => ({ status: 503 }))
  answering(agent, taskId, token => (token === 'bad' ? refused() : undefined))
  const two = await trip.subscribe(id, { taskId, credentials })
  const one = await trip.subscribe(id, { taskId, ...bearer('bad') })
  await trip.pass(2 * minute, 12)
  tokens.answer(() => granted)
  await trip.pass(20 * minute, 20)
  expect(typesTold(two.client)).toEqual([])
  expect(typesTold(one.client)).toEqual([expired])
  expect(whose(agent, taskId)).toBe('good')
})

test('what is pushed to two who wait for all of an agent outlasts a night without a token for the one that sees it', async () => {
  const { agent, id, taskId, credentials } = await agentWithTokens()
  agent.put(taskId, status('completed'))
  tokens.answer(() => ({ status: 503 }))
  agent.instead(asked => {
    if (asked.method === 'ListTasks') return error(-32601)(asked)
    return whose(agent, taskId) === 'good' ? undefined : gone(asked)
  })
  const one = await trip.subscribe(id, { scope: 'agent', credentials })
  const two = await trip.subscribe(id, { scope: 'agent', ...bearer('less') })
  for (const { hook } of [one, two]) expect(await push(hook, statusPush(taskId, 'completed'))).toBe(202)
  await trip.pass(8 * hour, 100)
  // Its lists of tasks meet the same, which is told of the subscription.
  const ofTask = () => one.client.told().filter(({ data }) => data.about === undefined)
  expect(ofTask().map(({ type }) => type)).toEqual([expired])
  expect(typesTold(one.client)).toEqual([expired, expired])
  expect(typesTold(two.client)).toEqual(['task.lost_access'])
  tokens.answer(() => granted)
  await trip.pass(hour, 30)
  expect(ofTask().map(({ type }) => type)).toEqual([expired, 'task.completed'])
})

test("the agent's own credentials that are refused are told to operations beside a subscription's", async () => {
  const { agent, id, taskId, client } = await world.begin(bearer('own'))
  const other = await trip.subscribe(id, { taskId, ...bearer('one') })
  agent.instead(refused)
  await trip.pass(day, 100)
  expect(typesTold(client)).toEqual([])
  expect(typesTold(other.client)).toEqual([expired])
  expect(aboutAgent(id)).toEqual([expired])
})

test.each([['agent'], ['subscription']])(
  "a push to an unbound subscription outlasts that the %s's credentials are refused, and that is told",
  async owner => {
    const own = owner === 'subscription'
    const { agent, id } = await world.agentOf(own ? {} : bearer('old'))
    const taskId = `u-${id}`
    agent.put(taskId, status('completed'))
    const { hook, client, made } = await trip.subscribe(id, own ? bearer('old') : {})
    answering(agent, taskId, token => (token === 'old' ? refused() : undefined))
    expect(await push(hook, statusPush(taskId, 'completed'))).toBe(202)
    await trip.pass(3 * hour, 100)
    expect(typesTold(client)).toEqual(own ? [expired] : [])
    expect(aboutAgent(id)).toEqual(own ? [] : [expired])
    if (own) await trip.call('PUT', `/v1/subscriptions/${made.id}/credentials`, bearer('new'))
    else {
      const hand = { url: `${agent.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true }
      await trip.call('PUT', `/v1/agents/${id}`, { ...hand, ...bearer('new') })
    }
    await trip.pass(7 * hour, 80)
    expect(typesTold(client).at(-1)).toBe('task.completed')
  },
)

test.each<[string, (asked: Asked) => Answer | undefined]>([
  ['shows none to the newer credentials', gone],
  ['forbids the newer credentials', ({ method }) => (method === 'CancelTask' ? forbidden() : undefined)],
  ['refuses the newer credentials', ({ method }) => (method === 'CancelTask' ? refused() : undefined)],
])('a budget has a task canceled as its own subscription though the agent %s', async (_, less) => {
  const budget = { hopTimeoutSeconds: 600, onOverdue: 'cancel' }
  const { agent, id, taskId, client } = await world.begin({}, { ...bearer('good'), ...budget })
  const other = await trip.subscribe(id, { taskId, ...bearer('less') })
  canceling(agent, taskId, token => token === 'good', less)
  await trip.pass(2 * hour, 40)
  expect(typesTold(client)).toEqual(['task.overdue', 'task.canceled'])
  expect(typesTold(other.client)).toEqual(['task.canceled'])
  const cancels = agent.calls(taskId).filter(({ method }) => method === 'CancelTask')
  expect(cancels.map(({ headers }) => headers.authorization)).toEqual(['Bearer good'])
  expect(await notesOf(id, taskId)).toEqual([expect.not.stringContaining('refused')])
})

test('a task that a client has canceled is so with whichever credentials may', async () => {
  const { agent, id, taskId, client } = await world.begin({}, bearer('good'))
  await trip.subscribe(id, { taskId, ...bearer('less') })
  canceling(
    agent,
    taskId,
    token => token === 'good',
    ({ method }) => (method === 'CancelTask' ? forbidden() : undefined),
  )
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(10 * minute, 20)
  expect(typesTold(client)).toEqual(['task.canceled'])
  expect(await notesOf(id, taskId)).toEqual([expect.not.stringContaining('refused')])
})

/** An agent that cancels a task for those who may. */
function canceling(
  agent: Scripted,
  taskId: string,
  may: (token: string) => boolean,
  less: (asked: Asked) => Answer | undefined,
): void {
  answering(agent, taskId, (token, asked) => {
    if (!may(token)) return less(asked)
    if (asked.method !== 'CancelTask') return undefined
    agent.put(taskId, status('canceled'))
    const result = { ...status('canceled'), id: taskId }
    return { body: JSON.stringify({ jsonrpc: '2.0', id: asked.id, result }) }
  })
}

const notesOf = async (id: string, taskId: string) =>
  (await trip.task(id, taskId)).timeline.steps.map(({ note }) => note).filter(note => note !== undefined)

test('a watch does not grow by credentials that are given again and again while all are refused', async () => {
  const { agent, client, made } = await world.begin({}, bearer('t-0'))
  agent.instead(refused)
  await trip.pass(10 * minute, 10)
  const sizes: number[] = []
  for (let n = 1; n <= 12; n++) {
    await trip.call('PUT', `/v1/subscriptions/${made.id}/credentials`, bearer(`t-${n}`))
    await trip.pass(20 * minute, 10)
    const bytes = trip.calls
      .map(
        ({ body }) => (body.ExpressionAttributeValues as Record<string, unknown> | undefined)?.[':expired'],
      )
      .filter(value => value !== undefined)
    sizes.push(JSON.stringify(bytes.at(-1)).length)
  }
  expect(typesTold(client)).toHaveLength(13)
  expect(new Set(sizes).size).toBe(1)
})
