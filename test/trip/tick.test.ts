// What a tick does when a part of what it works through fails: the rest goes on, and it says that it failed.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { door } from '../../functions/tick.ts'
import { createRelay, type Relay } from '../../shared/relay.ts'
import { watchKey } from '../../shared/store/keys.ts'
import { put } from '../../shared/store/table.ts'
import { startTrip, type Trip } from '../support/trip.ts'

let trip: Trip
let relay: Relay

beforeAll(async () => {
  trip = await startTrip({ tick: 'manual', env: { DUE_SHARDS: '2' } })
  const env = { ...trip.local.env, AWS_ACCESS_KEY_ID: 'test' }
  relay = createRelay('tick', env, { now: trip.local.now })
})

afterAll(() => trip.stop())

type Send = (command: { input: { ExpressionAttributeValues?: { ':slot'?: { S: string } } } }) => unknown

/** A client of the SDK all of whose calls go by this one first. */
const by = <C extends object>(client: C, before: Send): C =>
  new Proxy(client, {
    get: (of, name) => {
      const value: unknown = Reflect.get(of, name)
      if (name !== 'send' || typeof value !== 'function') return value
      return async (command: Parameters<Send>[0]) => {
        before(command)
        return value.call(of, command)
      }
    },
  })

/** Watches that are due, in one shard of the timers. */
const dueIn = async (shard: number, count: number): Promise<void> => {
  for (let n = 0; n < count; n++) {
    const name = `due-${shard}-${n}`
    await put(relay.table, { ...watchKey(name), slot: `d#${shard}`, due: relay.now(), group: 'g' })
  }
}

const stillDue = async (shard: number): Promise<number> =>
  (await trip.local.items()).filter(({ slot, due }) => slot === `d#${shard}` && Number(due) <= relay.now())
    .length

test('a shard of the timers that cannot be read keeps no other from being worked through, and the tick fails', async () => {
  await Promise.all([dueIn(0, 2), dueIn(1, 2)])
  const client = by(relay.table.client, ({ input }) => {
    if (input.ExpressionAttributeValues?.[':slot']?.S === 'd#0') throw new Error('No answer')
  })
  await expect(door({ ...relay, table: { ...relay.table, client } })({})).rejects.toThrow('No answer')
  expect([await stillDue(0), await stillDue(1)]).toEqual([2, 0])
  await door(relay)({})
  expect(await stillDue(0)).toBe(0)
})

test('a page of timers whose queue takes none of them is not read over and over', async () => {
  await dueIn(0, 100)
  let pages = 0
  const table = by(relay.table.client, ({ input }) => {
    if (input.ExpressionAttributeValues?.[':slot']?.S === 'd#0') pages += 1
  })
  const queue = by(relay.queues.client, () => {
    throw new Error('No queue')
  })
  const lines: unknown[] = []
  const without: Relay = {
    ...relay,
    table: { ...relay.table, client: table },
    queues: { ...relay.queues, client: queue },
    log: line => lines.push(line),
  }
  await expect(door(without)({})).rejects.toThrow('No queue')
  expect(pages).toBe(1)
  expect(lines).toHaveLength(100)
  await door(relay)({})
  expect(await stillDue(0)).toBe(0)
})
