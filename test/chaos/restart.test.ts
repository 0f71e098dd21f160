// What outlives a restart, a changed bearer and a new root key; and two principals who see one task each with its own eyes.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { callAgent } from '../../infra/local/agent/caller.ts'
import { makeFolder } from '../support/folder.ts'
import { freePorts } from '../support/ports.ts'
import { push, startTrip, statusPush, type Trip } from '../support/trip.ts'

/** A relay that keeps its data and its ports. */
async function keptTrip(): Promise<{ trip: Trip; dir: string }> {
  const dir = makeFolder()
  const trip = await startTrip({ dir, ports: await freePorts() })
  onTestFinished(() => trip.stop())
  return { trip, dir }
}

test('a restart keeps agents, subscriptions, tasks, inbox, wakes, keys, and the time', async () => {
  const { trip } = await keptTrip()
  const scene = await trip.scene()
  const [over, open] = [await trip.begin(scene), await trip.begin(scene)]
  await scene.agent.setState(over.taskId, 'completed')
  await trip.settle()
  await trip.pass(3 * 3_600_000)
  const all = () =>
    Promise.all([
      trip.call('GET', `/v1/agents/${scene.id}`),
      trip.call('GET', '/v1/subscriptions'),
      trip.call('GET', `/v1/wakes?agent=${scene.id}&task=${over.taskId}`),
      trip.inbox(over.client.name),
      trip.local.keys,
    ])
  const [before, then] = [await all(), trip.local.now()]
  await trip.restart()
  expect(trip.local.now()).toBeGreaterThanOrEqual(then)
  expect(await all()).toEqual(before)
  expect(await trip.task(scene.id, over.taskId)).toMatchObject({
    state: 'completed',
    task: { id: over.taskId },
  })
  await scene.agent.setState(open.taskId, 'completed')
  await trip.pass(2000)
  expect(open.client.states()).toEqual(['completed'])
  expect(over.client.states()).toEqual(['completed'])
})

test('what waits in queues and timers when the relay stops is done after the restart', async () => {
  const { trip } = await keptTrip()
  const scene = await trip.scene()
  const [retried, lost] = [await trip.begin(scene), await trip.begin(scene)]
  retried.client.answer({ status: 500 })
  await scene.agent.setState(retried.taskId, 'completed')
  await scene.agent.setState(lost.taskId, 'completed', { push: false })
  await trip.settle()
  await trip.restart()
  retried.client.answer({})
  await trip.pass(70_000, 2)
  expect(retried.client.states()).toEqual(['completed', 'completed'])
  expect(new Set(retried.client.told().map(({ id }) => id)).size).toBe(1)
  expect(lost.client.states()).toEqual(['completed'])
})

test('hooks, tokens and sealed secrets of an old root key go on when a new one is added; new hooks use the new one', async () => {
  const { trip, dir } = await keptTrip()
  const agent = await trip.startAgent({ bearer: 'alice.1' })
  const credentials = { type: 'bearer', token: 'alice.1' }
  const { id } = await trip.register(agent, { credentials })
  const caller = await callAgent(agent.cardUrl({}), 'alice.1')
  const old = await trip.begin({ id, agent, caller })
  const { rootKeys } = JSON.parse(readFileSync(join(dir, 'secrets.json'), 'utf8'))
  const added = `2:${Buffer.alloc(32, 7).toString('base64url')}`
  await trip.restart({ ROOT_KEYS: `${rootKeys},${added}` })

  expect(await push(old.hook, statusPush(old.taskId, 'working'))).toBe(202)
  await trip.pass(2000)
  await agent.setState(old.taskId, 'completed')
  await trip.pass(2000, 2)
  expect(old.client.states()).toEqual(['completed'])

  const fresh = await trip.begin({ id, agent, caller })
  await agent.setState(fresh.taskId, 'completed')
  await trip.settle()
  expect(fresh.client.states()).toEqual(['completed'])
  const versionOf = (url: string) => Buffer.from(url.split('/').at(-1) ?? '', 'base64url')[16]
  expect([versionOf(old.hook.url), versionOf(fresh.hook.url)]).toEqual([1, 2])
})

test('two principals on one task are each told what they see, and asked for by name', async () => {
  const trip = await startTrip()
  onTestFinished(() => trip.stop())
  const agent = await trip.startAgent()
  const { id, caller } = await trip.register(agent, { bearer: 'alice.1' })
  const taskId = await caller.send('work')
  const as = (principal: string, token: string) =>
    trip.subscribe(id, { taskId, principal, credentials: { type: 'bearer', token } })
  const [owner, auditor, stranger] = [
    await as('owner', 'alice.1'),
    await as('auditor', 'alice.2'),
    await as('stranger', 'bob.1'),
  ]
  await trip.settle()
  trip.local.advance(1000)
  await agent.setState(taskId, 'completed')
  await trip.settle()
  expect(owner.client.states()).toEqual(['completed'])
  expect(auditor.client.states()).toEqual(['completed'])
  expect(stranger.client.states()).toEqual([])
  const path = `/v1/tasks/${id}/${taskId}`
  expect(await trip.refused('GET', path)).toMatchObject({ status: 409, code: 'ambiguous' })
  for (const principal of ['owner', 'auditor'])
    expect(await trip.task(id, taskId, principal)).toMatchObject({ state: 'completed', task: { id: taskId } })
  expect(await trip.task(id, taskId, 'stranger')).toMatchObject({
    state: null,
    task: null,
    trouble: { code: 'not_found' },
  })
})

test('new credentials cause a look at once, and it is made with them', async () => {
  const trip = await startTrip()
  onTestFinished(() => trip.stop())
  const agent = await trip.startAgent({ bearer: 'alice.1' })
  const { id, caller } = await trip.register(agent, { bearer: 'alice.1' })
  const credentials = { type: 'bearer', token: 'alice.1' }
  const { client, made, taskId } = await trip.begin({ id, agent, caller }, { credentials })
  agent.require('alice.2')
  await agent.setState(taskId, 'completed')
  await trip.pass(20_000)
  expect(await trip.task(id, taskId)).toMatchObject({ stale: true, trouble: { code: 'unauthorized' } })
  expect(client.told()).toEqual([])
  const renewed = { credentials: { type: 'bearer', token: 'alice.2' } }
  trip.local.advance(1000)
  await trip.call('PUT', `/v1/subscriptions/${made.id}/credentials`, renewed)
  await trip.settle()
  expect(client.states()).toEqual(['completed'])
  expect(await trip.task(id, taskId)).toMatchObject({ state: 'completed', stale: false })
})
