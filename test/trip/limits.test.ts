// What a tenant may have is bounded, and what it gave up counts no more.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTrip, type Trip } from '../support/trip.ts'

let trip: Trip

beforeAll(async () => {
  trip = await startTrip()
})

afterAll(() => trip.stop())

/** The tenant's counts, by name. */
async function counts(): Promise<Record<string, unknown>> {
  const items = await trip.local.items()
  return Object.fromEntries(
    items.flatMap(({ pk, sk, count }) => {
      const counted = pk === 'T#demo' ? /^quota#(\w+)/.exec(String(sk))?.[1] : undefined
      return counted === undefined ? [] : [[counted, count]]
    }),
  )
}

test('agents, targets and subscriptions are counted once however often they are put, and given back when deleted', async () => {
  const { id } = await trip.scene()
  const target = { url: trip.clients.make().url }
  for (let time = 0; time < 3; time++) {
    await trip.call('PUT', '/v1/targets/t-1', target)
    await trip.call('PUT', '/v1/subscriptions/s-1', { agent: id, targets: ['t-1', target] })
  }
  expect(await counts()).toEqual({ agents: 1, targets: 1, subscriptions: 1 })
  await trip.call('DELETE', '/v1/subscriptions/s-1')
  await trip.call('DELETE', '/v1/targets/t-1')
  await trip.call('DELETE', `/v1/agents/${id}`)
  // A day's subscriptions stay counted: the limit is on making them.
  expect(await counts()).toEqual({ agents: 0, targets: 0, subscriptions: 1 })
})
