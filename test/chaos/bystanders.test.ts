// A push of a subscription that is not bound yet has a task looked at that others are on: what comes of it is not their news.
import { expect, test } from 'vitest'
import { limits } from '../../shared/limits.ts'
import { createRelay } from '../../shared/relay.ts'
import { watchOf } from '../../shared/store/keys.ts'
import { endSubscription } from '../../shared/store/subscriptions.ts'
import { getWatch } from '../../shared/store/watches.ts'
import { lookAt } from '../../shared/watching.ts'
import { status } from '../support/scripted.ts'
import { push, statusPush } from '../support/trip.ts'
import { day, hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

/** Looks can queue nothing now. */
let mute = false
waitsOfFile({
  faults: ({ who, operation }) =>
    mute && who === 'look' && operation.startsWith('SendMessage') ? 'throttle' : undefined,
})

const gone = ({ id }: { id: string }) => ({
  body: JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32001, message: 'no such task' } }),
})
const asks = status('input-required', { message: { messageId: 'q', parts: [] } })

/** A task that has ended, and whose client knows. */
async function beginEnded(asked?: Record<string, unknown>) {
  const begun = await world.begin({}, asked)
  begun.agent.put(begun.taskId, status('completed'))
  await trip.pass(10 * minute, 10)
  expect(typesTold(begun.client)).toEqual(['task.completed'])
  return begun
}

for (const [name, answer] of [
  ['does not know it any more', gone],
  ['refuses the credentials', () => ({ status: 401 })],
  ['gives nothing that can be read', () => ({ body: '<html>' })],
  ['is down', () => ({ status: 503 })],
] as const)
  test(`an ended task stays as it was told though an agent that is asked for it again ${name}`, async () => {
    const { agent, id, taskId, client } = await beginEnded({ credentials: { type: 'bearer', token: 'old' } })
    agent.instead(answer)
    const unbound = await trip.subscribe(id)
    const before = agent.calls(taskId).length
    await push(unbound.hook, statusPush(taskId, 'completed'))
    await trip.pass(2 * hour, 120)
    expect(agent.calls(taskId).length).toBeGreaterThan(before + 4)
    expect([typesTold(client), typesTold(unbound.client)]).toEqual([['task.completed'], []])
    const { state, trouble, stale } = await trip.task(id, taskId)
    expect([state, trouble, stale]).toEqual(['completed', undefined, false])
  })

test('an ended task is judged by its budget though it was not found when it was asked for again', async () => {
  const root = await world.begin({}, { endToEndSeconds: 6 * 3600 })
  const child = `${root.taskId}-c`
  root.agent.put(child, status('working'))
  await trip.subscribe(root.id, {
    taskId: child,
    parentTask: { agent: root.id, taskId: root.taskId },
  })
  await trip.pass(3000, 3)
  root.agent.put(root.taskId, status('completed'))
  await trip.pass(10 * minute, 10)
  root.agent.instead(asked => (asked.params.id === root.taskId ? gone(asked) : undefined))
  const unbound = await trip.subscribe(root.id)
  await push(unbound.hook, statusPush(root.taskId, 'completed'))
  await trip.pass(8 * hour, 60)
  expect(typesTold(root.client)).toEqual(['task.completed', 'task.overdue'])
})

test('a subscription that is bound to an ended task late hears of its end', async () => {
  const { agent, id, taskId, client } = await beginEnded()
  let looks = 0
  agent.instead(asked => (asked.method === 'GetTask' && looks++ < 2 ? gone(asked) : undefined))
  const unbound = await trip.subscribe(id)
  await push(unbound.hook, statusPush(taskId, 'completed'))
  await trip.pass(minute, 60)
  expect([typesTold(client), typesTold(unbound.client)]).toEqual([['task.completed'], ['task.completed']])
})

test('what an open task comes to is not told to a subscription that was pushed for it once', async () => {
  const { agent, id, taskId, client } = await world.begin()
  agent.instead(gone)
  await trip.pass(9 * minute, 18)
  expect(typesTold(client)).toEqual([])
  const unbound = await trip.subscribe(id, { hopTimeoutSeconds: 60 })
  await trip.pass(minute, 10)
  for (let n = 0; n < 6; n++) {
    await push(unbound.hook, { ...statusPush(taskId, 'working'), n })
    await trip.pass(minute, 10)
  }
  await trip.pass(hour, 12)
  expect([typesTold(client), typesTold(unbound.client)]).toEqual([['task.orphaned'], []])
})

test('nobody but whose they are is told that the credentials of one that is not on the task were refused', async () => {
  const { agent, id, taskId, client } = await world.begin()
  agent.put(taskId, asks)
  await trip.pass(10 * minute, 10)
  expect(typesTold(client)).toEqual(['task.input_required'])
  const unbound = await trip.subscribe(id, { credentials: { type: 'bearer', token: 'bad' } })
  agent.instead(() => ({ status: 401 }))
  await push(unbound.hook, statusPush(taskId, 'input-required'))
  await trip.pass(20_000, 20)
  await trip.call('DELETE', `/v1/subscriptions/${unbound.made.id}`)
  agent.instead(undefined)
  await trip.pass(6 * hour, 20)
  expect(typesTold(client)).toEqual(['task.input_required'])
  expect(typesTold(unbound.client)).toEqual(['subscription.credentials_expired'])
})

for (const known of [true, false])
  test(`a task that ${known ? 'has ended' : 'nobody is on'} is asked for again until the agent shows what it pushed`, async () => {
    const { agent, id } = await world.agentOf()
    const taskId = `task-of-${id}`
    agent.put(taskId, status('completed'))
    if (known) {
      await trip.subscribe(id, { taskId })
      await trip.pass(10 * minute, 10)
    }
    const unbound = await trip.subscribe(id)
    const shownAt = trip.local.now() + 25_000
    agent.instead(asked => (trip.local.now() < shownAt ? gone(asked) : undefined))
    await push(unbound.hook, statusPush(taskId, 'completed'))
    await trip.pass(minute, 60)
    expect(typesTold(unbound.client)).toEqual(['task.completed'])
  })

test('a task that everybody left is asked for again as soon as it was promised, though it was not found once', async () => {
  const { agent, id, taskId, made } = await world.begin()
  agent.put(taskId, asks)
  await trip.pass(10 * minute, 10)
  await trip.call('DELETE', `/v1/subscriptions/${made.id}`)
  await trip.pass(minute)
  const unbound = await trip.subscribe(id)
  let looks = 0
  agent.instead(asked => (asked.method === 'GetTask' && looks++ === 0 ? gone(asked) : undefined))
  await push(unbound.hook, statusPush(taskId, 'input-required'))
  await trip.pass(10_000, 20)
  expect([looks, typesTold(unbound.client)]).toEqual([2, ['task.input_required']])
})

/** A look at a task at this very moment, as the door makes it. */
async function lookNow(id: string, taskId: string) {
  const { local } = trip
  // Whoever looked just before has its window.
  local.advance(2000)
  const relay = createRelay('look', { ...local.env, AWS_ACCESS_KEY_ID: 'test' }, { now: local.now })
  const watch = await getWatch(relay.table, watchOf('demo', id, 'agent', taskId))
  if (watch === undefined) throw new Error('There is no watch')
  return { relay, watch, look: () => lookAt(relay, watch, { fired: true }) }
}

test('who joins a task just when its last subscription was found to be gone is told at once', async () => {
  const { agent, id, taskId } = await world.begin()
  agent.put(taskId, asks)
  await trip.pass(10 * minute, 10)
  const { relay, watch, look } = await lookNow(id, taskId)
  // A request that died had deleted it, and not taken it off the task yet.
  await endSubscription(relay.table, watch.subs[0] ?? '', 'deleted', trip.local.now())
  expect(await look()).toEqual({ kind: 'dropped', why: 'nobody_subscribed' })
  const { client } = await trip.subscribe(id, { taskId })
  await trip.pass(5000, 5)
  expect(typesTold(client)).toEqual(['task.input_required'])
})

test('who joins a task just when the subscriptions to its agent gave it up is told at once', async () => {
  const { agent, id } = await world.agentOf()
  const { hook } = await trip.subscribe(id, { scope: 'agent' })
  await push(hook, statusPush('ghost', 'input-required'))
  await trip.pass(5 * hour, 20)
  const { look } = await lookNow(id, 'ghost')
  trip.local.advance(2 * hour)
  expect(await look()).toEqual({ kind: 'dropped', why: 'not_found' })
  agent.put('ghost', asks)
  const { client } = await trip.subscribe(id, { taskId: 'ghost' })
  await trip.pass(5000, 5)
  expect(typesTold(client)).toEqual(['task.input_required'])
})

test('a question that could not be told before its only subscription was deleted is told to who comes later', async () => {
  const { agent, id, taskId, made, hook } = await world.begin()
  agent.put(taskId, asks)
  mute = true
  await push(hook, statusPush(taskId, 'input-required'))
  await trip.pass(2000, 2)
  await trip.call('DELETE', `/v1/subscriptions/${made.id}`)
  mute = false
  await trip.pass(2 * minute, 2)
  const unbound = await trip.subscribe(id)
  await push(unbound.hook, statusPush(taskId, 'input-required'))
  await trip.pass(10_000, 10)
  expect(typesTold(unbound.client)).toEqual(['task.input_required'])
})

test('one that finds no place at a task keeps nobody on it waiting, and stays unbound', async () => {
  const { agent, id, taskId, hook, client } = await world.begin()
  for (let place = 1; place < limits.subscriptionsOfTask; place++)
    await trip.call('POST', '/v1/subscriptions', { agent: id, taskId, client: `of-${place}` })
  await trip.pass(5000, 5)
  const unbound = await trip.subscribe(id)
  await push(unbound.hook, statusPush(taskId, 'working'))
  await trip.pass(2000, 2)
  agent.put(taskId, asks)
  await push(hook, statusPush(taskId, 'input-required'))
  await trip.pass(4000, 4)
  expect(typesTold(client)).toEqual(['task.input_required'])
  const stands = await trip.call<object>('GET', `/v1/subscriptions/${unbound.made.id}`)
  expect(stands).toMatchObject({ status: 'active' })
  expect(stands).not.toHaveProperty('taskId')
  await trip.pass(2 * day, 8)
  expect(await trip.call('GET', `/v1/subscriptions/${unbound.made.id}`)).toMatchObject({ status: 'expired' })
})
