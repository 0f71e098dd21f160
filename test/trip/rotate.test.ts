// Rotating what was handed out with a hook: who may push by what, for how long, and what a repeat does.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HandedOut } from '../../shared/a2a/configs.ts'
import { stillClock } from '../support/clock.ts'
import { dialects } from '../support/dialects.ts'
import { type Door, type Push, startDoor } from '../support/door.ts'
import type { Kind, Spot } from '../support/spots.ts'
import { push, startTrip, statusPush, type Trip } from '../support/trip.ts'

let door: Door

beforeAll(async () => {
  door = await startDoor()
})

afterAll(() => door.stop())

const as = dialects['Function URL']
type Rotated = { generation: number; previousUntil?: number; pushNotificationConfig: HandedOut }

const rotate = async (spot: Spot, generation: number, more: object = {}): Promise<Rotated> =>
  door.call('POST', `/v1/subscriptions/${spot.id}/rotate`, { generation, ...more })

/** A push by what was handed out to another generation of this hook. */
const by = (spot: Spot, hook: HandedOut, at = door.instance()): Push => ({ to: { ...spot, hook }, as, at })

const kinds: [string, Kind][] = [
  ['token', { token: true }],
  ['Bearer', { authorization: 'Bearer' }],
  ['Basic', { authorization: 'Basic' }],
]

test.each(kinds)(
  'both generations of a %s push until the overlap ends, then the new one alone',
  async (_name, kind) => {
    const spot = await door.spot({ ...kind, n: 1 })
    const { pushNotificationConfig: next, previousUntil } = await rotate(spot, 1, { overlapSeconds: 3600 })
    expect(next.url).toBe(spot.hook.url)
    expect(next).not.toEqual(spot.hook)
    expect(previousUntil).toBe(door.now() + 3_600_000)
    expect(await door.push(by(spot, spot.hook))).toBe('ACK')
    expect(await door.push(by(spot, next))).toBe('ACK')
    door.ground.advance(3_600_000 - 1)
    expect(await door.push(by(spot, spot.hook))).toBe('ACK')
    door.ground.advance(1)
    expect(await door.push(by(spot, spot.hook))).toBe('DENY')
    expect(await door.push(by(spot, next))).toBe('ACK')
  },
)

test.each(kinds)('an instance that remembers the old %s lets the new one in at once', async (_name, kind) => {
  const spot = await door.spot({ ...kind, n: 2 })
  const at = door.instance()
  expect(await door.push(by(spot, spot.hook, at))).toBe('ACK')
  const { pushNotificationConfig: next } = await rotate(spot, 1)
  const { result, effects } = await door.during(() => door.push(by(spot, next, at)))
  expect(result).toBe('ACK')
  expect(effects.filter(({ operation }) => operation === 'GetItem')).toEqual([])
})

test('without an overlap the old token ends, for an instance that remembers it within 30 s', async () => {
  const spot = await door.spot({ token: true, n: 3 })
  const at = door.instance()
  expect(await door.push(by(spot, spot.hook, at))).toBe('ACK')
  const { pushNotificationConfig: next, previousUntil } = await rotate(spot, 1, { overlapSeconds: 0 })
  expect(previousUntil).toBeUndefined()
  expect(await door.push(by(spot, spot.hook))).toBe('DENY')
  door.ground.advance(30_001)
  expect(await door.push(by(spot, spot.hook, at))).toBe('DENY')
  expect(await door.push(by(spot, next, at))).toBe('ACK')
})

test('rotated again, the first generation is over and the second still pushes', async () => {
  const spot = await door.spot({ token: true, n: 4 })
  const second = await rotate(spot, 1)
  const third = await rotate(spot, 2)
  expect(third.generation).toBe(3)
  expect(await door.push(by(spot, spot.hook))).toBe('DENY')
  expect(await door.push(by(spot, second.pushNotificationConfig))).toBe('ACK')
  expect(await door.push(by(spot, third.pushNotificationConfig))).toBe('ACK')
})

test('a rotation sent twice rotates once', async () => {
  const spot = await door.spot({ token: true, n: 5 })
  const both = await Promise.all([rotate(spot, 1), rotate(spot, 1)])
  expect(both[1]).toEqual(both[0])
  expect(await rotate(spot, 1, { overlapSeconds: 60 })).toEqual(both[0])
  expect(await door.push(by(spot, spot.hook))).toBe('ACK')
})

test('only the present generation can be replaced, and only by whoever may', async () => {
  const spot = await door.spot({ token: true, n: 6 })
  const path = `/v1/subscriptions/${spot.id}/rotate`
  for (const generation of [2, 3])
    expect(await door.refused('POST', path, { generation })).toMatchObject({ status: 409, code: 'conflict' })
  for (const generation of [0, -1, 1.5, '1', null, undefined])
    expect(await door.refused('POST', path, { generation })).toMatchObject({
      status: 422,
      errors: [{ pointer: '/generation' }],
    })
  expect(await door.other.refused('POST', path, { generation: 1 })).toMatchObject({ status: 404 })
  expect(await door.push(by(spot, spot.hook))).toBe('ACK')
})

test('an agent that signs its pushes was handed no secrets', async () => {
  const spot = await door.spot({ n: 7 })
  expect(await door.refused('POST', `/v1/subscriptions/${spot.id}/rotate`, { generation: 1 })).toMatchObject({
    status: 409,
    detail: expect.stringContaining('signs'),
  })
})

test('a subscription that is gone is not rotated', async () => {
  const spot = await door.spot({ token: true, n: 8 })
  await door.call('DELETE', `/v1/subscriptions/${spot.id}`)
  expect(await door.refused('POST', `/v1/subscriptions/${spot.id}/rotate`, { generation: 1 })).toMatchObject({
    status: 404,
  })
})

async function onTrip(work: (trip: Trip) => Promise<void>): Promise<void> {
  const trip = await startTrip({ clock: stillClock() })
  try {
    await work(trip)
  } finally {
    await trip.stop()
  }
}

test('the agent of a known task is given the new config, pushes by it, and its client is woken', () =>
  onTrip(async trip => {
    const scene = await trip.scene({ verification: { token: true } })
    const { taskId, client, made, hook } = await trip.begin(scene)
    const path = `/v1/subscriptions/${made.id}/rotate`
    const rotated = await trip.call<Rotated & { registration: { status: string } }>('POST', path, {
      generation: 1,
      overlapSeconds: 0,
    })
    expect(rotated.registration.status).toBe('registered')
    expect(rotated.pushNotificationConfig.token).not.toBe(hook.token)
    await trip.pass(31_000)
    expect(await push(hook, statusPush(taskId, 'working'))).toBe(401)
    await scene.agent.setState(taskId, 'completed')
    await trip.until(() => trip.stepsOf('notice.stored', taskId).length > 0)
    await trip.pass(2000)
    expect(client.states()).toEqual(['completed'])
  }))
