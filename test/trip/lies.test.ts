// Agents that answer GetTask wrongly: each ends in a stated outcome, never in a loop or in another task's words, and is forgiven once it answers.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { push, startTrip, statusPush, type Trip } from '../support/trip.ts'

let trip: Trip

beforeAll(async () => {
  trip = await startTrip()
})

afterAll(() => trip.stop())

afterEach(async () => {
  expect(await trip.local.dead()).toEqual([])
  expect(trip.steps.filter(({ step }) => step === 'message.failed')).toEqual([])
})

type Lie = NonNullable<Parameters<Awaited<ReturnType<Trip['startAgent']>>['lie']>[0]>

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

describe.each([
  { version: '1.0', binding: 'JSONRPC' },
  { version: '0.3', binding: 'HTTP+JSON' },
] as const)('A2A $version over $binding', variant => {
  test.each(lies)('an agent that says %s is in trouble (%s) until it answers', async (lie, trouble) => {
    const { id, agent, caller } = await trip.scene({ variant })
    const taskId = await caller.send('work')
    const { client } = await trip.subscribe(id, { taskId })
    await trip.pass(2000)
    agent.lie(lie)
    const looks = agent.calls('GetTask')
    await agent.setState(taskId, 'completed')
    await trip.pass(600_000, 6)
    expect(await trip.task(id, taskId)).toMatchObject({
      state: 'working',
      stale: true,
      trouble: { code: trouble },
    })
    expect(client.told()).toEqual([])
    expect(agent.calls('GetTask') - looks).toBeLessThan(25)
    agent.lie(undefined)
    await trip.pass(1_200_000, 2)
    expect(client.states()).toEqual(['completed'])
    const seen = await trip.task(id, taskId)
    expect(seen).toMatchObject({ state: 'completed', stale: false, task: { id: taskId } })
    expect(seen.trouble).toBeUndefined()
  })
})

test.each(lies)(
  'a task that was never seen because the agent says %s is told of once it answers',
  async (lie, trouble) => {
    const { id, agent, caller } = await trip.scene()
    const taskId = await caller.send('done at once')
    agent.lie(lie)
    const { client } = await trip.subscribe(id, { taskId })
    await trip.pass(60_000, 3)
    expect(await trip.task(id, taskId)).toMatchObject({
      state: null,
      stale: true,
      trouble: { code: trouble },
    })
    agent.lie(undefined)
    await trip.pass(600_000, 2)
    expect(client.states()).toEqual(['completed'])
  },
)

test('looks at an agent that is wrong for a day are few', async () => {
  const { id, agent, caller } = await trip.scene()
  const taskId = await caller.send('work')
  await trip.subscribe(id, { taskId })
  await trip.settle()
  agent.lie('not_found')
  await trip.pass(24 * 3_600_000, 24)
  expect(agent.calls('GetTask')).toBeLessThan(60)
  expect(await trip.local.messages('look')).toEqual([])
})

test('a push binds no subscription to a task that the agent does not have, and leaves no work behind', async () => {
  const { id, agent, caller } = await trip.scene()
  const { made, client, hook } = await trip.subscribe(id)
  expect(await push(hook, statusPush('no-such-task', 'completed'))).toBe(202)
  await trip.pass(3_600_000, 12)
  const looks = agent.calls('GetTask')
  expect(looks).toBeLessThan(10)
  expect(await trip.local.messages('look')).toEqual([])
  await trip.pass(6 * 3_600_000, 6)
  expect(agent.calls('GetTask')).toBe(looks)
  const taskId = await caller.send('work', { config: made.pushNotificationConfigs['1.0'] })
  await trip.until(() => trip.stepsOf('notice.queued', taskId).length > 0)
  await trip.pass(2000, 2)
  await agent.setState(taskId, 'completed')
  await trip.pass(2000, 2)
  expect(client.told()).toMatchObject([{ type: 'task.completed', data: { taskId } }])
})

test('an agent that never answers holds up no other agent', async () => {
  const [dead, alive] = [await trip.scene(), await trip.scene()]
  const silent = await dead.caller.send('work')
  const taskId = await alive.caller.send('done at once')
  dead.agent.lie('silence')
  await trip.subscribe(dead.id, { taskId: silent })
  const { client } = await trip.subscribe(alive.id, { taskId })
  await trip.until(() => client.told().length > 0)
  expect(trip.stepsOf('look.failed', silent)).toEqual([])
  dead.agent.lie(undefined)
  await trip.settle()
  expect(await trip.task(dead.id, silent)).toMatchObject({ trouble: { code: 'unreachable' } })
})
