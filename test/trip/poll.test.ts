// Without a push the news still comes: by polling where the agent cannot push, by deadline where a push was lost, by sweep where none was asked for.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startTrip, type Trip } from '../support/trip.ts'

let trip: Trip

describe('with a tick a minute that never comes', () => {
  let still: Trip

  beforeAll(async () => {
    still = await startTrip({ tick: 'minute' })
  })

  afterAll(() => still.stop())

  const queuedBy = (door: string): number =>
    still.calls.filter(({ who, operation }) => who === door && operation === 'SendMessage').length

  test('an agent that cannot push is polled every few seconds at first', async () => {
    const { id, agent, caller } = await still.scene({ variant: { pushes: false } })
    const taskId = await caller.send('work')
    const { client, made } = await still.subscribe(id, { taskId })
    expect(made.registration).toMatchObject({ status: 'unsupported' })
    // Each look queues the next one with a delay: no tick has a part in it.
    for (const count of [1, 2, 3]) {
      await still.until(() => queuedBy('look') >= count)
      still.local.advance(2000)
    }
    await still.until(() => queuedBy('look') >= 4)
    expect(still.stepsOf('task.looked', taskId).length).toBeGreaterThanOrEqual(4)
    await agent.setState(taskId, 'completed')
    still.local.advance(10_000)
    await still.until(() => client.told().length > 0)
    expect(client.states()).toEqual(['completed'])
    expect(agent.pushes()).toBe(0)
  })
})

describe('with a tick whenever something is due', () => {
  beforeAll(async () => {
    trip = await startTrip()
  })

  afterAll(() => trip.stop())

  test.each([
    { version: '1.0', binding: 'HTTP+JSON' },
    { version: '0.3', binding: 'JSONRPC' },
  ] as const)('a polled agent of A2A $version over $binding tells of every lasting state', async variant => {
    const { id, agent, caller } = await trip.scene({ variant: { ...variant, pushes: false } })
    const road = await trip.call<{ road: string }>('GET', `/v1/agents/${id}`)
    expect(road.road).toBe('poll')
    const taskId = await caller.send('ask')
    const { client } = await trip.subscribe(id, { taskId })
    await trip.pass(4000, 2)
    expect(client.states()).toEqual(['input-required'])
    await agent.setState(taskId, 'completed')
    await trip.pass(30_000, 3)
    expect(client.states()).toEqual(['input-required', 'completed'])
  })

  test('what a subscription is told to do about its push config fits what it is to', async () => {
    const { id, caller } = await trip.scene({ variant: { pushes: false } })
    const { id: pushing } = await trip.scene()
    const says = async (agent: string, asked: Record<string, unknown>): Promise<unknown> => {
      const { made } = await trip.subscribe(agent, asked)
      return made.registration
    }
    expect(await says(id, { taskId: await caller.send('work') })).toMatchObject({
      says: 'The agent cannot push; the task is polled.',
    })
    expect(await says(id, {})).toMatchObject({ says: expect.stringMatching(/: bind .*polled/) })
    expect(await says(id, { scope: 'agent' })).toMatchObject({ says: expect.stringMatching(/list.*polled/) })
    expect(await says(pushing, {})).toMatchObject({ says: expect.stringMatching(/SendMessage.*bind/) })
    expect(await says(pushing, { scope: 'agent' })).toMatchObject({ says: expect.not.stringMatching(/bind/) })
  })

  test('polling ends with the task', async () => {
    const { id, agent, caller } = await trip.scene({ variant: { pushes: false } })
    const taskId = await caller.send('done at once')
    const { client } = await trip.subscribe(id, { taskId })
    await trip.settle()
    expect(client.states()).toEqual(['completed'])
    const looks = agent.calls('GetTask')
    await trip.pass(3_600_000, 6)
    expect(agent.calls('GetTask')).toBe(looks)
    expect(client.states()).toEqual(['completed'])
  })

  test('polling a silent task grows slow and still hears of its end', async () => {
    const { id, agent, caller } = await trip.scene({ variant: { pushes: false } })
    const taskId = await caller.send('work')
    const { client } = await trip.subscribe(id, { taskId })
    await trip.pass(1_200_000, 5)
    const looks = agent.calls('GetTask')
    await trip.pass(600_000, 20)
    expect(agent.calls('GetTask') - looks).toBeLessThan(14)
    await agent.setState(taskId, 'failed')
    await trip.pass(120_000, 2)
    expect(client.states()).toEqual(['failed'])
  })

  test('a lost push is found by the deadline look', async () => {
    const { id, agent, caller } = await trip.scene()
    const taskId = await caller.send('work')
    const { client } = await trip.subscribe(id, { taskId })
    await trip.settle()
    await agent.setState(taskId, 'completed', { push: false })
    await trip.pass(30_000)
    expect(client.told()).toEqual([])
    await trip.pass(35_000)
    expect(client.states()).toEqual(['completed'])
    expect(trip.stepsOf('notice.stored', taskId)).toEqual([])
  })

  test('deadline looks at a silent task grow rare and never end', async () => {
    const { id, agent, caller } = await trip.scene()
    const taskId = await caller.send('work')
    const { client } = await trip.subscribe(id, { taskId })
    await trip.pass(24 * 3_600_000, 12)
    const looks = agent.calls('GetTask')
    expect(looks).toBeLessThan(20)
    await agent.setState(taskId, 'completed', { push: false })
    await trip.pass(7 * 3_600_000, 7)
    expect(client.states()).toEqual(['completed'])
  })

  describe('a subscription to a whole agent', () => {
    test('hears of each task by that task’s own push', async () => {
      const { id, agent, caller } = await trip.scene({ variant: { version: '0.3' } })
      const { client, made } = await trip.subscribe(id, { scope: 'agent' })
      const config = made.pushNotificationConfigs['1.0']
      const tasks = [await caller.send('work', { config }), await caller.send('work', { config })]
      await trip.until(() => tasks.every(taskId => trip.stepsOf('notice.queued', taskId).length > 0))
      await trip.pass(2000, 2)
      for (const taskId of tasks) await agent.setState(taskId, 'completed')
      await trip.pass(2000, 2)
      expect(
        client
          .told()
          .map(({ data }) => data.taskId)
          .sort(),
      ).toEqual(tasks.sort())
    })

    test('hears of a task that was never pushed by the sweep of a v1.0 agent', async () => {
      const { id, agent, caller } = await trip.scene()
      const { client } = await trip.subscribe(id, { scope: 'agent' })
      await trip.settle()
      const taskId = await caller.send('work')
      await trip.pass(310_000)
      await agent.setState(taskId, 'completed')
      await trip.pass(310_000)
      expect(client.told()).toMatchObject([{ type: 'task.completed', data: { taskId } }])
      expect(trip.stepsOf('notice.stored', taskId)).toEqual([])
      await trip.pass(900_000, 3)
      expect(client.told()).toHaveLength(1)
    })
  })

  afterEach(async () => {
    expect(await trip.local.dead()).toEqual([])
  })
})
