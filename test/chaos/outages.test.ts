// Outages of targets, whatever begins them: operations hear of each once, and of its end.
import { beforeAll, expect, test } from 'vitest'
import type { Client } from '../support/clients.ts'
import type { Answer } from '../support/receiver.ts'
import { status } from '../support/scripted.ts'
import { push, statusPush } from '../support/trip.ts'
import { day, minute, trip, waitsOfFile, world } from '../support/waits.ts'

waitsOfFile()

const wish: Answer = { status: 503, headers: { 'retry-after': '60' } }
const broken: Answer = { status: 500 }

let operations: Client

/** A target with a name, and whom it reaches. */
async function makeTarget(target: string): Promise<Client> {
  const reached = trip.clients.make()
  const { secret } = await trip.call<{ secret: string }>('PUT', `/v1/targets/${target}`, { url: reached.url })
  reached.secret = secret
  return reached
}

beforeAll(async () => {
  operations = await makeTarget('operations')
  await trip.call('PUT', '/v1/operations', { targets: ['operations'] })
})

/** Somebody waits at a target for a task, which ends. */
async function tell(target: string): Promise<void> {
  const { agent, taskId, hook } = await world.begin({}, { targets: [target] })
  agent.put(taskId, status('completed'))
  await push(hook, statusPush(taskId, 'completed'))
  await trip.settle()
}

const see = (target: string): Promise<Record<string, unknown>> => trip.call('GET', `/v1/targets/${target}`)

/** What operations were told of a target, in order. */
const toldOf = (target: string): string[] =>
  operations
    .told()
    .filter(({ data }) => data.about?.target === target)
    .map(({ type }) => type)

test.each<[target: string, answers: string, Answer]>([
  ['wishes', 'goes on to ask for time', wish],
  ['breaks', 'asked for time once and then answers 500', broken],
])(
  'an outage of a target that %s (%s) is told once, when it is one, and so is its end',
  async (target, _, then) => {
    const client = await makeTarget(target)
    client.answer(wish)
    await tell(target)
    client.answer(then)
    await trip.pass(5 * minute, 10)
    expect((await see(target)).failures).toBeLessThan(10)
    expect(toldOf(target)).toEqual([])
    await trip.pass(day, 48)
    expect(await see(target)).toMatchObject({ status: 'paused' })
    expect(toldOf(target)).toEqual(['target.paused'])
    client.answer({})
    await trip.pass(125 * minute, 25)
    expect(await see(target)).toMatchObject({ status: 'active' })
    expect(toldOf(target)).toEqual(['target.paused', 'target.recovered'])
  },
)

test('a target that failed for days, was not called for days and then fails once is not given up; one that goes on to fail is', async () => {
  const client = await makeTarget('quiet')
  client.answer(broken)
  await tell('quiet')
  // Its one wake uses up its tries; nobody else is sent there.
  await trip.pass(10 * minute, 5)
  await trip.pass(4 * day, 96)
  expect(client.told()).toHaveLength(10)
  client.answer({})
  await trip.pass(16 * day, 32)
  client.answer(broken)
  await tell('quiet')
  expect(client.told()).toHaveLength(11)
  expect(await see('quiet')).toMatchObject({ status: 'paused', failures: 1 })
  expect(toldOf('quiet')).toEqual(['target.paused'])
  await trip.pass(4.9 * day, 118)
  expect(toldOf('quiet')).toEqual(['target.paused'])
  expect(await see('quiet')).toMatchObject({ status: 'paused' })
  await trip.pass(0.2 * day, 5)
  expect(await see('quiet')).toMatchObject({ status: 'disabled' })
  expect(toldOf('quiet')).toEqual(['target.paused', 'target.disabled'])
})
