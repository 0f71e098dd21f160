// Time budgets are heard of by whoever set them, once each, though no push and no agent says a word; and a task can be canceled.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRelay } from '../../shared/relay.ts'
import { watchOf } from '../../shared/store/keys.ts'
import { dueIn, holdTimer } from '../../shared/store/timers.ts'
import { getWatch } from '../../shared/store/watches.ts'
import { lookAt } from '../../shared/watching.ts'
import type { Client } from '../support/clients.ts'
import { startScripted, status } from '../support/scripted.ts'
import { type Scene, startTrip, type Trip } from '../support/trip.ts'

let trip: Trip
let scene: Scene

beforeAll(async () => {
  trip = await startTrip()
  scene = await trip.scene()
})

afterAll(() => trip.stop())

const minute = 60_000
const hour = 60 * minute

/** What a client was told, in order: the state, or the step and its budget. */
const toldTo = (client: Client): string[] =>
  client.told().map(({ type, data }) => {
    const budget = data.budget === undefined ? '' : ` ${data.budget}`
    return type.replace(/^task\./, '') + budget
  })

/** What a task's timeline says that no answer of the agent did. */
async function deedsOf({ id }: Scene, taskId: string): Promise<unknown[]> {
  const { timeline } = await trip.call<{ timeline: { steps: { to?: string }[] } }>(
    'GET',
    `/v1/tasks/${id}/${taskId}`,
  )
  return timeline.steps.filter(({ to }) => to === undefined)
}

test('a task that is quiet for too long is told of once, and once again after it went on', async () => {
  const { client, taskId } = await trip.begin(scene, { hopTimeoutSeconds: 600, states: ['failed'] })
  await trip.pass(9 * minute)
  expect(client.told()).toEqual([])
  await trip.pass(3 * hour, 6)
  expect(client.told()).toMatchObject([
    {
      type: 'task.overdue',
      data: { agent: scene.id, taskId, state: 'working', rev: 1, budget: 'hop', seconds: 600 },
    },
  ])
  const { entries } = await trip.inbox(client.name)
  expect(entries).toMatchObject([{ type: 'task.overdue', data: { budget: 'hop', seconds: 600 } }])
  expect(await trip.wake(client.told()[0]?.id ?? '')).toMatchObject({
    status: 'delivered',
    type: 'task.overdue',
  })
  await scene.agent.addArtifact(taskId, 'a')
  await trip.pass(1 * hour, 4)
  expect(toldTo(client)).toEqual(['overdue hop', 'overdue hop'])
  await scene.agent.setState(taskId, 'failed')
  await trip.pass(2 * hour, 2)
  expect(toldTo(client)).toEqual(['overdue hop', 'overdue hop', 'failed'])
})

test('an agent that gives no answer makes its task overdue all the same', async () => {
  const mute = await trip.scene()
  const { client } = await trip.begin(mute, { endToEndSeconds: 3600 })
  mute.agent.require('nobody.knows')
  await trip.pass(50 * minute, 2)
  expect(client.told()).toEqual([])
  await trip.pass(2 * hour, 8)
  expect(toldTo(client)).toEqual(['overdue end_to_end'])
})

describe('a budget from end to end', () => {
  /** A task that has ended, and one below it and one below that which have not. */
  async function tree(endToEndSeconds: number) {
    const root = await trip.begin(scene, { endToEndSeconds })
    const child = await trip.begin(scene, { parentTask: { agent: scene.id, taskId: root.taskId } })
    const grandchild = await trip.begin(scene, { parentTask: { agent: scene.id, taskId: child.taskId } })
    await scene.agent.setState(root.taskId, 'completed')
    await scene.agent.setState(child.taskId, 'completed')
    await trip.pass(4000, 2)
    return { root, grandchild }
  }

  test('is told to whoever waits for the root, once, while any task of its tree is open', async () => {
    const { root, grandchild } = await tree(3600)
    await trip.pass(50 * minute, 3)
    expect(toldTo(root.client)).toEqual(['completed'])
    await trip.pass(3 * hour, 12)
    expect(toldTo(root.client)).toEqual(['completed', 'overdue end_to_end'])
    const open = `${scene.id}/${grandchild.taskId}`
    expect(root.client.told()[1]).toMatchObject({ data: { taskId: root.taskId, state: 'completed', open } })
    expect(toldTo(grandchild.client)).toEqual([])
  })

  test('is over when the last task of its tree ends in time', async () => {
    const { root, grandchild } = await tree(3600)
    await trip.pass(30 * minute, 3)
    await scene.agent.setState(grandchild.taskId, 'completed')
    await trip.pass(3 * hour, 12)
    expect(toldTo(root.client)).toEqual(['completed'])
  })
})

test('a budget ends on time though the agent takes no calls', async () => {
  const scripted = await startScripted()
  const hand = { url: `${scripted.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true }
  await trip.call('PUT', '/v1/agents/away', hand)
  scripted.put('held', status('working'))
  const { client } = await trip.subscribe('away', { taskId: 'held', hopTimeoutSeconds: 1200 })
  await trip.pass(2000)
  scripted.instead(() => ({ status: 429, headers: { 'retry-after': '3600' } }))
  await trip.pass(18 * minute, 9)
  expect(toldTo(client)).toEqual([])
  await trip.pass(4 * minute, 4)
  expect(toldTo(client)).toEqual(['overdue hop'])
  await trip.pass(30 * minute, 6)
  expect(toldTo(client)).toEqual(['overdue hop'])
  await scripted.stop()
})

test('a timer that fired and is not held yet is set for the next budget, which the hold then does not put off', async () => {
  const scripted = await startScripted()
  const hand = { url: `${scripted.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true }
  await trip.call('PUT', '/v1/agents/late', hand)
  scripted.put('soon', status('working'))
  const { client } = await trip.subscribe('late', { taskId: 'soon', hopTimeoutSeconds: 1800 })
  await trip.pass(2000)
  scripted.instead(() => ({ status: 429, headers: { 'retry-after': '3600' } }))
  await trip.pass(4 * minute, 2)
  const { local } = trip
  const relay = createRelay('look', { ...local.env, AWS_ACCESS_KEY_ID: 'test' }, { now: local.now })
  const key = watchOf('demo', 'late', 'agent', 'soon')
  const fired = await getWatch(relay.table, key)
  const { due = 0, created = 0 } = fired ?? {}
  local.advance(due - local.now())
  const shards = Array.from({ length: relay.table.shards }, (_, shard) => shard)
  const pages = await Promise.all(shards.map(shard => dueIn(relay.table, shard, local.now(), 100)))
  const entry = pages.flat().find(({ timer }) => timer.of === 'watch' && timer.watch === key)
  // Tick has queued it; its message is quicker than its hold.
  if (fired === undefined || entry === undefined) throw new Error('The timer has not fired')
  expect(await lookAt(relay, fired, { fired: true })).toMatchObject({ kind: 'busy' })
  await holdTimer(relay.table, entry, local.now() + 6 * hour)
  const { due: next = 0 } = (await getWatch(relay.table, key)) ?? {}
  expect(next).toBeGreaterThan(local.now())
  expect(next).toBeLessThanOrEqual(created + 30 * minute)
  await trip.pass(created + 32 * minute - local.now(), 8)
  expect(toldTo(client)).toEqual(['overdue hop'])
  await scripted.stop()
})

test('a pause ends after a day though nobody asked for a budget', async () => {
  const { client, taskId } = await trip.begin(scene)
  await scene.agent.setState(taskId, 'input-required')
  await trip.settle()
  await trip.pass(23 * hour, 2)
  expect(toldTo(client)).toEqual(['input_required'])
  await trip.pass(4 * hour, 4)
  expect(toldTo(client)).toEqual(['input_required', 'overdue pause'])
})

test('what its owner no longer waits for is canceled at the agent, even if that is down at first', async () => {
  const slow = await trip.scene()
  const { client, taskId } = await trip.begin(slow, { hopTimeoutSeconds: 600, onOverdue: 'cancel' })
  slow.agent.require('nobody.knows')
  await trip.pass(20 * minute, 4)
  expect(client.told()).toMatchObject([{ type: 'task.overdue', data: { action: 'cancel' } }])
  slow.agent.require(undefined)
  await trip.pass(20 * minute, 10)
  expect(toldTo(client)).toEqual(['overdue hop', 'canceled'])
  expect(await trip.task(slow.id, taskId)).toMatchObject({ state: 'canceled' })
  expect(trip.stepsOf('task.cancel_sent', taskId).at(-1)).toMatchObject({
    by: 'policy',
    why: expect.stringMatching(/^hop of sub_/),
    state: 'canceled',
  })
  expect(await deedsOf(slow, taskId)).toMatchObject([
    { source: 'policy', rev: 1, note: expect.stringMatching(/^hop of sub_/) },
  ])
  const calls = slow.agent.calls('CancelTask')
  await trip.pass(hour, 2)
  expect(slow.agent.calls('CancelTask')).toBe(calls)
})

test('a client may cancel a task, whoever is on it is told, and no task that ended is canceled', async () => {
  const { client, taskId } = await trip.begin(scene)
  const path = `/v1/tasks/${scene.id}/${taskId}/cancel`
  const reason = 'not needed'
  expect(await trip.call('POST', path, { reason })).toMatchObject({ cancel: { by: 'client', why: reason } })
  await trip.settle()
  expect(toldTo(client)).toEqual(['canceled'])
  expect(await deedsOf(scene, taskId)).toMatchObject([
    { source: 'cancel', rev: 1, note: expect.stringContaining(`${reason} (`) },
  ])
  expect(await trip.call('POST', path, {})).toMatchObject({ state: 'canceled', cancel: null })
  const done = await trip.begin(scene)
  await scene.agent.setState(done.taskId, 'completed')
  await trip.settle()
  const late = `/v1/tasks/${scene.id}/${done.taskId}/cancel`
  expect(await trip.refused('POST', late, {})).toMatchObject({ code: 'conflict' })
  const unknown = `/v1/tasks/${scene.id}/none/cancel`
  expect(await trip.refused('POST', unknown, {})).toMatchObject({ status: 404 })
})

test('a subscription ends with a last look, which tells what no push did, and says that it ended', async () => {
  const whom = { ttlSeconds: 1200 }
  const last = await trip.scene()
  const [open, over] = [await trip.begin(last, whom), await trip.begin(last, whom)]
  // The floor has just been passed when the agent goes on without a word.
  await trip.pass(16 * minute, 4)
  await last.agent.setState(over.taskId, 'completed', { push: false })
  await trip.pass(6 * minute, 2)
  expect(open.client.told()).toMatchObject([{ type: 'subscription.expired', data: { state: 'working' } }])
  expect(over.client.states()).toEqual(['completed'])
  expect(await trip.call('GET', `/v1/subscriptions/${open.made.id}`)).toMatchObject({ status: 'expired' })
  const looks = last.agent.calls('GetTask')
  await last.agent.setState(open.taskId, 'completed')
  await trip.pass(24 * hour, 2)
  expect(open.client.told()).toHaveLength(1)
  expect(last.agent.calls('GetTask')).toBe(looks)
})

/** A subscription whose target outlives it. */
async function beginBriefly(): Promise<{ client: Client; path: string }> {
  const client = trip.clients.make()
  const target = await trip.call<{ secret: string }>('PUT', `/v1/targets/${client.name}`, { url: client.url })
  client.secret = target.secret
  const { made } = await trip.begin(scene, { targets: [client.name], ttlSeconds: 1200 })
  return { client, path: `/v1/subscriptions/${made.id}` }
}

test('what a subscription is told at its end is tried again, but not after it is deleted', async () => {
  const [kept, deleted] = [await beginBriefly(), await beginBriefly()]
  const both = [kept.client, deleted.client]
  for (const client of both) client.answer({ status: 503 })
  await trip.pass(22 * minute, 4)
  const tries = both.map(client => client.told().length)
  expect(Math.min(...tries)).toBeGreaterThan(0)
  await trip.call('DELETE', deleted.path)
  for (const client of both) client.answer({})
  await trip.pass(hour, 4)
  expect(both.map((client, at) => client.told().length - (tries[at] ?? 0))).toEqual([1, 0])
})
