// Agents that answer GetTask wrongly: each ends in a stated outcome, never in a loop or in another task's words, and is forgiven once it answers.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Variant } from '../../infra/local/agent/cards.ts'
import type { Lie } from '../../infra/local/agent/lies.ts'
import type { SeenTask } from '../support/routes.ts'
import { type Begun, push, type Scene, startTrip, statusPush, type Trip } from '../support/trip.ts'

let trip: Trip

beforeAll(async () => {
  trip = await startTrip()
})

afterAll(() => trip.stop())

afterEach(async () => {
  expect(await trip.local.dead()).toEqual([])
  expect(trip.steps.filter(({ step }) => step === 'message.failed')).toEqual([])
})

const lies: [lie: Lie, trouble: string][] = [
  ['not_found', 'not_found'],
  ['forbidden', 'forbidden'],
  ['unauthorized', 'unauthorized'],
  ['another_task', 'wrong_task'],
  ['rubbish', 'unreadable'],
  ['hang_up', 'unreachable'],
  ['rate_limited', 'rate_limited'],
  ['unavailable', 'unreachable'],
]

type Facts = { task: SeenTask; states: string[]; looks: number }
type Played = { taskId: string; troubled: Facts; healed: Facts }

/** Those that the agent words differently by version and binding. */
const worded = lies.filter(([lie]) => ['not_found', 'another_task', 'forbidden', 'rubbish'].includes(lie))

describe.each<[name: string, variant: Partial<Variant>, known: boolean, told: typeof lies]>([
  ['a task seen before, A2A 1.0 over JSONRPC', { version: '1.0', binding: 'JSONRPC' }, true, lies],
  ['a task seen before, A2A 0.3 over HTTP+JSON', { version: '0.3', binding: 'HTTP+JSON' }, true, worded],
  ['a task never seen', { version: '1.0', binding: 'JSONRPC' }, false, worded],
])('%s', (_name, variant, known, told) => {
  const played = new Map<Lie, Played>()

  /** All agents begin to lie, their tasks end, ten minutes pass; then they tell the truth again. */
  beforeAll(async () => {
    const begun: (Scene & Begun & { lie: Lie })[] = []
    for (const [lie] of told) {
      const scene = await trip.scene({ variant })
      const taskId = await scene.caller.send('work')
      if (!known) scene.agent.lie(lie)
      begun.push({ ...scene, lie, taskId, ...(await trip.subscribe(scene.id, { taskId })) })
    }
    await trip.pass(2000)
    const factsOf = async ({ id, agent, taskId, client }: (typeof begun)[number]): Promise<Facts> => ({
      task: await trip.task(id, taskId),
      // Steps name no state where none was ever seen.
      states: client.states().filter(state => state !== undefined),
      looks: agent.calls('GetTask'),
    })
    for (const { agent, lie, taskId } of begun) {
      agent.lie(lie)
      await agent.setState(taskId, 'completed')
    }
    await trip.pass(600_000, 6)
    const troubled = await Promise.all(begun.map(factsOf))
    for (const { agent } of begun) agent.lie(undefined)
    await trip.pass(1_200_000, 2)
    for (const [at, one] of begun.entries()) {
      const before = troubled[at]
      if (before !== undefined)
        played.set(one.lie, { taskId: one.taskId, troubled: before, healed: await factsOf(one) })
    }
  }, 120_000)

  test.each(told)('an agent that says %s is in trouble (%s), and nobody is told a state', (lie, trouble) => {
    const { task, states, looks } = played.get(lie)?.troubled ?? {}
    expect(task).toMatchObject({ state: known ? 'working' : null, stale: true, trouble: { code: trouble } })
    expect(states).toEqual([])
    expect(looks).toBeLessThan(30)
  })

  test.each(told)(
    'once an agent that said %s answers, the client is told once, and no trouble is left',
    lie => {
      const { taskId, healed } = played.get(lie) ?? {}
      expect(healed?.task).toMatchObject({ state: 'completed', stale: false, task: { id: taskId } })
      expect(healed?.task.trouble).toBeUndefined()
      expect(healed?.states).toEqual(['completed'])
    },
  )
})

test('looks at an agent that is wrong for a day are few', async () => {
  const { id, agent, caller } = await trip.scene()
  const taskId = await caller.send('work')
  await trip.subscribe(id, { taskId })
  await trip.settle()
  agent.lie('not_found')
  await trip.pass(24 * 3_600_000, 12)
  expect(agent.calls('GetTask')).toBeLessThan(60)
  expect(await trip.local.messages('look')).toEqual([])
})

test('a push binds no subscription to a task that the agent does not have, and leaves no work behind', async () => {
  const { id, agent, caller } = await trip.scene()
  const { made, client, hook } = await trip.subscribe(id)
  expect(await push(hook, statusPush('no-such-task', 'completed'))).toBe(202)
  await trip.pass(50_000, 10)
  const looks = agent.calls('GetTask')
  expect(looks).toBeLessThan(10)
  await trip.pass(6 * 3_600_000, 6)
  expect(await trip.local.messages('look')).toEqual([])
  expect(agent.calls('GetTask')).toBe(looks)
  const taskId = await caller.send('work', { config: made.pushNotificationConfigs['1.0'] })
  await trip.until(() => trip.stepsOf('notice.queued', taskId).length > 0)
  await trip.pass(2000, 2)
  await agent.setState(taskId, 'completed')
  await trip.pass(2000, 2)
  expect(client.told()).toMatchObject([{ type: 'task.completed', data: { taskId } }])
})

test('case 152: an agent that never answers holds up no other agent', async () => {
  const [dead, alive] = [await trip.scene(), await trip.scene()]
  const silent = await dead.caller.send('work')
  const taskId = await alive.caller.send('done at once')
  dead.agent.lie('silence')
  await trip.subscribe(dead.id, { taskId: silent })
  const { client } = await trip.subscribe(alive.id, { taskId })
  await trip.until(() => client.told().length > 0)
  expect(dead.agent.calls('GetTask')).toBe(1)
  expect(trip.stepsOf('look.failed', silent)).toEqual([])
})
