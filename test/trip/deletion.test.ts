// A deleted subscription is silent from then on, whatever was under way, and the agent is told to forget it.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Begun, push, type Scene, startTrip, statusPush, type Trip } from '../support/trip.ts'

let trip: Trip
let scene: Scene

beforeAll(async () => {
  trip = await startTrip()
  scene = await trip.scene()
})

afterAll(() => trip.stop())

const remove = ({ made }: Begun): Promise<unknown> => trip.call('DELETE', `/v1/subscriptions/${made.id}`)

/** The same with a target that outlives the subscription. */
async function beginAtTarget(): Promise<Begun> {
  const client = trip.clients.make()
  const { secret } = await trip.call<{ secret: string }>('PUT', `/v1/targets/${client.name}`, {
    url: client.url,
  })
  client.secret = secret
  return { ...(await trip.begin(scene, { targets: [client.name] })), client }
}

async function configsOf(taskId: string): Promise<string[]> {
  const { client } = scene.caller
  const { configs } = await client.listTaskPushNotificationConfig({
    tenant: '',
    taskId,
    pageSize: 0,
    pageToken: '',
  })
  return configs.map(({ id }) => id)
}

test('the push config is gone at the agent, which pushes no more', async () => {
  const begun = await trip.begin(scene)
  const { taskId, made, client } = begun
  expect(await configsOf(taskId)).toEqual([made.id])
  expect(await remove(begun)).toMatchObject({ status: 'deleted', removedAtAgent: true })
  expect(await configsOf(taskId)).toEqual([])
  await scene.agent.setState(taskId, 'completed')
  await trip.pass(3_600_000, 2)
  expect(trip.stepsOf('notice.stored', taskId)).toEqual([])
  expect(client.told()).toEqual([])
  expect(await trip.refused('GET', `/v1/subscriptions/${made.id}`)).toMatchObject({ status: 404 })
})

test('case 149: a push that was accepted but not looked at yet wakes nobody', async () => {
  const begun = await trip.begin(scene)
  const receiving = trip.hold(({ who, operation }) => who === 'look' && operation === 'GetItem')
  await scene.agent.setState(begun.taskId, 'completed')
  await receiving.held
  await remove(begun)
  receiving.release()
  await expectSilence(begun)
  expect((await trip.inbox(begun.client.name)).entries).toEqual([])
})

test('a wake that was queued but not sent yet is not sent', async () => {
  const begun = await beginAtTarget()
  const delivering = trip.hold(({ who }) => who === 'deliver')
  await scene.agent.setState(begun.taskId, 'completed')
  await delivering.held
  expect(trip.stepsOf('wake.queued', begun.taskId)).toHaveLength(1)
  await remove(begun)
  delivering.release()
  await expectSilence(begun)
})

test('a wake whose target was read already is not sent: whether the subscription lives is asked last', async () => {
  const begun = await beginAtTarget()
  const reading = trip.hold(
    ({ who, operation, body }) =>
      who === 'deliver' && operation === 'GetItem' && JSON.stringify(body.Key).includes('"G#'),
  )
  await scene.agent.setState(begun.taskId, 'completed')
  await reading.held
  await remove(begun)
  reading.release()
  await expectSilence(begun)
})

test('a wake that waits to be retried is not sent again', async () => {
  const begun = await beginAtTarget()
  begun.client.answer({ status: 500 })
  await scene.agent.setState(begun.taskId, 'completed')
  await trip.settle()
  await remove(begun)
  begun.client.answer({})
  await trip.pass(3_600_000, 4)
  expect(begun.client.told()).toHaveLength(1)
})

test('a push to the hook within its last half minute is answered 2xx and causes nothing', async () => {
  const begun = await trip.begin(scene)
  const body = statusPush(begun.taskId, 'working')
  expect(await push(begun.hook, body)).toBe(202)
  await trip.pass(12_000)
  await remove(begun)
  await scene.agent.setState(begun.taskId, 'completed', { push: false })
  expect(await push(begun.hook, statusPush(begun.taskId, 'completed'))).toBe(202)
  await expectSilence(begun)
})

test('the others on the same task are still woken', async () => {
  const begun = await trip.begin(scene)
  const other = await trip.subscribe(scene.id, { taskId: begun.taskId })
  await remove(begun)
  await trip.pass(2000)
  await scene.agent.setState(begun.taskId, 'completed')
  await trip.pass(2000)
  expect(other.client.states()).toEqual(['completed'])
  expect(begun.client.told()).toEqual([])
})

async function expectSilence({ client }: Begun): Promise<void> {
  await trip.pass(240_000, 4)
  expect(client.told()).toEqual([])
  expect(await trip.local.messages('look')).toEqual([])
  expect(await trip.local.messages('deliver')).toEqual([])
}
