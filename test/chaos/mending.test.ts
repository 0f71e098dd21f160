// Targets that their tenant brings back, slows down or makes again: what comes of their wakes.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Client } from '../support/clients.ts'
import { type Scene, startTrip, type Trip } from '../support/trip.ts'

type Seen = {
  target: string
  secret: string
  status: string
  generation: number
  secretGeneration: number
  nextProbeAt?: number
}

let trip: Trip
let scene: Scene

beforeAll(async () => {
  trip = await startTrip()
  scene = await trip.scene()
})

afterAll(() => trip.stop())

const put = (target: string, { url }: Client, more: Record<string, unknown> = {}): Promise<Seen> =>
  trip.call<Seen>('PUT', `/v1/targets/${target}`, { url, ...more })

async function makeTarget(target: string, more?: Record<string, unknown>): Promise<Client> {
  const client = trip.clients.make()
  client.secret = (await put(target, client, more)).secret
  return client
}

const see = (target: string): Promise<Seen> => trip.call<Seen>('GET', `/v1/targets/${target}`)

/** A task that a target is told the end of. */
async function tell(...targets: string[]): Promise<void> {
  const { taskId } = await trip.begin(scene, { targets })
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
}

test('a target that takes one a second gets no two at once', async () => {
  const client = await makeTarget('paced', { ratePerSecond: 1 })
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
  const client = await makeTarget('gone')
  client.answer({ status: 410 })
  await tell('gone')
  client.answer({})
  expect(await see('gone')).toMatchObject({
    ...{ status: 'disabled', reason: 'The target answered 410 Gone.', disabledAt: expect.any(Number) },
  })
  await tell('gone')
  expect(client.told()).toHaveLength(1)
  const enabled = await trip.call('POST', '/v1/targets/gone/enable')
  expect(enabled).toMatchObject({ status: 'active', generation: 2 })
  expect(enabled).not.toHaveProperty('reason')
  expect(await trip.call('POST', '/v1/targets/gone/enable')).toEqual(enabled)
  await tell('gone')
  expect(client.told()).toHaveLength(2)
})

test('a paused target says since when, why and until when; enabled, it is probed at once', async () => {
  const client = await makeTarget('busy')
  client.answer({ status: 503, headers: { 'retry-after': '900' } })
  await tell('busy')
  client.answer({})
  const paused = await see('busy')
  expect(paused).toMatchObject({
    ...{
      status: 'paused',
      reason: 'The target answered 503.',
      failures: 1,
      failingSince: expect.any(Number),
    },
  })
  expect(paused.nextProbeAt).toBeGreaterThan(trip.local.now() + 800_000)
  await tell('busy')
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
  expect(await see('busy')).toMatchObject({ status: 'active' })
})

test('a target that is made again after it was deleted inherits nothing', async () => {
  const before = await makeTarget('phoenix')
  before.answer({ status: 429, headers: { 'retry-after': '3600' } })
  await put('phoenix', trip.clients.make())
  await put('phoenix', before)
  await tell('phoenix')
  expect(await see('phoenix')).toMatchObject({ status: 'paused', generation: 3 })
  await trip.call('DELETE', '/v1/targets/phoenix')
  const after = await makeTarget('phoenix')
  expect(await see('phoenix')).toMatchObject({ status: 'active' })
  expect(await see('phoenix')).not.toHaveProperty('failures')
  await tell('phoenix')
  await trip.pass(120_000, 2)
  expect(before.told()).toHaveLength(1)
  expect(after.told().length).toBeGreaterThanOrEqual(1)
})
