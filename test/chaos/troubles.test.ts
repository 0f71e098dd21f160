// Troubles that come in turn: each is told once to whom it concerns, none hides another, and what was told is taken back.
import { beforeAll, expect, test } from 'vitest'
import { type Scripted, status } from '../support/scripted.ts'
import { day, hearOperations, hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

/** Wakes of this type cannot be queued now. */
let deaf: string | undefined
waitsOfFile({
  faults: ({ service, body }) =>
    deaf !== undefined && service === 'sqs' && JSON.stringify(body).includes(deaf) ? 'throttle' : undefined,
})
/** What the tenant was told of an agent. */
let toldOf: (id: string) => string[]
beforeAll(async () => {
  toldOf = await hearOperations(trip)
})

const missing = ({ id }: { id: string }) => ({
  body: JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32001, message: 'Task not found' } }),
})
const question = { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { messageId: 'm', parts: [] } } }

/** Answers in turn, whatever is asked. */
function alternate(agent: Scripted, ...answers: Parameters<Scripted['instead']>[0][]): void {
  let asked = 0
  agent.instead(request => answers[asked++ % answers.length]?.(request))
}

test('a task that one replica does not find and the other refuses is lost once, and asked for less and less', async () => {
  const { agent, taskId, client } = await world.begin()
  alternate(agent, missing, () => ({ status: 403 }))
  await trip.pass(30 * minute, 300)
  expect(typesTold(client)).toHaveLength(1)
  expect(typesTold(client)[0]).toMatch(/^task\.(orphaned|lost_access)$/)
  const before = agent.calls(taskId).length
  await trip.pass(30 * minute, 300)
  expect(agent.calls(taskId).length - before).toBeLessThan(10)
  expect(typesTold(client)).toHaveLength(1)
})

test('answers of which one says that there is no task and the next nothing at all are told to operations', async () => {
  const { agent, id, taskId, client } = await world.begin()
  alternate(agent, missing, () => ({ body: '<html>' }))
  await trip.pass(30 * minute, 300)
  const before = agent.calls(taskId).length
  await trip.pass(2 * hour, 300)
  expect(agent.calls(taskId).length - before).toBeLessThan(30)
  expect(toldOf(id)).toEqual(['agent.unusable'])
  expect(typesTold(client)).toEqual([])
})

test('what was told as lost is taken back though the agent’s credentials were refused in between', async () => {
  const { agent, id, taskId, client } = await world.begin({ credentials: { type: 'bearer', token: 's' } })
  agent.put(taskId, question)
  await trip.pass(10 * minute, 10)
  agent.instead(missing)
  await trip.pass(hour, 30)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.orphaned'])
  agent.instead(() => ({ status: 401 }))
  await trip.pass(6 * hour, 60)
  expect(toldOf(id)).toEqual(['subscription.credentials_expired'])
  const late = await trip.subscribe(id, { taskId })
  await trip.pass(hour, 20)
  expect(typesTold(late.client)).toContain('task.orphaned')
  agent.instead(undefined)
  await trip.pass(12 * hour, 60)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.orphaned', 'task.input_required'])
})

test('who was told that its credentials ran out hears of the task again though its agent was of no use in between', async () => {
  const credentials = { type: 'bearer', token: 's' }
  const week = 7 * 24 * 3600
  const { agent, id, taskId, client } = await world.begin({}, { credentials, pauseTimeoutSeconds: week })
  agent.put(taskId, question)
  await trip.pass(10 * minute, 10)
  agent.instead(() => ({ status: 401 }))
  await trip.pass(hour, 30)
  const told = ['task.input_required', 'subscription.credentials_expired']
  expect(typesTold(client)).toEqual(told)
  agent.instead(() => ({ body: '<html>' }))
  await trip.pass(20 * hour, 100)
  expect(toldOf(id)).toEqual(['agent.unusable'])
  agent.instead(undefined)
  await trip.pass(12 * hour, 60)
  expect(typesTold(client)).toEqual([...told, 'task.input_required'])
})

test('the agent’s own credentials that are refused are told to operations, beside a subscription’s that are too', async () => {
  const { agent, id, taskId, client } = await world.begin({ credentials: { type: 'bearer', token: 's' } })
  const other = await trip.subscribe(id, { taskId, credentials: { type: 'bearer', token: 'x' } })
  await trip.pass(10 * minute, 10)
  agent.instead(() => ({ status: 401 }))
  await trip.pass(6 * day, 60)
  expect(typesTold(other.client)).toEqual(['subscription.credentials_expired'])
  expect(toldOf(id)).toEqual(['subscription.credentials_expired'])
  expect(typesTold(client)).toEqual([])
})

test('who joins a lost task is told so, though its budget runs out while the agent is away', async () => {
  const { agent, id } = await world.agentOf()
  const taskId = `late-${id}`
  const first = await trip.subscribe(id, { taskId })
  await trip.pass(hour, 20)
  expect(typesTold(first.client)).toEqual(['task.lost_access'])
  agent.instead(() => ({ status: 503 }))
  await trip.pass(minute)
  const late = await trip.subscribe(id, { taskId, hopTimeoutSeconds: 600 })
  await trip.pass(30 * minute, 30)
  agent.instead(undefined)
  await trip.pass(day, 60)
  expect(typesTold(late.client).sort()).toEqual(['task.lost_access', 'task.overdue'])
  expect(typesTold(first.client)).toEqual(['task.lost_access'])
})

test('a task that was told as lost is told once it is seen again, though its state is not one that was asked for', async () => {
  const { agent, taskId, client } = await world.begin()
  const asks = await trip.subscribe(taskId.replace('task-of-', ''), { taskId, states: ['working'] })
  agent.instead(missing)
  await trip.pass(hour, 30)
  expect(typesTold(client)).toEqual(['task.orphaned'])
  agent.instead(undefined)
  await trip.pass(12 * hour, 60)
  expect(typesTold(client)).toEqual(['task.orphaned', 'task.working'])
  expect(typesTold(asks.client).filter(type => type === 'task.working')).toHaveLength(2)
})

test('credentials that are refused once, and once more after an older answer, have not run out', async () => {
  const { agent, taskId, client } = await world.begin({}, { credentials: { type: 'bearer', token: 's' } })
  const stamped = (state: string) =>
    status(state, {
      timestamp: new Date(trip.local.now()).toISOString(),
      message: { messageId: state, parts: [] },
    })
  const older = stamped('working')
  agent.put(taskId, older)
  await trip.pass(10 * minute, 10)
  const newer = stamped('input-required')
  agent.put(taskId, newer)
  await trip.pass(10 * minute, 10)
  const script = ['refused', 'older', 'refused']
  agent.instead(({ method }) => {
    if (method !== 'GetTask') return undefined
    const next = script.shift()
    if (next === 'refused') return { status: 401 }
    agent.put(taskId, next === 'older' ? older : newer)
    return undefined
  })
  await trip.pass(3 * hour, 600)
  expect(script).toEqual([])
  expect(typesTold(client)).toEqual(['task.input_required'])
})

test('each who joins a lost task is told so, though what one is owed cannot be queued for a while', async () => {
  const { agent, id, taskId, client } = await world.begin()
  agent.instead(missing)
  await trip.pass(hour, 30)
  expect(typesTold(client)).toEqual(['task.orphaned'])
  deaf = 'task.orphaned'
  const second = await trip.subscribe(id, { taskId })
  await trip.pass(20_000, 10)
  const third = await trip.subscribe(id, { taskId })
  await trip.pass(20_000, 10)
  deaf = undefined
  await trip.pass(5 * hour, 60)
  for (const one of [client, second.client, third.client]) expect(typesTold(one)).toEqual(['task.orphaned'])
})

test('an agent that refuses slowly is asked once a look, so that what it said is saved in time', async () => {
  const { agent, id, taskId } = await world.begin()
  const asked: string[] = []
  agent.instead(({ id: call, method }) => {
    asked.push(method)
    trip.local.advance(15_000)
    return { body: JSON.stringify({ jsonrpc: '2.0', id: call, error: { code: -32601, message: 'no' } }) }
  })
  await trip.pass(6 * hour, 60)
  expect(asked.length).toBeGreaterThan(1)
  expect(asked).not.toContain('tasks/get')
  expect(await trip.call('GET', `/v1/tasks/${id}/${taskId}`)).toMatchObject({
    trouble: { code: 'unsupported_version' },
  })
})
