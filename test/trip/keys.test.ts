// An agent's published keys are fetched again before a push would have to wait for them, and only while it pushes; what it
// should not have published is told.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeKey } from '../support/keys.ts'
import { startReceiver } from '../support/receiver.ts'
import { type Scene, startTrip, type Trip } from '../support/trip.ts'

const minute = 60_000
const hour = 60 * minute

let trip: Trip
let scene: Scene
/** How often the mark of an alarm as told fails: the SDK tries twice. */
let fails = 0

beforeAll(async () => {
  trip = await startTrip({
    faults: ({ operation, body }) => {
      if (fails === 0 || operation !== 'UpdateItem' || !JSON.stringify(body).includes('#alarmTold'))
        return undefined
      fails -= 1
      return 'throttle'
    },
  })
  const agent = await trip.startAgent({ sign: 'ES256' })
  scene = await trip.register(agent, {
    verification: { jwt: { jwksUrl: agent.jwksUrl, issuer: agent.origin } },
  })
  const { taskId } = await trip.begin(scene)
  await agent.release(taskId)
  await trip.settle()
})

afterAll(() => trip.stop())

const fetches = (): number => scene.agent.calls('jwks')

test('a key set is fetched again before it runs out, though no push comes', async () => {
  expect(fetches()).toBe(1)
  await trip.pass(8 * minute)
  expect(fetches()).toBe(1)
  // Fresh for ten minutes, and fetched again ninety seconds before.
  await trip.pass(minute)
  expect(fetches()).toBe(2)
  await trip.pass(9 * minute)
  expect(fetches()).toBe(3)
})

test('the keys of an agent that pushes no more are left alone after a day', async () => {
  await trip.pass(25 * hour)
  const before = fetches()
  await trip.pass(24 * hour, 24)
  expect(fetches()).toBe(before)
})

test('keys that nobody may publish are told to the tenant once, though telling has to be done again, and once more when they are back', async () => {
  const alarm = trip.clients.make()
  alarm.secret = (await trip.call<{ secret: string }>('PUT', '/v1/targets/alarm', { url: alarm.url })).secret
  await trip.call('PUT', '/v1/operations', { targets: ['alarm'] })
  const host = await startReceiver()
  const [good, burnt] = [makeKey('ES256', 'k1'), makeKey('ES256', 'k2')]
  const serve = (...keys: unknown[]) => host.answer({ body: JSON.stringify({ keys }) })
  const register = () =>
    trip.call('PUT', '/v1/agents/burnt', {
      ...{ url: `${host.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true },
      verification: { jwt: { jwksUrl: `${host.origin}/keys`, issuer: 'i' } },
    })
  const told = () => alarm.told().map(({ type, data }) => ({ type, data }))
  const event = {
    type: 'agent.keys_rejected',
    data: expect.objectContaining({
      about: { agent: 'burnt' },
      flags: 'private_key_published symmetric_key_published',
    }),
  }
  const secret = burnt.privateKey.export({ format: 'jwk' })
  serve({ ...secret, kid: 'k2' }, { kty: 'oct', k: 'c2VjcmV0' })
  fails = 2
  await register()
  await trip.pass(15 * minute, 3)
  expect(fails).toBe(0)
  expect(told()).toEqual([event])
  await register()
  await trip.pass(15 * minute, 3)
  expect(told()).toEqual([event])

  serve(good.jwk)
  await register()
  await trip.pass(11 * minute, 2)
  serve(good.jwk, { kty: 'oct', k: 'c2VjcmV0' }, { ...secret, kid: 'k2' })
  await register()
  await trip.pass(6 * minute, 2)
  expect(told()).toEqual([event, event])
  expect(new Set(alarm.told().map(({ id }) => id)).size).toBe(2)
  expect(JSON.stringify(alarm.told())).not.toContain(String(secret.d))
  await trip.call('DELETE', '/v1/operations')
  await host.stop()
})
