// What each is told of a trouble goes by its own credentials: by those that it has now, and by what they come to, wherever they are from.
import { beforeAll, expect, test } from 'vitest'
import { answering, bearer, error, gone, refused } from '../support/bearers.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { status } from '../support/scripted.ts'
import { push, statusPush } from '../support/trip.ts'
import { day, hearOperations, hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

waitsOfFile()
/** A token endpoint. */
let tokens: Receiver
/** What operations were told of an agent. */
let aboutAgent: (id: string) => string[]
beforeAll(async () => {
  aboutAgent = await hearOperations(trip)
  tokens = await startReceiver()
  world.alsoStop(tokens.stop)
})

const expired = 'subscription.credentials_expired'
const asks = status('input-required', { message: { messageId: 'q', parts: [] } })
/** Nobody's task runs out of time. */
const month = { pauseTimeoutSeconds: 30 * 24 * 3600 }

test("a loss is told to whoever meets it though the agent's own token endpoint gives nothing for days", async () => {
  const { agent, id } = await world.agentOf()
  tokens.answer(() => ({ status: 503 }))
  const oauth = {
    grant: 'client_credentials',
    tokenUrl: `${tokens.origin}/token`,
    clientId: 'c',
    clientSecret: 's',
  }
  await trip.call('PUT', `/v1/agents/${id}`, {
    ...{ url: `${agent.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true },
    ...{ origins: [agent.origin, tokens.origin], credentials: { type: 'oauth2', ...oauth } },
  })
  const taskId = `task-of-${id}`
  agent.put(taskId, asks)
  const one = await trip.subscribe(id, { taskId, ...month, ...bearer('one') })
  await trip.pass(10 * minute, 20)
  const two = await trip.subscribe(id, { taskId, ...month })
  await trip.pass(10 * minute, 20)
  answering(agent, taskId, (_, asked) => gone(asked))
  await trip.pass(3 * day, 120)
  expect(typesTold(one.client)).toEqual(['task.input_required', 'task.orphaned'])
  expect(typesTold(two.client)).toEqual(['task.input_required'])
})

test('who joins once the agent has other credentials is told of no loss that only those of before met', async () => {
  const { agent, id, taskId, client } = await world.begin(bearer('bad'), month)
  agent.put(taskId, asks)
  await trip.pass(10 * minute, 20)
  answering(agent, taskId, (token, asked) => (token === 'bad' ? gone(asked) : undefined))
  await trip.pass(2 * hour, 60)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.orphaned'])
  await trip.call('PUT', `/v1/agents/${id}`, {
    ...{ url: `${agent.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true, ...bearer('fine') },
  })
  const late = await trip.subscribe(id, { taskId, ...month })
  await trip.pass(hour, 60)
  expect(typesTold(late.client)).toEqual(['task.input_required'])
  expect(typesTold(client)).toEqual(['task.input_required', 'task.orphaned', 'task.input_required'])
})

test('what each was told last is taken back from it, whatever was told to others since', async () => {
  const { agent, id, taskId, client } = await world.begin({}, { ...month, ...bearer('one') })
  agent.put(taskId, asks)
  await trip.pass(10 * minute, 20)
  const other = await trip.subscribe(id, { taskId, ...month, ...bearer('two') })
  await trip.pass(10 * minute, 20)
  const large = (of: string) =>
    JSON.stringify({ jsonrpc: '2.0', id: of, result: { artifacts: 'x'.repeat(30_000_000), status: 1 } })
  const tellsOf = async (says: Parameters<typeof answering>[2] | undefined, type: string, both: boolean) => {
    if (says === undefined) agent.instead(undefined)
    else answering(agent, taskId, says)
    await trip.pass(12 * hour, 60)
    told[0]?.push(type)
    if (both) told[1]?.push(type)
    expect([client, other.client].map(typesTold)).toEqual(told)
  }
  const told = [['task.input_required'], ['task.input_required']]
  await tellsOf((_, asked) => ({ body: large(asked.id) }), 'task.too_large', true)
  await tellsOf((token, asked) => (token === 'one' ? gone(asked) : { status: 500 }), 'task.orphaned', false)
  // Only who was told something else since is told that again.
  await tellsOf((_, asked) => ({ body: large(asked.id) }), 'task.too_large', false)
  await tellsOf(undefined, 'task.input_required', true)
})

test('who heard of a task by another’s credentials is told that its own ran out once that one is gone', async () => {
  const { agent, id, taskId, client } = await world.begin({}, { ...month, ...bearer('bad') })
  agent.put(taskId, asks)
  await trip.pass(10 * minute, 10)
  answering(agent, taskId, token => (token === 'bad' ? refused() : undefined))
  await trip.pass(8 * hour, 60)
  const other = await trip.subscribe(id, { taskId, ...month, ...bearer('good') })
  await trip.pass(hour, 30)
  const told = ['task.input_required', expired, 'task.input_required']
  expect(typesTold(client)).toEqual(told)
  // While the other one's may serve again it is no news.
  answering(agent, taskId, token => (token === 'bad' ? refused() : { status: 503 }))
  await trip.pass(12 * hour, 60)
  answering(agent, taskId, token => (token === 'bad' ? refused() : undefined))
  await trip.pass(8 * hour, 60)
  expect(typesTold(client)).toEqual(told)
  await trip.call('DELETE', `/v1/subscriptions/${other.made.id}`)
  await trip.pass(2 * day, 60)
  expect(typesTold(client)).toEqual([...told, expired])
  agent.instead(undefined)
  await trip.pass(day, 60)
  expect(typesTold(client)).toEqual([...told, expired, 'task.input_required'])
})

test('credentials that are refused in the one version that the agent knows now are told as such', async () => {
  const { agent, id, taskId, client } = await world.begin({}, { ...month, ...bearer('one') })
  answering(agent, taskId, (_, asked) => (asked.method === 'GetTask' ? error(-32601)(asked) : refused()))
  await trip.pass(day, 60)
  expect(typesTold(client)).toEqual([expired])
  expect(aboutAgent(id)).toEqual([])
})

test('refused credentials are told once, of however many tasks their unbound subscription is pushed, and when it is bound', async () => {
  const { agent, id } = await world.agentOf()
  const { hook, client, made } = await trip.subscribe(id, { ...month, ...bearer('bad') })
  const refusing = (taskId: string) =>
    answering(agent, taskId, token => (token === 'bad' ? refused() : undefined))
  const tasks = [1, 2, 3].map(n => `t${n}-of-${id}`)
  agent.instead(refused)
  for (const taskId of tasks) await push(hook, statusPush(taskId, 'completed'))
  await trip.pass(2 * hour, 60)
  expect(typesTold(client)).toEqual([expired])
  const [taskId = ''] = tasks
  await trip.call('POST', `/v1/subscriptions/${made.id}/bind`, { taskId })
  await trip.pass(6 * hour, 60)
  expect(typesTold(client)).toEqual([expired])
  await trip.call('PUT', `/v1/subscriptions/${made.id}/credentials`, bearer('bad'))
  refusing(taskId)
  await trip.pass(6 * hour, 60)
  expect(typesTold(client)).toEqual([expired, expired])
})
