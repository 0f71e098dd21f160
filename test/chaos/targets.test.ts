// Targets that fail: paused, probed by one wake, and back without the backlog; one's trouble is nobody else's.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Client } from '../support/clients.ts'
import type { SeenWake } from '../support/routes.ts'
import { type Scene, startTrip, type Trip } from '../support/trip.ts'

let trip: Trip
let scene: Scene

beforeAll(async () => {
  trip = await startTrip()
  scene = await trip.scene({ maxConcurrentCalls: 100 })
})

afterAll(() => trip.stop())

/** A target with a name, and whom it reaches. */
async function makeTarget(name: string): Promise<Client> {
  const reached = trip.clients.make()
  const { secret } = await trip.call<{ secret: string }>('PUT', `/v1/targets/${name}`, { url: reached.url })
  reached.secret = secret
  return reached
}

/** Tasks of one client, whose end a target is told of. */
async function beginTasks(count: number, client: string, targets: string[]): Promise<string[]> {
  const tasks = await Promise.all(Array.from({ length: count }, () => scene.caller.send('work')))
  await Promise.all(
    tasks.map(taskId => trip.call('POST', '/v1/subscriptions', { agent: scene.id, taskId, client, targets })),
  )
  return tasks
}

const complete = async (tasks: string[]): Promise<void> => {
  trip.local.advance(1000)
  await Promise.all(tasks.map(taskId => scene.agent.setState(taskId, 'completed')))
  await trip.settle()
}

const wakesOf = async (tasks: string[]): Promise<SeenWake[]> => {
  const asked = tasks.map(taskId =>
    trip.call<{ wakes: SeenWake[] }>('GET', `/v1/wakes?agent=${scene.id}&task=${taskId}`),
  )
  return (await Promise.all(asked)).flatMap(({ wakes }) => wakes)
}

test('a target that fails ten times in a row is paused, probed by one wake at a time, and each client hears once when it is back', async () => {
  const [backend, alarm] = [await makeTarget('backend'), await makeTarget('alarm')]
  await trip.call('PUT', '/v1/operations', { targets: ['alarm'] })
  const first = await beginTasks(10, 'ann', ['backend'])
  const [later, bob] = [await beginTasks(2, 'ann', ['backend']), await beginTasks(1, 'bob', ['backend'])]
  await trip.settle()
  backend.answer({ status: 500 })
  await complete(first)
  // Of ten at once some may find their slot taken, and come a little later.
  await trip.pass(12_000, 6)
  const failed = backend.told().length
  expect(failed).toBeGreaterThanOrEqual(10)
  expect(alarm.told().map(({ type }) => type)).toEqual(['target.paused'])
  // Each probe is one call, and each that fails doubles the pause.
  for (const seconds of [40, 80, 160, 320, 640]) await trip.pass(seconds * 1000)
  const probed = backend.told().length
  expect(probed).toBeLessThanOrEqual(failed + 5)
  await complete([...later, ...bob])
  // Nothing is sent, nothing is queued but the look after it, and no try is used up.
  const lying = await trip.local.messages('deliver')
  expect(lying.map(({ body }) => JSON.parse(body).kind).filter(kind => kind !== 'target')).toEqual([])
  expect(backend.told()).toHaveLength(probed)
  for (const wake of await wakesOf([...later, ...bob]))
    expect(wake).toMatchObject({ status: 'pending', tries: 0, attempts: [] })
  backend.answer({})
  await trip.pass(1_200_000)
  await trip.pass(300_000, 4)
  const told = backend.told().slice(probed)
  // One for each client: the probe is the hint of the client whose it is.
  expect(told.map(({ data }) => bob.includes(data.taskId)).toSorted()).toEqual([false, true])
  const wakes = await wakesOf([...first, ...later, ...bob])
  expect(wakes.filter(({ status }) => status === 'delivered')).toHaveLength(2)
  expect(wakes.filter(({ status }) => status === 'superseded')).toHaveLength(11)
  expect(alarm.told().map(({ type }) => type)).toEqual(['target.paused', 'target.recovered'])
  expect((await trip.inbox('ann')).entries).toHaveLength(12)
  expect(await trip.local.messages('deliver')).toEqual([])
})

test('a wake that failed before the pause goes out with the others, and does not wait for its own next try', async () => {
  const lazy = await makeTarget('lazy')
  const early = await beginTasks(1, 'eve', ['lazy'])
  const others = await beginTasks(8, 'fay', ['lazy'])
  await trip.settle()
  lazy.answer({ status: 500 })
  await complete(early)
  await trip.pass(6000)
  await trip.pass(331_000)
  expect(lazy.told()).toHaveLength(3)
  // Its next try is half an hour away; what follows pauses the target, and it is back within two minutes.
  await complete(others)
  await trip.pass(12_000, 6)
  expect(await trip.call('GET', '/v1/targets/lazy')).toMatchObject({ status: 'paused' })
  const failed = lazy.told().length
  lazy.answer({})
  await trip.pass(120_000, 12)
  const told = lazy.told().slice(failed)
  expect(told.filter(({ data }) => early.includes(data.taskId))).toHaveLength(1)
  expect(told.length).toBeLessThanOrEqual(3)
  expect(await wakesOf(early)).toMatchObject([{ status: 'delivered', tries: 4 }])
  await trip.pass(3_600_000, 4)
  expect(lazy.told()).toHaveLength(failed + told.length)
})

test('a target’s Retry-After holds for all its wakes', async () => {
  const busy = await makeTarget('busy')
  const [one = '', ...others] = await beginTasks(3, 'cid', ['busy'])
  await trip.settle()
  busy.answer({ status: 429, headers: { 'retry-after': '600' } })
  await complete([one])
  busy.answer({})
  await complete(others)
  expect(busy.told()).toHaveLength(1)
  await trip.pass(300_000)
  expect(busy.told()).toHaveLength(1)
  await trip.pass(800_000, 4)
  expect(busy.told().length).toBeGreaterThanOrEqual(2)
  const statuses = (await wakesOf([one, ...others])).map(({ status }) => status)
  expect(statuses.filter(status => status !== 'delivered' && status !== 'superseded')).toEqual([])
})

test('case 171: of several targets each succeeds or fails alone, and only the one that failed is tried again', async () => {
  const [fine, broken, gone] = [
    await makeTarget('fine'),
    await makeTarget('broken'),
    await makeTarget('gone'),
  ]
  const tasks = await beginTasks(1, 'dee', ['fine', 'broken', 'gone'])
  await trip.settle()
  broken.answer({ status: 500 })
  gone.answer({ status: 410 })
  await complete(tasks)
  broken.answer({})
  await trip.pass(6000)
  await trip.pass(360_000, 2)
  expect([fine, broken, gone].map(target => target.told().length)).toEqual([1, 2, 1])
  const seen = (await wakesOf(tasks)).map(({ target, status }) => [target, status])
  expect(Object.fromEntries(seen)).toEqual({ fine: 'delivered', broken: 'delivered', gone: 'failed' })
})
