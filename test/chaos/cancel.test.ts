// A wish to cancel takes nobody's news: the task is looked at all the same, and the wish goes with whoever had it.
import { expect, test } from 'vitest'
import { status } from '../support/scripted.ts'
import { push, statusPush } from '../support/trip.ts'
import { day, hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

waitsOfFile()

const refusals: [string, object][] = [
  ['fails', { status: 500 }],
  ['takes no calls', { status: 429 }],
  ['is not authorized', { status: 401 }],
]
for (const [how, answer] of refusals)
  test(`the end of a task is told while its cancellation ${how}`, async () => {
    const { agent, id, taskId, client } = await world.begin()
    agent.instead(({ method }) => (method === 'CancelTask' ? answer : undefined))
    await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
    await trip.pass(5000, 5)
    agent.put(taskId, status('completed'))
    await trip.pass(10 * minute, 10)
    expect(typesTold(client)).toEqual(['task.completed'])
    expect((await trip.task(id, taskId)).trouble).toBeUndefined()
  })

test('a cancellation that fails again and again is told as refused, and not asked for for ever', async () => {
  const { agent, id, taskId, client } = await world.begin()
  agent.instead(({ method }) => (method === 'CancelTask' ? { status: 401 } : undefined))
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(2 * hour, 60)
  expect(typesTold(client)).toEqual(['task.cancel_refused'])
  expect(client.told()[0]?.data).toMatchObject({ by: 'client', reason: 'unauthorized' })
  const asked = () => agent.calls(taskId).filter(({ method }) => method === 'CancelTask').length
  const before = asked()
  expect(before).toBeLessThanOrEqual(10)
  await trip.pass(day, 6)
  expect(asked()).toBe(before)
})

test('a cancellation that worked is not called refused, whatever its answer was', async () => {
  const { agent, id, taskId, client } = await world.begin()
  agent.instead(({ method }) => {
    if (method !== 'CancelTask') return undefined
    agent.put(taskId, status('canceled'))
    return { body: '<html>done</html>' }
  })
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(minute, 6)
  expect(typesTold(client)).toEqual(['task.canceled'])
  const { timeline } = await trip.task(id, taskId)
  const notes = timeline.steps.map(({ note }) => note).filter(note => note !== undefined)
  expect(notes).toEqual([expect.not.stringContaining('refused')])
})

test('a cancellation goes with the subscription whose budget asked for it', async () => {
  const {
    agent,
    id,
    taskId,
    made: first,
  } = await world.begin({}, { hopTimeoutSeconds: 600, onOverdue: 'cancel' })
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
  const { agent, id, taskId, made: first } = await world.begin()
  agent.instead(() => ({ status: 503 }))
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(minute, 6)
  await trip.call('DELETE', `/v1/subscriptions/${first.id}`)
  await trip.pass(10 * minute, 10)
  agent.instead(undefined)
  await trip.pass(30 * day, 10)
  await trip.subscribe(id, { taskId })
  await trip.pass(10 * minute, 10)
  expect(agent.calls(taskId).filter(({ method }) => method === 'CancelTask')).toEqual([])
  expect((await trip.task(id, taskId)).timeline.steps.filter(({ note }) => note !== undefined)).toEqual([])
})

test('a cancellation that fails is tried when its time has come, not by each look that a push brings', async () => {
  const { agent, id, taskId, hook, client } = await world.begin({}, { states: ['working', 'completed'] })
  agent.instead(({ method }) =>
    method === 'CancelTask' ? { status: 503, headers: { 'retry-after': '600' } } : undefined,
  )
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  const cancels = () => agent.calls(taskId).filter(({ method }) => method === 'CancelTask').length
  for (let second = 0; second < 90; second += 3) {
    agent.put(taskId, { ...status('working'), artifacts: [{ artifactId: `a-${second}`, parts: [] }] })
    await push(hook, { ...statusPush(taskId, 'working'), step: second })
    await trip.pass(3000)
  }
  expect(cancels()).toBe(1)
  // What changes meanwhile is told at once all the same.
  expect(client.told().length).toBeGreaterThan(10)
  agent.instead(({ method }) => {
    if (method === 'CancelTask') agent.put(taskId, status('canceled'))
    return undefined
  })
  await trip.pass(20 * minute, 40)
  expect(cancels()).toBe(2)
  expect((await trip.task(id, taskId)).state).toBe('canceled')
})

test('a budget that runs out while another has the task canceled does not replace its wish', async () => {
  const {
    agent,
    id,
    taskId,
    made: first,
  } = await world.begin({}, { hopTimeoutSeconds: 600, onOverdue: 'cancel' })
  agent.instead(({ method }) => (method === 'CancelTask' ? { status: 503 } : undefined))
  const second = await trip.subscribe(id, { taskId, endToEndSeconds: 700, onOverdue: 'cancel' })
  await trip.pass(12 * minute, 24)
  await trip.call('DELETE', `/v1/subscriptions/${second.made.id}`)
  agent.instead(({ method }) => {
    if (method === 'CancelTask') agent.put(taskId, status('canceled'))
    return undefined
  })
  await trip.pass(2 * hour, 40)
  expect((await trip.task(id, taskId)).state).toBe('canceled')
  await trip.call('DELETE', `/v1/subscriptions/${first.id}`)
})

test('a task is canceled for a budget that ran out, though the one that had asked for it before goes', async () => {
  const {
    agent,
    id,
    taskId,
    client,
    made: first,
  } = await world.begin({}, { hopTimeoutSeconds: 600, onOverdue: 'cancel' })
  agent.instead(({ method }) => (method === 'CancelTask' ? { status: 503 } : undefined))
  const second = await trip.subscribe(id, { taskId, endToEndSeconds: 700, onOverdue: 'cancel' })
  await trip.pass(12 * minute, 24)
  expect(second.client.told()).toMatchObject([{ type: 'task.overdue', data: { action: 'cancel' } }])
  await trip.call('DELETE', `/v1/subscriptions/${first.id}`)
  agent.instead(({ method }) => {
    if (method === 'CancelTask') agent.put(taskId, status('canceled'))
    return undefined
  })
  await trip.pass(2 * hour, 40)
  expect(typesTold(second.client)).toEqual(['task.overdue', 'task.canceled'])
  expect(typesTold(client)).toEqual(['task.overdue'])
})

test('a client that asks for what a budget asked for already is heard though that budget goes', async () => {
  const { agent, id, taskId, made } = await world.begin({}, { hopTimeoutSeconds: 600, onOverdue: 'cancel' })
  const other = await trip.subscribe(id, { taskId })
  await trip.pass(3000, 3)
  agent.instead(({ method }) => (method === 'CancelTask' ? { status: 503 } : undefined))
  await trip.pass(12 * minute, 24)
  const asked = await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, { reason: 'enough' })
  expect(asked).toMatchObject({ cancel: { by: 'client', why: 'enough' } })
  await trip.call('DELETE', `/v1/subscriptions/${made.id}`)
  agent.instead(({ method }) => {
    if (method === 'CancelTask') agent.put(taskId, status('canceled'))
    return undefined
  })
  await trip.pass(2 * hour, 40)
  expect(typesTold(other.client)).toEqual(['task.canceled'])
  const { timeline } = await trip.task(id, taskId)
  expect(timeline.steps).toContainEqual(
    expect.objectContaining({ source: 'cancel', note: expect.stringContaining('enough') }),
  )
})

test('a cancellation whose time comes while a look is under way is still tried', async () => {
  const { agent, id, taskId, client } = await world.begin()
  const askedAt: number[] = []
  agent.instead(({ method }) => {
    if (method !== 'CancelTask') return undefined
    askedAt.push(trip.local.now())
    return { status: 503, headers: { 'retry-after': '600' } }
  })
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(5000, 5)
  const looksAt: number[] = []
  agent.instead(({ method }) => {
    if (method === 'CancelTask') agent.put(taskId, status('canceled'))
    else looksAt.push(trip.local.now())
    if (looksAt.length === 1) trip.local.advance(10_000)
    return undefined
  })
  const dueAt = (askedAt[0] ?? 0) + 10 * minute
  await trip.pass(dueAt - 4000 - trip.local.now())
  expect(looksAt[0]).toBeLessThan(dueAt)
  await trip.pass(20 * minute, 40)
  expect(typesTold(client)).toEqual(['task.canceled'])
})

test('what one’s credentials could not cancel is not noted as refused if another’s did', async () => {
  const bearer = (token: string) => ({ credentials: { type: 'bearer', token } })
  const { agent, id, taskId } = await world.begin({}, bearer('good'))
  await trip.subscribe(id, { taskId, ...bearer('less') })
  await trip.pass(3000, 3)
  agent.instead(asked => {
    const { id: of, method } = asked
    const answered = (what: object) => ({ body: JSON.stringify({ jsonrpc: '2.0', id: of, ...what }) })
    if (agent.calls(taskId).at(-1)?.headers.authorization === 'Bearer less')
      return answered({ error: { code: -32001, message: 'Task not found' } })
    if (method !== 'CancelTask') return undefined
    agent.put(taskId, status('canceled'))
    return answered({ result: { id: taskId, ...status('canceled') } })
  })
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(10 * minute, 20)
  const { state, timeline } = await trip.task(id, taskId)
  expect(state).toBe('canceled')
  const notes = timeline.steps.map(({ note }) => note).filter(note => note !== undefined)
  expect(notes).toEqual([expect.not.stringContaining('refused')])
})

test('a cancellation of a task that its agent does not find is told as refused once, and noted once', async () => {
  const { agent, id } = await world.agentOf()
  const taskId = `none-of-${id}`
  const { client } = await trip.subscribe(id, { taskId })
  await trip.pass(minute, 20)
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  agent.instead(({ id: of, method }) =>
    method === 'CancelTask'
      ? { body: JSON.stringify({ jsonrpc: '2.0', id: of, error: { code: -32001, message: 'none' } }) }
      : undefined,
  )
  await trip.pass(3 * hour, 180)
  expect(typesTold(client)).toEqual(['task.lost_access', 'task.cancel_refused'])
  expect(client.told().at(-1)?.data).toMatchObject({ by: 'client', reason: 'not_found' })
  const asked = () => agent.calls(taskId).filter(({ method }) => method === 'CancelTask').length
  expect(asked()).toBeLessThanOrEqual(10)
  const before = asked()
  await trip.pass(day, 10)
  expect(asked()).toBe(before)
  const { timeline } = await trip.task(id, taskId)
  expect(timeline.steps.filter(({ note }) => note !== undefined)).toHaveLength(1)
})
