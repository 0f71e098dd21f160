// An agent's published keys are fetched again before a push would have to wait for them, and only while it pushes.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Scene, startTrip, type Trip } from '../support/trip.ts'

const minute = 60_000
const hour = 60 * minute

let trip: Trip
let scene: Scene

beforeAll(async () => {
  trip = await startTrip()
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
