// What a function leaves behind: on AWS its process stands still once it has answered, so nothing may go on after that.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { door as api } from '../../functions/api/app.ts'
import { door as deliver } from '../../functions/deliver.ts'
import { door as look } from '../../functions/look.ts'
import { door as receive } from '../../functions/receive.ts'
import { door as tick } from '../../functions/tick.ts'
import type { Relay } from '../../shared/relay.ts'
import { type Rest, startRest } from '../support/rest.ts'
import { push, startTrip, statusPush, type Trip } from '../support/trip.ts'

let trip: Trip
let rest: Rest

beforeAll(async () => {
  rest = startRest()
  const watched =
    <A extends unknown[], R>(name: string, door: (relay: Relay) => (...given: A) => Promise<R>) =>
    (relay: Relay) =>
      rest.watch(name, door(relay))
  trip = await startTrip({
    doors: {
      receive: watched('receive', receive),
      api: watched('api', api),
      look: watched('look', look),
      deliver: watched('deliver', deliver),
      tick: watched('tick', tick),
    },
  })
})

afterAll(async () => {
  rest.stop()
  await trip.stop()
})

test('no timer, socket or work of any door outlives its answer, but the sockets that its clients keep to table and queues', async () => {
  const scene = await trip.scene()
  const one = await trip.begin(scene)
  await push(one.hook, statusPush(one.taskId, 'working'), { 'x-a2a-notification-token': 'wrong' })
  await scene.agent.setState(one.taskId, 'input-required')
  await trip.settle()
  one.client.answer({ status: 503 })
  await trip.pass(2000)
  await scene.agent.setState(one.taskId, 'completed')
  await trip.pass(60_000, 2)
  expect(one.client.states()).toContain('completed')
  await trip.task(scene.id, one.taskId)
  for (const name of ['receive', 'api', 'look', 'deliver', 'tick'])
    expect(rest.answered(name), name).toBeGreaterThan(0)
  const { AWS_ENDPOINT_URL_DYNAMODB: table = '', AWS_ENDPOINT_URL_SQS: queues = '' } = trip.local.env
  expect(await rest.left([table, queues])).toEqual([])
})
