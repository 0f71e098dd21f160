// What is no client's news reaches the tenant's own operational targets, once, and can be read again.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bindMs } from '../../shared/policy.ts'
import type { Client } from '../support/clients.ts'
import type { SeenWake } from '../support/routes.ts'
import { type Scene, startTrip, type Trip } from '../support/trip.ts'

let trip: Trip
let scene: Scene
/** The tenant's own alarm. */
let alarm: Client
/** How often the disabling of a target fails, after its event was queued: the SDK tries twice. */
let fails = 0

beforeAll(async () => {
  trip = await startTrip({
    faults: ({ who, operation, body }) => {
      if (fails === 0 || who !== 'deliver' || operation !== 'UpdateItem') return undefined
      if (!JSON.stringify(body).includes('disabled')) return undefined
      fails -= 1
      return 'throttle'
    },
  })
  scene = await trip.scene()
  alarm = trip.clients.make()
  const made = await trip.call<{ secret: string }>('PUT', '/v1/targets/alarm', { url: alarm.url })
  alarm.secret = made.secret
})

afterAll(() => trip.stop())

/** A target that answers 410, and a task whose end it is to be told of. */
async function breakTarget(target: string): Promise<void> {
  const gone = trip.clients.make()
  const { secret } = await trip.call<{ secret: string }>('PUT', `/v1/targets/${target}`, { url: gone.url })
  gone.secret = secret
  gone.answer({ status: 410 })
  const { taskId } = await trip.begin(scene, { targets: [target] })
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
}

const wakesAbout = async (what: string): Promise<SeenWake[]> =>
  (await trip.call<{ wakes: SeenWake[] }>('GET', `/v1/wakes?${what}`)).wakes

test('without operational targets a dead target is disabled in silence', async () => {
  await breakTarget('quiet')
  expect(await trip.call('GET', '/v1/targets/quiet')).toMatchObject({ status: 'disabled' })
  expect(await wakesAbout('target=quiet')).toEqual([])
})

test('operational targets must be there, and are no inline ones', async () => {
  expect(await trip.refused('GET', '/v1/operations')).toMatchObject({ status: 404 })
  const { made } = await trip.subscribe(scene.id)
  for (const target of ['nobody', made.targets[0]?.target])
    expect(await trip.refused('PUT', '/v1/operations', { targets: ['alarm', target] })).toMatchObject({
      code: 'invalid',
      detail: '/targets/1: There is no such target',
    })
  const whom = { targets: ['alarm'] }
  expect(await trip.call('PUT', '/v1/operations', { targets: ['alarm', 'alarm'] })).toEqual(whom)
  const standing = [{ target: 'alarm', status: 'active' }]
  expect(await trip.call('GET', '/v1/operations')).toEqual({ ...whom, standing })
})

test('a target that is gone is told of once, even if its delivery has to be done again', async () => {
  fails = 2
  await breakTarget('phone')
  await trip.pass(240_000, 4)
  expect(fails).toBe(0)
  expect(await trip.call('GET', '/v1/targets/phone')).toMatchObject({ status: 'disabled' })
  const [told, ...more] = alarm.told()
  expect(more).toEqual([])
  expect(told).toMatchObject({
    type: 'target.disabled',
    data: {
      tenant: 'demo',
      target: 'alarm',
      wakeId: told?.id,
      about: { target: 'phone' },
      reason: 'The target answered 410 Gone.',
    },
  })
  const wakes = await wakesAbout('target=phone')
  expect(wakes).toMatchObject([
    { id: told?.id, type: 'target.disabled', status: 'delivered', about: { target: 'phone' } },
  ])
  expect(await trip.wake(told?.id ?? '')).toEqual(wakes[0])
  expect(await wakesAbout('agent=phone')).toEqual([])
})

test('a subscription that nothing bound is told of when its time to bind is over', async () => {
  const before = alarm.told().length
  const { made } = await trip.subscribe(scene.id)
  await trip.pass(bindMs + 120_000, 2)
  expect(await trip.call('GET', `/v1/subscriptions/${made.id}`)).toMatchObject({ status: 'expired' })
  const told = alarm.told().slice(before)
  expect(told.map(({ data }) => data)).toContainEqual(
    expect.objectContaining({ about: { subscription: made.id } }),
  )
  expect(new Set(told.map(({ type }) => type))).toEqual(new Set(['subscription.expired']))
  await trip.call('DELETE', '/v1/operations')
  expect(await trip.refused('GET', '/v1/operations')).toMatchObject({ status: 404 })
})

test('what became of operational targets that would tell nobody is shown', async () => {
  const whom = { targets: ['alarm', 'dead', 'busy', 'lost'] }
  await breakTarget('dead')
  for (const target of ['busy', 'lost']) {
    const client = trip.clients.make()
    await trip.call('PUT', `/v1/targets/${target}`, { url: client.url })
    client.answer({ status: 503, headers: { 'retry-after': '600' } })
  }
  const { taskId } = await trip.begin(scene, { targets: ['busy'] })
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  // It was deleted as it was named.
  const deleting = trip.hold(({ who, operation }) => who === 'api' && operation === 'DeleteItem')
  const deleted = trip.call('DELETE', '/v1/targets/lost')
  await deleting.held
  await trip.call('PUT', '/v1/operations', whom)
  deleting.release()
  await deleted
  const now = trip.local.now()
  const seen = await trip.call<{ standing: { since?: number }[] }>('GET', '/v1/operations')
  expect(seen).toMatchObject({
    ...whom,
    standing: [
      { target: 'alarm', status: 'active' },
      { target: 'dead', status: 'disabled', reason: 'The target answered 410 Gone.' },
      { target: 'busy', status: 'paused', reason: 'The target answered 503.' },
      { target: 'lost', status: 'gone' },
    ],
  })
  for (const { since = 0 } of seen.standing.slice(1, 3)) {
    expect(since).toBeGreaterThan(now - 60_000)
    expect(since).toBeLessThanOrEqual(now)
  }
  await trip.call('PUT', '/v1/operations', { targets: ['alarm'] })
})
