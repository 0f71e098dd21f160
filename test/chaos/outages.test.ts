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
