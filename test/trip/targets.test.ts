// What a tenant does with its targets: limits, a test, new secrets, deleting one.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Call } from '../../infra/local/wire.ts'
import { aimsOf, type SeenTarget } from '../support/aims.ts'
import type { Client } from '../support/clients.ts'
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

test('how much a target takes can be changed without forgetting what is known of it', async () => {
  const slow = await aims.makeTarget('slow')
  slow.answer({ status: 429, headers: { 'retry-after': '600' } })
  await aims.tell('slow')
  expect(await aims.see('slow')).toMatchObject({ maxConcurrency: 10, status: 'paused', generation: 1 })
  const limits = { maxConcurrency: 2, ratePerSecond: 5 }
  expect(await aims.put('slow', slow, limits)).toMatchObject({ ...limits, status: 'paused', generation: 1 })
  const back = await aims.put('slow', slow)
  expect(back).toMatchObject({ maxConcurrency: 10, status: 'paused', secret: slow.secret })
  expect(back).not.toHaveProperty('ratePerSecond')
})

test('a test goes the way of every wake, says what came of it, and counts for nothing', async () => {
  const client = await aims.makeTarget('tried')
  client.answer({ status: 503 })
  await aims.tell('tried')
  client.answer({})
  const before = await aims.see('tried')
  expect(before).toMatchObject({ failures: 1 })
  const good = await trip.call<{ wakeId: string }>('POST', '/v1/targets/tried/test')
  expect(good).toMatchObject({ target: 'tried', verdict: 'delivered', status: 200 })
  expect(client.last()).toMatchObject({
    ...{ id: good.wakeId, type: 'rouse.test', data: { target: 'tried', about: { target: 'tried' } } },
  })
  client.answer({ status: 500, body: 'no such route' })
  expect(await trip.call('POST', '/v1/targets/tried/test')).toMatchObject({
    ...{ verdict: 'retry', status: 500, answer: 'no such route', reason: 'The target answered 500.' },
  })
  expect(await aims.see('tried')).toEqual(before)
})

test('case 167: through an overlap the secret before signs along, also when it is rotated again, and none is left when it is revoked', async () => {
  const client = await aims.makeTarget('keyed')
  const secrets = [client.secret]
  const rotate = async (more: Record<string, unknown>): Promise<SeenTarget> => {
    const rotated = await trip.call<SeenTarget>('POST', '/v1/targets/keyed/rotate', more)
    if (rotated.secret !== secrets[0]) secrets.unshift(rotated.secret)
    return rotated
  }
  /** Which secrets, the newest first, find the next wake right. */
  const signing = async (): Promise<boolean[]> => {
    await trip.call('POST', '/v1/targets/keyed/test')
    return secrets.map(secret => isRight(client, secret))
  }
  const first = await rotate({ secretGeneration: 1, overlapSeconds: 3600 })
  expect(await rotate({ secretGeneration: 1, overlapSeconds: 3600 })).toEqual(first)
  expect(await signing()).toEqual([true, true])
  await rotate({ secretGeneration: 2, overlapSeconds: 7200 })
  expect(await signing()).toEqual([true, true, true])
  expect(await trip.refused('POST', '/v1/targets/keyed/rotate', { secretGeneration: 1 })).toMatchObject({
    ...{ code: 'conflict', detail: 'The present generation of the secret is 3.' },
  })
  // A wake that failed before is signed anew by what holds when it comes again.
  client.secret = secrets[1] ?? ''
  client.answer({ status: 500 })
  await aims.tell('keyed')
  const failed = client.told().at(-1)
  client.answer({})
  await trip.pass(6000)
  expect(client.told().at(-1)).toMatchObject({ id: failed?.id, data: failed?.data })
  expect(client.told().at(-1)?.signature).not.toBe(failed?.signature)
  await trip.pass(3_600_000)
  expect(await signing()).toEqual([true, true, false])
  await rotate({ secretGeneration: 3, overlapSeconds: 0 })
  expect(await signing()).toEqual([true, false, false, false])
  expect(await aims.see('keyed')).toMatchObject({ status: 'active', generation: 1, secretGeneration: 4 })
})

function isRight(client: Client, secret: string): boolean {
  const given = client.secret
  client.secret = secret
  try {
    return client.last() !== undefined
  } catch {
    return false
  } finally {
    client.secret = given
  }
}

test('a target that operations are told by cannot be deleted', async () => {
  await aims.makeTarget('alarm')
  await trip.call('PUT', '/v1/operations', { targets: ['alarm'] })
  expect(await trip.refused('DELETE', '/v1/targets/alarm')).toMatchObject({
    ...{ status: 409, detail: '/v1/operations names this target; change that first.' },
  })
  await trip.call('DELETE', '/v1/operations')
  await trip.call('DELETE', '/v1/targets/alarm')
  expect(await trip.refused('GET', '/v1/targets/alarm')).toMatchObject({ status: 404 })
})

test.each([
  ['repeated', 'DELETE'],
  ['followed by another target of that name', 'PUT'],
])('a deletion that dies is finished when it is %s, and counted once', async (_, verb) => {
  const name = `dying-${verb.toLowerCase()}`
  const count = async () => (await trip.local.items()).find(({ sk }) => sk === 'quota#targets')?.count
  const before = await count()
  const client = await aims.makeTarget(name)
  fails = ({ who, operation, body }) =>
    who === 'api' && operation === 'DeleteItem' && JSON.stringify(body.Key).includes('#targets')
  expect(await trip.refused('DELETE', `/v1/targets/${name}`)).toMatchObject({ status: 503 })
  fails = () => false
  expect(await trip.refused('GET', `/v1/targets/${name}`)).toMatchObject({ status: 404 })
  if (verb === 'PUT') await aims.put(name, client)
  await trip.call('DELETE', `/v1/targets/${name}`)
  expect(await count()).toBe(before)
  expect(
    (await trip.local.items()).filter(({ pk, sk }) => sk === name && /targets/.test(String(pk))),
  ).toEqual([])
  expect(await trip.refused('DELETE', `/v1/targets/${name}`)).toMatchObject({ status: 404 })
})
