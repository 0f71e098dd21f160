// What a client hears when its task is lost or its credentials ran out, once each, and how the next answer takes it back.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTrip, type Trip } from '../support/trip.ts'

let trip: Trip

beforeAll(async () => {
  trip = await startTrip()
})

afterAll(() => trip.stop())

test('a task that its agent forgets is orphaned once; its last body stays, and its state is told again when it is back', async () => {
  const scene = await trip.scene()
  const { taskId, client } = await trip.begin(scene, { states: ['working', 'completed'] })
  await trip.settle()
  const before = client.told().length
  scene.agent.lie('not_found')
  await trip.pass(40 * 60_000, 40)
  const heard = () =>
    client
      .told()
      .slice(before)
      .map(({ type }) => type)
  expect(heard()).toEqual(['task.orphaned'])
  expect(await trip.task(scene.id, taskId)).toMatchObject({
    state: 'working',
    stale: true,
    task: { id: taskId, status: { state: 'TASK_STATE_WORKING' } },
  })
  scene.agent.lie(undefined)
  await trip.pass(60 * 60_000, 20)
  expect(heard()).toEqual(['task.orphaned', 'task.working'])
})

test('credentials that the agent refuses are told of once to whose they are, and new ones are used at once', async () => {
  const scene = await trip.scene()
  const credentials = { type: 'bearer', token: 'user.old' }
  const { client, made } = await trip.begin(scene, { credentials: undefined })
  await trip.call('PUT', `/v1/subscriptions/${made.id}/credentials`, { credentials })
  scene.agent.lie('unauthorized')
  await trip.pass(60_000, 10)
  expect(client.told().map(({ type }) => type)).toEqual(['subscription.credentials_expired'])
  const looks = scene.agent.calls('GetTask')
  await trip.pass(60_000, 6)
  expect(scene.agent.calls('GetTask') - looks).toBeLessThan(3)
  scene.agent.lie(undefined)
  const renewed = { credentials: { type: 'bearer', token: '.new' } }
  await trip.call('PUT', `/v1/subscriptions/${made.id}/credentials`, renewed)
  await trip.pass(4000, 4)
  expect((await trip.task(scene.id, made.taskId ?? '')).trouble).toBeUndefined()
})

test('an agent that was away for long and then misses a task once has not orphaned it', async () => {
  const scene = await trip.scene()
  const { client } = await trip.begin(scene)
  await trip.settle()
  scene.agent.lie('hang_up')
  await trip.pass(30 * 60_000, 15)
  scene.agent.lie('not_found')
  const looks = scene.agent.calls('GetTask')
  const isAsked = () => scene.agent.calls('GetTask') > looks
  for (let minutes = 0; minutes < 20 && !isAsked(); minutes++) await trip.pass(60_000)
  expect(isAsked()).toBe(true)
  await trip.pass(8 * 60_000, 4)
  expect(client.told()).toEqual([])
})

test('an agent that was away for hours is asked again within twenty minutes of its return', async () => {
  const scene = await trip.scene()
  const { taskId, client } = await trip.begin(scene)
  await trip.settle()
  scene.agent.lie('hang_up')
  await scene.agent.setState(taskId, 'completed')
  await trip.pass(12 * 60 * 60_000, 72)
  expect(client.told()).toEqual([])
  scene.agent.lie(undefined)
  await trip.pass(20 * 60_000, 20)
  expect(client.told().map(({ type }) => type)).toEqual(['task.completed'])
})
