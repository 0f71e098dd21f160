// Budgets of who joins a task, or a tree whose root has ended or ends just now: each is told if it covers that task, and in time, whatever the agents do.
import { expect, test } from 'vitest'
import { status } from '../support/scripted.ts'
import { push, statusPush } from '../support/trip.ts'
import { hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

waitsOfFile()

/** A root with half an hour, which ended in five minutes, as its client knows. */
async function beginRoot() {
  const root = await world.begin({}, { endToEndSeconds: 1800 })
  root.agent.put(root.taskId, status('completed'))
  await trip.pass(5 * minute, 5)
  expect(typesTold(root.client)).toEqual(['task.completed'])
  return root
}

test('a budget is told in time though the agent of a task that joins its tree takes no calls', async () => {
  const root = await beginRoot()
  const { agent, id } = await world.agentOf()
  agent.instead(() => ({ status: 429, headers: { 'retry-after': '3600' } }))
  await trip.subscribe(id, { taskId: 'other' })
  await trip.pass(minute, 6)
  const parentTask = { agent: root.id, taskId: root.taskId }
  await trip.subscribe(id, { taskId: 'child', parentTask })
  await trip.pass(23 * minute, 23)
  expect(typesTold(root.client)).toEqual(['task.completed'])
  await trip.pass(5 * minute, 5)
  expect(typesTold(root.client)).toEqual(['task.completed', 'task.overdue'])
  expect(root.client.told().at(-1)?.data).toMatchObject({ budget: 'end_to_end', open: `${id}/child` })
})

test('a task that joins a tree whose budget was over makes nobody late', async () => {
  const root = await beginRoot()
  await trip.pass(hour, 4)
  const child = `${root.taskId}-late`
  root.agent.put(child, status('working'))
  await trip.subscribe(root.id, { taskId: child, parentTask: { agent: root.id, taskId: root.taskId } })
  await trip.pass(hour, 12)
  expect(typesTold(root.client)).toEqual(['task.completed'])
})

test('a task that comes while the one above it is being saved as ended is covered', async () => {
  const root = await world.begin({}, { endToEndSeconds: 3600 })
  const child = `${root.taskId}-child`
  root.agent.put(child, status('working'))
  root.agent.put(root.taskId, status('completed'))
  const saving = trip.hold(({ who, operation, body }) => {
    const text = JSON.stringify(body)
    return (
      who === 'look' && operation === 'UpdateItem' && text.includes('"completed"') && text.includes(':digest')
    )
  })
  await push(root.hook, statusPush(root.taskId, 'completed'))
  await saving.held
  await trip.subscribe(root.id, { taskId: child, parentTask: { agent: root.id, taskId: root.taskId } })
  await trip.until(() => trip.stepsOf('watch.saved', child).length > 0)
  saving.release()
  await trip.settle()
  await trip.pass(5 * minute, 5)
  expect(typesTold(root.client)).toEqual(['task.completed'])
  const before = trip.calls.length
  await trip.pass(2 * hour, 8)
  expect(typesTold(root.client)).toEqual(['task.completed', 'task.overdue'])
  // What was written just before it is read must be seen.
  const lists = trip.calls
    .slice(before)
    .filter(({ operation, body }) => operation === 'Query' && JSON.stringify(body).includes('tasks/parent'))
  expect(new Set(lists.map(({ body }) => body.ConsistentRead))).toEqual(new Set([true]))
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

test('a budget covers what is below a task that is named as its child after both had ended', async () => {
  const root = await world.begin({}, { endToEndSeconds: 3600 })
  const { agent, id } = root
  const [middle, leaf] = [`${root.taskId}-middle`, `${root.taskId}-leaf`]
  for (const taskId of [middle, leaf]) agent.put(taskId, status('working'))
  await trip.subscribe(id, { taskId: middle })
  await trip.subscribe(id, { taskId: leaf, parentTask: { agent: id, taskId: middle } })
  await trip.pass(3000, 3)
  for (const taskId of [root.taskId, middle]) agent.put(taskId, status('completed'))
  await trip.pass(5 * minute, 5)
  await trip.subscribe(id, { taskId: middle, parentTask: { agent: id, taskId: root.taskId } })
  await trip.pass(2 * hour, 24)
  expect(typesTold(root.client)).toEqual(['task.completed', 'task.overdue'])
})

test('a budget covers a task that was first said to be below another', async () => {
  const root = await world.begin({}, { endToEndSeconds: 3600 })
  const { agent, id } = root
  const child = `${root.taskId}-child`
  agent.put(child, status('working'))
  await trip.subscribe(id, { taskId: child, parentTask: { agent: id, taskId: `${root.taskId}-other` } })
  await trip.pass(3000, 3)
  agent.put(root.taskId, status('completed'))
  await trip.pass(5 * minute, 5)
  await trip.subscribe(id, { taskId: child, parentTask: { agent: id, taskId: root.taskId } })
  await trip.pass(2 * hour, 24)
  expect(typesTold(root.client)).toEqual(['task.completed', 'task.overdue'])
})

test('who joins a quiet task whose agent takes no calls hears of its budgets in time', async () => {
  const { agent, id, taskId } = await world.begin()
  await trip.pass(20 * hour, 40)
  agent.instead(() => ({ status: 429, headers: { 'retry-after': '3600' } }))
  await trip.subscribe(id, { taskId: 'other' })
  await trip.pass(minute, 6)
  const { client } = await trip.subscribe(id, { taskId, hopTimeoutSeconds: 120 })
  await trip.pass(4 * minute, 8)
  expect(typesTold(client)).toEqual(['task.overdue'])
})

test('a budget that was over before its subscription was bound is told though another’s was told before', async () => {
  const { agent, id } = await world.agentOf()
  const taskId = `task-of-${id}`
  agent.put(taskId, status('input-required', { message: { messageId: 'q', parts: [] } }))
  const late = await trip.subscribe(id, { endToEndSeconds: 900 })
  const first = await trip.subscribe(id, { taskId, endToEndSeconds: 1000 })
  await trip.pass(30 * minute, 60)
  expect(typesTold(first.client)).toEqual(['task.input_required', 'task.overdue'])
  await trip.call('POST', `/v1/subscriptions/${late.made.id}/bind`, { taskId })
  await trip.pass(hour, 20)
  expect(typesTold(late.client)).toEqual(['task.input_required', 'task.overdue'])
})
