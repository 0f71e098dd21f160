// From the look to the webhook: retries keep their id and sign anew, a target's wishes and its end are heard, and a wake comes once.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SeenWake } from '../support/routes.ts'
import { type Scene, startTrip, type Trip } from '../support/trip.ts'

let trip: Trip
let scene: Scene
/** Queue messages that the ground may not delete, so that the queue brings them again. */
let keeps = false
/** Whether deliver finds its table throttled. */
let throttled = false

beforeAll(async () => {
  trip = await startTrip({
    faults: ({ who, operation }) =>
      (keeps && operation === 'DeleteMessageBatch') ||
      (throttled && who === 'deliver' && operation === 'GetItem')
        ? 'throttle'
        : undefined,
  })
  scene = await trip.scene()
})

afterAll(() => trip.stop())

const wakesOf = async (taskId: string): Promise<SeenWake[]> =>
  (await trip.call<{ wakes: SeenWake[] }>('GET', `/v1/wakes?agent=${scene.id}&task=${taskId}`)).wakes

test('a wake that met a 500 comes again, under the same id, with a fresh time and signature', async () => {
  const { client, taskId } = await trip.begin(scene)
  client.answer({ status: 500, body: `broken ${'x'.repeat(3000)}` })
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  client.answer({ status: 204 })
  await trip.pass(4000)
  expect(client.told()).toHaveLength(1)
  await trip.pass(2000)
  const [first, second, ...more] = client.told()
  expect(more).toEqual([])
  expect(second).toMatchObject({ id: first?.id, type: first?.type, data: first?.data })
  expect(Number(second?.timestamp)).toBeGreaterThanOrEqual(Number(first?.timestamp) + 5)
  expect(second?.signature).not.toBe(first?.signature)
  const wake = await trip.wake(first?.id ?? '')
  expect(wake).toMatchObject({ status: 'delivered', state: 'completed', tries: 2 })
  expect(wake.attempts).toMatchObject([
    { verdict: 'retry', status: 500, answer: `broken ${'x'.repeat(1024 - 7)}` },
    { verdict: 'delivered', status: 204 },
  ])
})

test('a target’s Retry-After is honoured where it is longer than the schedule', async () => {
  const { client, taskId } = await trip.begin(scene)
  client.answer({ status: 503, headers: { 'retry-after': '120' } })
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  client.answer({})
  await trip.pass(118_000, 2)
  expect(client.told()).toHaveLength(1)
  await trip.pass(16_000)
  expect(client.told()).toHaveLength(2)
  expect(await wakesOf(taskId)).toMatchObject([{ status: 'delivered', tries: 2 }])
})

test('410 disables that generation of a target; a new address makes it work again', async () => {
  const [gone, there] = [trip.clients.make(), trip.clients.make()]
  const target = await trip.call<{ secret: string }>('PUT', '/v1/targets/phone', { url: gone.url })
  gone.secret = target.secret
  there.secret = target.secret
  const { taskId } = await trip.begin(scene, { targets: ['phone'] })
  gone.answer({ status: 410, body: 'moved away' })
  await scene.agent.setState(taskId, 'input-required')
  await trip.settle()
  expect(await trip.call('GET', '/v1/targets/phone')).toMatchObject({ status: 'disabled', generation: 1 })
  await trip.pass(2000)
  await scene.agent.setState(taskId, 'auth-required')
  await trip.pass(3_600_000)
  expect(gone.states()).toEqual(['input-required'])
  const again = await trip.call('PUT', '/v1/targets/phone', { url: there.url })
  expect(again).toMatchObject({ status: 'active', generation: 2 })
  trip.local.advance(2000)
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  expect(gone.told()).toHaveLength(1)
  expect(there.states()).toEqual(['completed'])
  expect((await wakesOf(taskId)).map(({ status }) => status).toSorted()).toEqual([
    'delivered',
    'failed',
    'failed',
  ])
})

test('what comes for a disabled target has failed, as what it refused has, and is sent once it is enabled', async () => {
  const client = trip.clients.make()
  const { secret } = await trip.call<{ secret: string }>('PUT', '/v1/targets/pager', { url: client.url })
  client.secret = secret
  client.answer({ status: 410 })
  const tasks: string[] = []
  for (let task = 0; task < 3; task++) {
    const { taskId } = await trip.begin(scene, { targets: ['pager'] })
    await scene.agent.setState(taskId, 'completed')
    await trip.settle()
    tasks.push(taskId)
  }
  const left = await trip.begin(scene, { targets: ['pager'] })
  await scene.agent.setState(left.taskId, 'completed')
  await trip.call('DELETE', `/v1/subscriptions/${left.made.id}`)
  await trip.settle()
  expect(client.told()).toHaveLength(1)
  for (const taskId of tasks) expect(await wakesOf(taskId)).toMatchObject([{ status: 'failed' }])
  for (const { status } of await wakesOf(left.taskId)) expect(status).toBe('dropped')
  client.answer({})
  await trip.call('POST', '/v1/targets/pager/enable')
  expect(await trip.call('POST', '/v1/redrive', { target: 'pager' })).toMatchObject({ wakes: { count: 3 } })
  await trip.pass(2000)
  expect(
    client
      .told()
      .slice(1)
      .map(({ data }) => data.taskId)
      .toSorted(),
  ).toEqual(tasks.toSorted())
})

test('a 410 from an address that was replaced meanwhile leaves the new one in use', async () => {
  const [gone, there] = [trip.clients.make(), trip.clients.make()]
  const { secret } = await trip.call<{ secret: string }>('PUT', '/v1/targets/tablet', { url: gone.url })
  there.secret = secret
  const { taskId } = await trip.begin(scene, { targets: ['tablet'] })
  gone.answer({ status: 410 })
  const disabling = trip.hold(
    ({ who, operation, body }) =>
      who === 'deliver' && operation === 'UpdateItem' && JSON.stringify(body).includes('disabled'),
  )
  await scene.agent.setState(taskId, 'input-required')
  await disabling.held
  await trip.call('PUT', '/v1/targets/tablet', { url: there.url })
  disabling.release()
  await trip.pass(2000)
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  expect(await trip.call('GET', '/v1/targets/tablet')).toMatchObject({ status: 'active', generation: 2 })
  expect(there.states()).toEqual(['completed'])
})

test('a 410 that comes once its address was replaced is nobody’s news, and the wake goes to the new one', async () => {
  const [gone, there, alarm] = [trip.clients.make(), trip.clients.make(), trip.clients.make()]
  const put = (target: string, { url }: { url: string }) =>
    trip.call<{ secret: string }>('PUT', `/v1/targets/${target}`, { url })
  alarm.secret = (await put('alarm', alarm)).secret
  await trip.call('PUT', '/v1/operations', { targets: ['alarm'] })
  gone.secret = (await put('watch', gone)).secret
  there.secret = gone.secret
  const { taskId } = await trip.begin(scene, { targets: ['watch'] })
  gone.answer({ status: 410 })
  const answered = trip.hold(
    ({ who, operation }) => who === 'deliver' && operation === 'GetItem' && gone.told().length > 0,
  )
  await scene.agent.setState(taskId, 'completed')
  await answered.held
  await put('watch', there)
  answered.release()
  await trip.pass(4000, 4)
  expect(await trip.call('GET', '/v1/targets/watch')).toMatchObject({ status: 'active', generation: 2 })
  expect(there.told().map(({ id }) => id)).toEqual(gone.told().map(({ id }) => id))
  expect(await wakesOf(taskId)).toMatchObject([
    { status: 'delivered', tries: 1, attempts: [{ status: 410 }, { status: 200 }] },
  ])
  expect(alarm.told()).toEqual([])
  await trip.call('DELETE', '/v1/operations')
})

test('a 410 from an address of a target that was deleted meanwhile leaves the one made again under its name in use', async () => {
  const [gone, there] = [trip.clients.make(), trip.clients.make()]
  await trip.call('PUT', '/v1/targets/phoenix', { url: gone.url })
  const { taskId } = await trip.begin(scene, { targets: ['phoenix'] })
  gone.answer({ status: 410 })
  const disabling = trip.hold(
    ({ who, operation, body }) =>
      who === 'deliver' && operation === 'UpdateItem' && JSON.stringify(body).includes('disabled'),
  )
  await scene.agent.setState(taskId, 'input-required')
  await disabling.held
  await trip.call('DELETE', '/v1/targets/phoenix')
  there.secret = (
    await trip.call<{ secret: string }>('PUT', '/v1/targets/phoenix', { url: there.url })
  ).secret
  disabling.release()
  await trip.pass(2000)
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  expect(await trip.call('GET', '/v1/targets/phoenix')).toMatchObject({ status: 'active' })
  expect(there.states()).toEqual(['completed'])
})

test('a slot that is taken for a target that was deleted meanwhile stops none that is made again under its name', async () => {
  const [old, there] = [trip.clients.make(), trip.clients.make()]
  for (const version of [1, 2, 3])
    await trip.call('PUT', '/v1/targets/slotted', { url: `${old.url}?v=${version}` })
  const { taskId } = await trip.begin(scene, { targets: ['slotted'] })
  const taking = trip.hold(
    ({ who, operation, body }) =>
      who === 'deliver' &&
      operation === 'UpdateItem' &&
      JSON.stringify(body).includes('attribute_not_exists(#pausedUntil)'),
  )
  await scene.agent.setState(taskId, 'input-required')
  await taking.held
  await trip.call('DELETE', '/v1/targets/slotted')
  there.secret = (
    await trip.call<{ secret: string }>('PUT', '/v1/targets/slotted', { url: there.url })
  ).secret
  taking.release()
  await trip.pass(2000)
  await scene.agent.setState(taskId, 'completed')
  await trip.pass(60_000, 6)
  expect(there.states()).toContain('completed')
})

test('a retry more than a quarter of an hour away waits in the table and goes out by tick', async () => {
  const { client, taskId } = await trip.begin(scene)
  client.answer({ status: 500 })
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  await trip.pass(6000)
  await trip.pass(331_000)
  expect(client.told()).toHaveLength(3)
  const [wake] = await wakesOf(taskId)
  expect(wake).toMatchObject({ status: 'pending', tries: 3 })
  expect(
    (await trip.local.messages('deliver')).filter(({ body }) =>
      body.includes(client.told()[0]?.id.slice(27) ?? ''),
    ),
  ).toEqual([])
  client.answer({})
  await trip.pass(29 * 60_000)
  expect(client.told()).toHaveLength(3)
  await trip.pass(5 * 60_000)
  expect(client.told()).toHaveLength(4)
  expect(new Set(client.told().map(({ id }) => id)).size).toBe(1)
  expect(await wakesOf(taskId)).toMatchObject([{ status: 'delivered', tries: 4 }])
})

test('a newer revision supersedes an older one that still waits to be retried', async () => {
  const { client, taskId } = await trip.begin(scene)
  client.answer({ status: 500 })
  await scene.agent.setState(taskId, 'input-required')
  await trip.settle()
  client.answer({})
  trip.local.advance(2000)
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  await trip.pass(10_000, 2)
  expect(client.states()).toEqual(['input-required', 'completed'])
  const wakes = await wakesOf(taskId)
  expect(wakes).toHaveLength(2)
  expect(wakes).toContainEqual(expect.objectContaining({ state: 'input-required', status: 'superseded' }))
  expect(wakes).toContainEqual(expect.objectContaining({ state: 'completed', status: 'delivered' }))
})

test('case 91: queue messages that are brought again cost no wake and no inbox entry', async () => {
  const { client, taskId } = await trip.begin(scene)
  keeps = true
  await scene.agent.setState(taskId, 'completed')
  await trip.until(() => client.told().length > 0)
  await trip.settle()
  const lying = [...(await trip.local.messages('look')), ...(await trip.local.messages('deliver'))]
  expect(lying.map(({ place }) => place)).toEqual(['inflight', 'inflight'])
  await trip.pass(181_000)
  keeps = false
  await trip.pass(181_000, 2)
  expect([...(await trip.local.messages('look')), ...(await trip.local.messages('deliver'))]).toEqual([])
  expect(client.states()).toEqual(['completed'])
  expect((await trip.inbox(client.name)).entries).toHaveLength(1)
})

test('case 93: a message that comes hours late finds the world as it is: it wakes whoever was not told, and nobody who left', async () => {
  // A target of its own outlives the subscription.
  const kept = trip.clients.make()
  await trip.call('PUT', '/v1/targets/kept', { url: kept.url })
  const [gone, there] = [await trip.begin(scene, { targets: ['kept'] }), await trip.begin(scene)]
  throttled = true
  for (const { taskId } of [gone, there]) await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  expect(await trip.local.messages('deliver')).toHaveLength(2)
  await trip.call('DELETE', `/v1/subscriptions/${gone.made.id}`)
  trip.local.advance(6 * 3_600_000)
  throttled = false
  await trip.settle()
  expect(there.client.states()).toEqual(['completed'])
  expect(kept.last()).toBeUndefined()
  expect(await trip.local.messages('deliver')).toEqual([])
})

test('a wake that no attempt delivers in three days has failed, and stands in the list of failures', async () => {
  const { client, taskId } = await trip.begin(scene)
  client.answer({ status: 500 })
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  for (const hours of [0.1, 0.2, 1, 3, 6, 11, 16, 22, 27]) await trip.pass(hours * 3_600_000)
  expect(client.told()).toHaveLength(10)
  const { wakes } = await trip.call<{ wakes: SeenWake[] }>('GET', '/v1/wakes?state=failed')
  expect(wakes).toContainEqual(
    expect.objectContaining({ id: client.told()[0]?.id, status: 'failed', tries: 10 }),
  )
})
