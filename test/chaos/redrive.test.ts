// What came to nothing is tried again: messages that a queue gave up, wakes that failed, and a client's past; nothing gets a new id.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { door as receive } from '../../functions/receive.ts'
import { idOf } from '../../shared/hash.ts'
import { sendAgain } from '../../shared/queue.ts'
import type { Relay } from '../../shared/relay.ts'
import { routesOf } from '../support/routes.ts'
import { type Scene, startTrip, type Trip } from '../support/trip.ts'

type Shown = { id: string; reason?: string; agent?: string; taskId?: string; target?: string; times?: number }
type Counted = { count: number; shown: Shown[] }
type Redriven = { dryRun: boolean; wakes: Counted; skipped: Counted; messages: Counted; next?: string }
type Replayed = { queued: number; skipped: number; next?: string }

let trip: Trip
let scene: Scene
/** The door whose calls of the table fail now. */
let broken: 'look' | 'deliver' | undefined
/** The world of a door, to send what no door would. */
let inside: Relay

beforeAll(async () => {
  trip = await startTrip({
    doors: {
      receive: relay => {
        inside = relay
        return receive(relay)
      },
    },
    faults: ({ who, operation }) =>
      broken !== undefined && who === broken && operation !== 'SendMessage' ? 'throttle' : undefined,
  })
  scene = await trip.scene()
})
afterAll(() => trip.stop())

const redrive = (asked: object = {}) => trip.call<Redriven>('POST', '/v1/redrive', asked)
const replay = (asked: object) => trip.call<Replayed>('POST', '/v1/inbox/replay', asked)

/** A door can do nothing until its queue gives up what was for it: after ten receives. */
async function giveUp(door: 'look' | 'deliver', task: () => Promise<unknown>): Promise<void> {
  broken = door
  await task()
  await trip.settle()
  await trip.pass(10 * 181_000, 10)
  broken = undefined
  await trip.settle()
}

let targets = 0

/** A wake that failed, for its target said that it is gone; `enable` puts the target again. */
async function failedWake() {
  const [client, target] = [trip.clients.make(), `target-${++targets}`]
  const enable = async () => {
    client.secret = (
      await trip.call<{ secret: string }>('PUT', `/v1/targets/${target}`, { url: client.url })
    ).secret
  }
  await enable()
  const { taskId } = await trip.begin(scene, { client: client.name, targets: [target] })
  client.answer({ status: 410 })
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  client.answer({})
  return { client, target, id: client.told()[0]?.id ?? '', enable }
}

test('a delivery that its queue gave up before it was begun is shown with its reason, and put back by itself', async () => {
  const { client, taskId, made } = await trip.begin(scene)
  await giveUp('deliver', () => scene.agent.setState(taskId, 'completed'))
  expect(client.told()).toEqual([])
  const target = made.targets[0]?.target
  const another = await trip.scene()
  expect((await redrive({ dryRun: true, target })).messages).toMatchObject({
    count: 1,
    shown: [{ reason: 'failed', agent: scene.id, taskId, target, times: 1 }],
  })
  expect((await redrive({ dryRun: true, agent: another.id })).messages.count).toBe(0)
  await trip.pass(310_000)
  expect(client.states()).toEqual(['completed'])
  expect((await redrive({ dryRun: true })).messages.count).toBe(0)
})

test('a redrive puts it back at once, and once', async () => {
  const { client, taskId } = await trip.begin(scene)
  await giveUp('deliver', () => scene.agent.setState(taskId, 'completed'))
  const { messages } = await redrive({ agent: scene.id })
  expect(messages.count).toBe(1)
  await trip.settle()
  expect(client.states()).toEqual(['completed'])
  expect((await redrive()).messages.count).toBe(0)
  await trip.pass(600_000, 2)
  expect(client.told()).toHaveLength(1)
  expect(await trip.local.dead()).toEqual([])
})

test('case 93: a message that comes back when its subscription is gone ends well, and wakes nobody', async () => {
  const { client, taskId, made } = await trip.begin(scene)
  await giveUp('deliver', () => scene.agent.setState(taskId, 'completed'))
  await trip.call('DELETE', `/v1/subscriptions/${made.id}`)
  await redrive()
  await trip.settle()
  expect(client.told()).toEqual([])
  expect(await trip.local.dead()).toEqual([])
})

test('case 150: a message that no version can read, and one of a version to come, are kept word for word, and left to the operator', async () => {
  const bodies = ['not json', '{"v":99,"kind":"wake"}']
  await giveUp('look', async () => {
    for (const body of bodies) await sendAgain(inside.queues, 'look', 'some', body)
  })
  expect((await trip.local.dead()).map(({ body }) => body).sort()).toEqual(bodies.sort())
  expect((await redrive({ dryRun: true })).messages.count).toBe(0)
  const operator = routesOf(trip.local.apiOrigin, trip.local.operatorKey)
  const { messages } = await operator.call<Redriven>('POST', '/v1/redrive', { dryRun: true })
  expect(messages.shown.map(({ reason }) => reason).sort()).toEqual(['future_version', 'unreadable'])
  expect((await operator.call<Redriven>('POST', '/v1/redrive', {})).messages.count).toBe(2)
  expect((await trip.local.messages('look')).map(({ body }) => body).sort()).toEqual(bodies.sort())
})

test('messages that were given up come page by page too, and a page says whether more follow', async () => {
  await giveUp('look', async () => {
    for (const n of [1, 2, 3]) await sendAgain(inside.queues, 'look', 'some', `not json ${n}`)
  })
  const operator = routesOf(trip.local.apiOrigin, trip.local.operatorKey)
  for (const dryRun of [true, false]) {
    const seen: string[][] = []
    for (let next: string | undefined = ''; next !== undefined; ) {
      const path = `/v1/redrive?limit=1${next && `&after=${next}`}`
      const page: Redriven = await operator.call('POST', path, { dryRun })
      seen.push(page.messages.shown.map(({ id }) => id))
      next = page.next
    }
    expect(Math.max(...seen.map(({ length }) => length))).toBe(1)
    // Those of the test before are given up again.
    expect(seen.flat().length).toBeGreaterThanOrEqual(3)
    expect(new Set(seen.flat()).size).toBe(seen.flat().length)
  }
  expect((await operator.call<Redriven>('POST', '/v1/redrive', {})).messages.count).toBe(0)
})

test('a failed wake is counted by a dry run, tried again from the start by a redrive, and comes under its id', async () => {
  const { client, id, target, enable } = await failedWake()
  await enable()
  const { wakes } = await redrive({ dryRun: true, target })
  expect(wakes).toMatchObject({ count: 1, shown: [{ id, target }] })
  expect(client.told()).toHaveLength(1)
  expect((await redrive({ target, until: 1 })).wakes.count).toBe(0)
  expect((await redrive({ target })).wakes).toMatchObject({
    count: 1,
    shown: [{ id, status: 'pending', tries: 0, next: expect.any(Number) }],
  })
  await trip.settle()
  expect(client.told().map(told => told.id)).toEqual([id, id])
  expect(await trip.wake(id)).toMatchObject({
    status: 'delivered',
    tries: 1,
    attempts: [{ status: 410 }, { status: 200 }],
  })
  expect((await redrive({ target })).wakes.count).toBe(0)
})

test('a redrive goes on page by page, and leaves alone wakes whose target may not be called', async () => {
  const [one, other, gone] = [await failedWake(), await failedWake(), await failedWake()]
  await Promise.all([one.enable(), other.enable()])
  const seen: Redriven[] = []
  for (let next: string | undefined = ''; next !== undefined; next = seen.at(-1)?.next)
    seen.push(
      await trip.call<Redriven>('POST', `/v1/redrive?limit=1${next && `&after=${next}`}`, {
        agent: scene.id,
      }),
    )
  await trip.settle()
  const ids = (which: 'wakes' | 'skipped') => seen.flatMap(page => page[which].shown.map(({ id }) => id))
  expect(ids('wakes').sort()).toEqual([one.id, other.id].sort())
  expect(ids('skipped')).toEqual([gone.id])
  expect(await trip.wake(gone.id)).toMatchObject({ status: 'failed' })
  const [page] = seen
  expect(await trip.refused('POST', `/v1/redrive?limit=1&after=${page?.next}`, {})).toMatchObject({
    status: 422,
  })
})

test('one wake is tried again by its id, but not while it is on its way', async () => {
  const { client, id, enable } = await failedWake()
  expect(await trip.refused('POST', `/v1/wakes/${id}/retry`)).toMatchObject({ status: 409 })
  await enable()
  client.answer({ status: 500 })
  await trip.call('POST', `/v1/wakes/${id}/retry`)
  await trip.settle()
  expect(await trip.refused('POST', `/v1/wakes/${id}/retry`)).toMatchObject({ status: 409, code: 'conflict' })
  client.answer({})
  await trip.pass(10_000)
  expect(client.told().map(told => told.id)).toEqual([id, id, id])
  const strange = `wk_${idOf('nobody')}${idOf('nothing')}`
  expect(await trip.refused('POST', `/v1/wakes/${strange}/retry`)).toMatchObject({ status: 404 })
})

test('a wake whose queueing was lost when it was tried again is found by its timer', async () => {
  const { client, id, enable } = await failedWake()
  await enable()
  const held = trip.hold(({ who, operation }) => who === 'api' && operation === 'SendMessage')
  const asked = trip.call('POST', `/v1/wakes/${id}/retry`)
  await held.held
  await trip.pass(310_000, 2)
  expect(client.told().map(told => told.id)).toEqual([id, id])
  held.release()
  await asked
  await trip.settle()
  expect(client.told()).toHaveLength(2)
})

test('a client’s past goes to a target again: under the ids it had, and to a new one under ids of its own that stay', async () => {
  const { client, taskId } = await trip.begin(scene)
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  const [first] = client.told()
  const asked = { client: client.name, target: first?.data.target }
  expect(await replay({ ...asked, dryRun: true })).toMatchObject({ queued: 1, skipped: 0 })
  const whole = await replay(asked)
  expect(whole).toMatchObject({ queued: 1 })
  expect(whole).not.toHaveProperty('next')
  await trip.settle()
  expect(client.told().map(({ id }) => id)).toEqual([first?.id, first?.id])
  expect(await replay({ ...asked, after: '1' })).toMatchObject({ queued: 0 })
  expect(await replay({ ...asked, since: trip.local.now() + 1 })).toMatchObject({ queued: 0 })

  const other = trip.clients.make()
  const { secret } = await trip.call<{ secret: string }>('PUT', '/v1/targets/tablet', { url: other.url })
  other.secret = secret
  for (const _ of [1, 2]) {
    expect(await replay({ client: client.name, target: 'tablet' })).toMatchObject({ queued: 1 })
    await trip.settle()
  }
  const ids = other.told().map(({ id }) => id)
  expect(ids).toEqual([ids[0], ids[0]])
  expect(other.told()[0]).toMatchObject({ type: 'task.completed', data: { taskId, seq: 1 } })
  expect(ids[0]).not.toBe(first?.id)
  expect(client.told()).toHaveLength(2)
})

test('a replay to a target that another subscription of the client told comes under the id that it had, whoever left since', async () => {
  const { client, taskId, made } = await trip.begin(scene)
  const desk = trip.clients.make()
  const target = `desk-of-${taskId}`
  const { secret } = await trip.call<{ secret: string }>('PUT', `/v1/targets/${target}`, { url: desk.url })
  desk.secret = secret
  await trip.subscribe(scene.id, { taskId, client: client.name, targets: [target] })
  await trip.pass(3000, 3)
  await scene.agent.setState(taskId, 'completed')
  await trip.pass(3000, 3)
  const [first] = desk.told()
  expect(first).toMatchObject({ type: 'task.completed' })
  const again = async () => {
    expect(await replay({ client: client.name, target })).toMatchObject({ queued: 1 })
    await trip.settle()
    return desk.told().map(({ id }) => id)
  }
  expect(await again()).toEqual([first?.id, first?.id])
  await trip.call('DELETE', `/v1/subscriptions/${made.id}`)
  expect(await again()).toEqual([first?.id, first?.id, first?.id])
})

test('a replay leaves out what newer news tells, and what a subscription that is over told', async () => {
  const { client, taskId, made } = await trip.begin(scene, { states: ['working', 'completed'] })
  await scene.agent.setState(taskId, 'completed')
  await trip.settle()
  const asked = { client: client.name, target: made.targets[0]?.target }
  expect(client.states()).toEqual(['working', 'completed'])
  expect(await replay({ ...asked, dryRun: true })).toMatchObject({ queued: 1, skipped: 1 })
  const named = trip.clients.make()
  await trip.call('PUT', '/v1/targets/desk', { url: named.url })
  await trip.call('DELETE', `/v1/subscriptions/${made.id}`)
  expect(await replay({ ...asked, target: 'desk' })).toMatchObject({ queued: 0, skipped: 2 })
})

test.each([
  ['/redrive', { targets: 'x' }, '/targets'],
  ['/redrive', { since: -1 }, '/since'],
  ['/redrive', { since: 10, until: 5 }, '/until'],
  ['/inbox/replay', { target: 'x' }, '/client'],
  ['/inbox/replay', { client: 'c', target: 'nobody-s' }, '/target'],
  ['/inbox/replay', { client: 'c', target: 'x', after: 'one' }, '/after'],
])('%s names the field that is wrong in %j', async (path, asked, pointer) => {
  const problem = await trip.refused('POST', `/v1${path}`, asked)
  expect(problem).toMatchObject({ status: 422, errors: [{ pointer }] })
})
