// While a target is paused the world goes on: subscriptions end, tasks move. Whoever is left hears of it soon after the target is back.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aimsOf } from '../support/aims.ts'
import type { Client } from '../support/clients.ts'
import type { SeenWake } from '../support/routes.ts'
import { type Begun, type Scene, startTrip, type Trip } from '../support/trip.ts'

const minute = 60_000

let trip: Trip
let scene: Scene
let aims: ReturnType<typeof aimsOf>

beforeAll(async () => {
  trip = await startTrip()
  scene = await trip.scene()
  aims = aimsOf(trip, scene)
})

afterAll(() => trip.stop())

/** A target that asked to be left alone for ten minutes. */
async function pausedTarget(target: string): Promise<{ client: Client; first: Begun }> {
  const client = await aims.makeTarget(target)
  client.answer({ status: 503, headers: { 'retry-after': '600' } })
  const first = await waits(target)
  expect(await aims.see(target)).toMatchObject({ status: 'paused' })
  return { client, first }
}

/** A task that ended while its target is paused: its wake waits. */
async function waits(target: string, client?: string): Promise<Begun> {
  const begun = await trip.begin(scene, { targets: [target], ...(client !== undefined && { client }) })
  await scene.agent.setState(begun.taskId, 'completed')
  await trip.settle()
  return begun
}

const leave = ({ made }: Begun): Promise<unknown> => trip.call('DELETE', `/v1/subscriptions/${made.id}`)

const wakeOf = async (taskId: string): Promise<SeenWake | undefined> =>
  (await trip.call<{ wakes: SeenWake[] }>('GET', `/v1/wakes?agent=${scene.id}&task=${taskId}`)).wakes[0]

const tasksOf = (client: Client): string[] => client.told().map(({ data }) => data.taskId)

test('a subscription that is deleted while its target is paused speaks for no other of its client', async () => {
  const all: { client: Client; stays: Begun; goes: Begun }[] = []
  for (const name of ['away-1', 'away-2', 'away-3', 'away-4']) {
    const { client } = await pausedTarget(name)
    // One of these is the probe, most likely.
    for (let others = 0; others < 6; others++) await waits(name)
    const stays = await waits(name, name)
    const goes = await waits(name, name)
    await leave(goes)
    all.push({ client, stays, goes })
  }
  for (const { client } of all) client.answer({})
  await trip.pass(20 * minute, 40)
  for (const { client, stays, goes } of all) {
    expect(tasksOf(client)).toContain(stays.taskId)
    expect(tasksOf(client)).not.toContain(goes.taskId)
    expect(await wakeOf(goes.taskId)).toMatchObject({ status: 'dropped' })
  }
})

test('a subscription that is deleted after its wake was chosen to speak leaves that to the next of its client', async () => {
  for (const name of ['chosen-1', 'chosen-2', 'chosen-3', 'chosen-4']) {
    const { client } = await pausedTarget(name)
    const stays = await waits(name, name)
    const [gone, goes] = [await waits(name, name), await waits(name, name)]
    const id = (await wakeOf(goes.taskId))?.id.slice(27) ?? ''
    client.answer({})
    const leased = trip.hold(({ who, operation, body }) => {
      const text = JSON.stringify(body)
      return who === 'deliver' && operation === 'UpdateItem' && text.includes(id) && text.includes(':until')
    })
    const passing = trip.pass(12 * minute, 24)
    await leased.held
    for (const one of [gone, goes]) await leave(one)
    leased.release()
    await passing
    await trip.pass(5 * minute, 10)
    expect(await wakeOf(goes.taskId)).toMatchObject({ status: 'dropped' })
    expect(tasksOf(client)).toContain(stays.taskId)
    expect(await wakeOf(stays.taskId)).toMatchObject({ status: 'delivered' })
  }
})

test('wakes that need not be sent any more use up no probe', async () => {
  const { client, first } = await pausedTarget('probed')
  await leave(first)
  const stays = await waits('probed')
  for (let left = 0; left < 25; left++) await leave(await waits('probed'))
  client.answer({})
  await trip.pass(13 * minute, 26)
  expect(tasksOf(client)).toContain(stays.taskId)
})

test('all that waited for one client is one hint, the newest, also when that was the probe', async () => {
  const all: { client: Client; oldest: Begun; newest: Begun }[] = []
  for (const name of ['once-1', 'once-2', 'once-3', 'once-4']) {
    const client = await aims.makeTarget(name)
    client.answer({ status: 503, headers: { 'retry-after': '600' } })
    const oldest = await waits(name, name)
    for (let older = 0; older < 3; older++) await waits(name, name)
    all.push({ client, oldest, newest: await waits(name, name) })
  }
  for (const { client } of all) client.answer({})
  await trip.pass(60 * minute, 60)
  for (const { client, oldest, newest } of all) {
    // The one that had failed comes by itself, too, and may be first.
    const [, ...told] = tasksOf(client)
    expect([[newest.taskId], [oldest.taskId, newest.taskId]]).toContainEqual(told)
  }
})
