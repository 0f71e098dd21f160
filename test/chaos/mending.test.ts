// Targets that their tenant brings back, slows down or makes again: what comes of their wakes.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Call } from '../../infra/local/wire.ts'
import { aimsOf } from '../support/aims.ts'
import { type Scene, startTrip, type Trip } from '../support/trip.ts'

let fails: (call: Call) => boolean = () => false
let trip: Trip
let scene: Scene
let aims: ReturnType<typeof aimsOf>

beforeAll(async () => {
  trip = await startTrip({ faults: call => (fails(call) ? 'throttle' : undefined) })
  scene = await trip.scene()
  aims = aimsOf(trip, scene)
})

afterAll(() => trip.stop())

test('a target that takes one a second gets no two at once', async () => {
  const client = await aims.makeTarget('paced', { ratePerSecond: 1 })
  const tasks = [
    await trip.begin(scene, { targets: ['paced'] }),
    await trip.begin(scene, { targets: ['paced'] }),
  ]
  for (const { taskId } of tasks) await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  expect(client.told()).toHaveLength(1)
  await trip.pass(8000, 2)
  expect(client.told()).toHaveLength(2)
})

test('a target that was disabled is called again once it is enabled, and not before', async () => {
  const client = await aims.makeTarget('gone')
  client.answer({ status: 410 })
  await aims.tell('gone')
  client.answer({})
  expect(await aims.see('gone')).toMatchObject({
    ...{ status: 'disabled', reason: 'The target answered 410 Gone.', disabledAt: expect.any(Number) },
  })
  await aims.tell('gone')
  expect(client.told()).toHaveLength(1)
  const enabled = await trip.call('POST', '/v1/targets/gone/enable')
  expect(enabled).toMatchObject({ status: 'active', generation: 2 })
  expect(enabled).not.toHaveProperty('reason')
  expect(await trip.call('POST', '/v1/targets/gone/enable')).toEqual(enabled)
  await aims.tell('gone')
  expect(client.told()).toHaveLength(2)
})

test('a paused target says since when, why and until when; enabled, it is probed at once', async () => {
  const client = await aims.makeTarget('busy')
  client.answer({ status: 503, headers: { 'retry-after': '900' } })
  await aims.tell('busy')
  client.answer({})
  const paused = await aims.see('busy')
  expect(paused).toMatchObject({
    ...{
      status: 'paused',
      reason: 'The target answered 503.',
      failures: 1,
      failingSince: expect.any(Number),
    },
  })
  expect(paused.nextProbeAt).toBeGreaterThan(trip.local.now() + 800_000)
  await aims.tell('busy')
  expect(client.told()).toHaveLength(1)
  expect(await trip.call('POST', '/v1/targets/busy/enable')).toMatchObject({
    status: 'paused',
    generation: 1,
  })
  await trip.settle()
  // The one that waited probes; the one that had failed before is another client's, and need not wait for its time.
  const ids = client.told().map(({ id }) => id)
  expect(ids).toHaveLength(3)
  expect(new Set(ids).size).toBe(2)
  expect(ids.slice(1)).toContain(ids[0])
  expect(await aims.see('busy')).toMatchObject({ status: 'active' })
})

/** A target that asked to be left alone for an hour, and its waiting wakes. */
async function waitedFor(target: string): Promise<void> {
  const client = await aims.makeTarget(target)
  client.answer({ status: 503, headers: { 'retry-after': '3600' } })
  for (let wakes = 0; wakes < 3; wakes++) await aims.tell(target)
  expect(client.told()).toHaveLength(1)
}

test('wakes that wait for a paused target go out at once when its address is replaced', async () => {
  await waitedFor('moved')
  const there = trip.clients.make()
  there.secret = (await aims.put('moved', there)).secret
  await trip.pass(2000)
  expect(new Set(there.told().map(({ id }) => id)).size).toBe(3)
  expect(await aims.see('moved')).toMatchObject({ status: 'active', generation: 2 })
})

test.each(['put again', 'enabled'])('if that died half way they go out when it is %s', async how => {
  const target = `half-${how.slice(0, 3)}`
  await waitedFor(target)
  const there = trip.clients.make()
  fails = ({ who, operation }) => who === 'api' && operation.startsWith('SendMessage')
  expect(await trip.refused('PUT', `/v1/targets/${target}`, { url: there.url })).toMatchObject({
    status: 503,
  })
  fails = () => false
  await trip.pass(2000)
  expect(await aims.see(target)).toMatchObject({ status: 'active', generation: 2 })
  there.secret = (
    await trip.call<{ secret: string }>('POST', `/v1/targets/${target}/rotate`, { secretGeneration: 1 })
  ).secret
  if (how === 'put again') await aims.put(target, there)
  else await trip.call('POST', `/v1/targets/${target}/enable`)
  await trip.pass(2000)
  expect(new Set(there.told().map(({ id }) => id)).size).toBe(3)
})

test('a target that is made again after it was deleted inherits nothing', async () => {
  const before = await aims.makeTarget('phoenix')
  before.answer({ status: 429, headers: { 'retry-after': '3600' } })
  await aims.put('phoenix', trip.clients.make())
  await aims.put('phoenix', before)
  await aims.tell('phoenix')
  expect(await aims.see('phoenix')).toMatchObject({ status: 'paused', generation: 3 })
  await trip.call('DELETE', '/v1/targets/phoenix')
  const after = await aims.makeTarget('phoenix')
  expect(await aims.see('phoenix')).toMatchObject({ status: 'active' })
  expect(await aims.see('phoenix')).not.toHaveProperty('failures')
  await aims.tell('phoenix')
  await trip.pass(120_000, 2)
  expect(before.told()).toHaveLength(1)
  expect(after.told().length).toBeGreaterThanOrEqual(1)
})

test('a 410 that comes late concerns no target that was made again under the name, though the one before was paused', async () => {
  const first = await aims.makeTarget('twice')
  first.answer({ status: 503, headers: { 'retry-after': '600' } })
  await aims.tell('twice')
  expect(await aims.see('twice')).toMatchObject({ status: 'paused' })
  const makeAnew = async () => {
    const client = trip.clients.make()
    await trip.call('DELETE', '/v1/targets/twice')
    const made = await trip.call<{ secret: string; generation: number }>('PUT', '/v1/targets/twice', {
      url: client.url,
    })
    client.secret = made.secret
    return { client, generation: made.generation }
  }
  const second = await makeAnew()
  // What failed at the first goes there at once.
  await trip.settle()
  second.client.answer({ status: 410 })
  const { taskId } = await trip.begin(scene, { targets: ['twice'] })
  const { held, release } = trip.hold(
    ({ who, operation, body }) =>
      who === 'deliver' && operation === 'UpdateItem' && JSON.stringify(body).includes('"gate"'),
  )
  await scene.agent.setState(taskId, 'completed')
  const settling = trip.settle()
  await held
  const third = await makeAnew()
  expect(third.generation).toBeGreaterThan(second.generation)
  release()
  await settling
  await trip.pass(1_800_000, 30)
  expect(await aims.see('twice')).toMatchObject({ status: 'active' })
})
