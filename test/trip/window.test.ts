// Many pushes, few looks: at most one GetTask in a window, and the last state is always told, even if the agent shows it late.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { DemoAgent } from '../../infra/local/agent.ts'
import { push, startTrip, statusPush, type Trip } from '../support/trip.ts'

let trip: Trip

beforeAll(async () => {
  trip = await startTrip()
})

afterAll(() => trip.stop())

/** What is promised: one look in each second. */
const windowMs = 1000

/** Counts an agent's looks from now on, against the windows that have begun since. */
function countLooks(agent: DemoAgent): () => { looks: number; windows: number } {
  const [begun, before] = [trip.local.now(), agent.calls('GetTask')]
  return () => ({
    looks: agent.calls('GetTask') - before,
    windows: Math.floor((trip.local.now() - begun) / windowMs) + 1,
  })
}

test('of ten pushes at once the last state is told, with at most one look in each window', async () => {
  const scene = await trip.scene()
  const { client, hook, taskId } = await trip.begin(scene)
  await scene.agent.setState(taskId, 'completed', { push: false })
  const count = countLooks(scene.agent)
  for (let step = 1; step < 10; step++) await push(hook, progressPush(taskId, step))
  await push(hook, statusPush(taskId, 'completed'))
  await trip.settle()
  const { looks, windows } = count()
  expect(looks).toBeLessThanOrEqual(windows)
  await trip.pass(4000, 4)
  expect(count().looks).toBeLessThanOrEqual(looks + 2)
  expect(trip.stepsOf('notice.stored', taskId)).toHaveLength(10)
  expect(client.states()).toEqual(['completed'])
  expect(await trip.task(scene.id, taskId)).toMatchObject({ state: 'completed', stale: false })
})

test('a burst of pushes that tell of progress costs one look', async () => {
  const scene = await trip.scene()
  const { hook, taskId } = await trip.begin(scene)
  const before = scene.agent.calls('GetTask')
  await Promise.all([1, 2, 3, 4].map(step => push(hook, progressPush(taskId, step))))
  await trip.pass(8000, 8)
  expect(scene.agent.calls('GetTask') - before).toBe(1)
})

test('a stream of pushes costs at most one look in each window, and its last state is told', async () => {
  const scene = await trip.scene()
  const { client, hook, taskId } = await trip.begin(scene)
  const count = countLooks(scene.agent)
  for (let step = 0; step < 18; step++) {
    await push(hook, progressPush(taskId, step))
    await trip.settle()
    if (step % 3 === 2) trip.local.advance(windowMs)
  }
  const { looks, windows } = count()
  // Each look waits two windows for its burst, but a stream without a gap puts off none for longer.
  expect(looks).toBeGreaterThan(1)
  expect(looks).toBeLessThanOrEqual(windows)
  await scene.agent.setState(taskId, 'input-required')
  await trip.pass(4000, 4)
  expect(client.states()).toEqual(['input-required'])
})

/** A push that tells of progress: each a body of its own. */
const progressPush = (taskId: string, step: number) => ({
  statusUpdate: { taskId, status: { state: 'TASK_STATE_WORKING' }, metadata: { step } },
})

test('an end that the agent’s replica does not show yet is told within the retries', async () => {
  const scene = await trip.scene()
  const { id, agent } = scene
  const { client, taskId } = await trip.begin(scene)
  agent.lie('lagging')
  const looks = agent.calls('GetTask')
  await agent.setState(taskId, 'completed')
  await trip.pass(8000, 8)
  expect(agent.calls('GetTask') - looks).toBeGreaterThan(1)
  expect(client.told()).toEqual([])
  expect(await trip.task(id, taskId)).toMatchObject({ state: 'working' })
  agent.lie(undefined)
  await trip.pass(20_000, 10)
  expect(client.states()).toEqual(['completed'])
})

test('a push that the agent contradicts to the end costs a stated number of looks, and the task stays as it is', async () => {
  const scene = await trip.scene()
  const { id, agent } = scene
  const { client, hook, taskId } = await trip.begin(scene)
  const looks = agent.calls('GetTask')
  await push(hook, statusPush(taskId, 'failed'))
  await trip.pass(36_000, 18)
  expect(agent.calls('GetTask') - looks).toBeLessThanOrEqual(6)
  expect(await trip.local.messages('look')).toEqual([])
  expect(client.told()).toEqual([])
  expect(await trip.task(id, taskId)).toMatchObject({ state: 'working', stale: false })
})

test('an older replica’s answer takes nothing back', async () => {
  const scene = await trip.scene()
  const { id, agent } = scene
  const { client, hook, taskId } = await trip.begin(scene, {
    states: ['working', 'input-required', 'completed'],
  })
  await agent.setState(taskId, 'input-required')
  await trip.pass(2000, 2)
  agent.lie('lagging')
  await push(hook, statusPush(taskId, 'working'))
  await trip.pass(2000, 2)
  expect(await trip.task(id, taskId)).toMatchObject({ state: 'input-required' })
  agent.lie(undefined)
  await push(hook, {
    statusUpdate: { taskId, status: { state: 'TASK_STATE_WORKING' }, metadata: { again: 1 } },
  })
  await trip.pass(2000, 2)
  expect(client.states()).toEqual(['working', 'input-required'])
})
