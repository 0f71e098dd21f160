// Whoever comes late or in between is told as well: subscribers who join while a look is under way, and pushes of tasks that are known already.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTrip, type Trip } from '../support/trip.ts'

let trip: Trip

beforeAll(async () => {
  trip = await startTrip()
})

afterAll(() => trip.stop())

const second = 1000

/** Holds the look that saw the task's end, before it saves that. */
const holdTheEnd = () => trip.hold(({ who, operation }) => who === 'look' && operation === 'PutItem')

test('who subscribes between the look at the end and its saving is told of the end', async () => {
  const scene = await trip.scene()
  const first = await trip.begin(scene)
  const { held, release } = holdTheEnd()
  const released = scene.agent.release(first.taskId)
  await held
  const late = await trip.subscribe(scene.id, { taskId: first.taskId })
  release()
  await released
  await trip.settle()
  await trip.pass(10 * second, 5)
  for (const { client } of [first, late]) expect(client.states()).toEqual(['completed'])
})

test('who subscribes to a task that ended is told at once, and no timer stays', async () => {
  const scene = await trip.scene()
  const first = await trip.begin(scene)
  await scene.agent.release(first.taskId)
  await trip.settle()
  const late = await trip.subscribe(scene.id, { taskId: first.taskId })
  await trip.settle()
  await trip.pass(4 * second, 2)
  expect(late.client.states()).toEqual(['completed'])
  const watches = (await trip.local.items()).filter(({ taskId, digest }) => taskId === first.taskId && digest)
  expect(watches.map(({ due }) => due)).toEqual([undefined])
})

test('an unbound subscription is bound and told by its push though another look knows the end already', async () => {
  const scene = await trip.scene()
  const first = await trip.begin(scene)
  const other = await trip.subscribe(scene.id)
  await scene.agent.release(first.taskId)
  await trip.settle()
  const push = { statusUpdate: { taskId: first.taskId, status: { state: 'TASK_STATE_COMPLETED' } } }
  const answer = await fetch(other.hook.url, {
    method: 'POST',
    headers: { 'content-type': 'application/a2a+json', 'x-a2a-notification-token': other.hook.token ?? '' },
    body: JSON.stringify(push),
  })
  expect(answer.status).toBe(202)
  await trip.settle()
  await trip.pass(6 * second, 3)
  expect(other.client.states()).toEqual(['completed'])
  expect(first.client.states()).toEqual(['completed'])
})
