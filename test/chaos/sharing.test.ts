// Many wait for one task, each with credentials of its own, and the agent serves them unlike: nobody's troubles are another's news.
import { beforeAll, expect, test } from 'vitest'
import { type Asked, answering, bearer, error, forbidden, gone, refused, whose } from '../support/bearers.ts'
import type { Answer } from '../support/receiver.ts'
import { status } from '../support/scripted.ts'
import { push, statusPush } from '../support/trip.ts'
import { day, hearOperations, hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

waitsOfFile()
/** What operations were told of an agent. */
let aboutAgent: (id: string) => string[]
beforeAll(async () => {
  aboutAgent = await hearOperations(trip)
})

const expired = 'subscription.credentials_expired'
const asks = status('input-required', { message: { messageId: 'q', parts: [] } })

test.each<[string, Answer]>([
  ['does not serve', { status: 500 }],
  ['takes no more calls of', { status: 429 }],
  ['asks to wait a minute', { status: 429, headers: { 'retry-after': '60' } }],
])('news reach who sees a task though the agent %s those that came later', async (_, answer) => {
  const { agent, id, taskId, hook, client } = await world.begin({}, bearer('good'))
  answering(agent, taskId, token => (token === 'good' ? undefined : answer))
  const others = []
  for (let n = 0; n < 4; n++) others.push(await trip.subscribe(id, { taskId, ...bearer(`less-${n}`) }))
  await trip.pass(30 * minute, 30)
  agent.put(taskId, asks)
  await push(hook, statusPush(taskId, 'input-required'))
  await trip.pass(10 * minute, 20)
  for (const one of [client, ...others.map(other => other.client)])
    expect(typesTold(one)).toEqual(['task.input_required'])
  expect(whose(agent, taskId)).toBe('good')
  expect(aboutAgent(id)).toEqual([])
})

test('a task that is not found any more is lost though the agent never serves those that came later', async () => {
  const { agent, id, taskId, client } = await world.begin({}, bearer('good'))
  answering(agent, taskId, (token, asked) => (token === 'good' ? gone(asked) : { status: 500 }))
  const other = await trip.subscribe(id, { taskId, ...bearer('less') })
  await trip.pass(day, 200)
  expect(typesTold(client)).toEqual(['task.orphaned'])
  // Of this one nothing is known but that it is not served.
  expect(typesTold(other.client)).toEqual([])
  answering(agent, taskId, (_, asked) => gone(asked))
  await trip.pass(day, 100)
  expect(typesTold(client)).toEqual(['task.orphaned'])
  expect(typesTold(other.client)).toEqual(['task.orphaned'])
})

test('a task is not lost because those that came first do not see it while the agent serves nobody else for a while', async () => {
  const { agent, id, taskId } = await world.begin({}, bearer('less'))
  const other = await trip.subscribe(id, { taskId, ...bearer('good') })
  await trip.pass(10 * minute, 10)
  agent.put(taskId, asks)
  let down = true
  answering(agent, taskId, (token, asked) =>
    token === 'less' ? gone(asked) : down ? { status: 503 } : undefined,
  )
  await trip.pass(2 * minute, 20)
  down = false
  await trip.pass(20 * minute, 20)
  expect(typesTold(other.client)).toEqual(['task.input_required'])
})

test('a state is told again to nobody because the credentials of another were told as refused', async () => {
  const { agent, id, taskId, client } = await world.begin({}, bearer('good'))
  const other = await trip.subscribe(id, { taskId, ...bearer('bad') })
  agent.put(taskId, asks)
  await trip.pass(30 * minute, 30)
  expect(typesTold(client)).toEqual(['task.input_required'])
  for (let n = 0; n < 3; n++) {
    answering(agent, taskId, token => (token === 'good' ? { status: 503 } : refused()))
    await trip.pass(2 * hour, 60)
    answering(agent, taskId, token => (token === 'good' ? undefined : refused()))
    await trip.pass(2 * hour, 60)
  }
  expect(typesTold(client)).toEqual(['task.input_required'])
  // What it was told is taken back once; its credentials are the same, of which it was told.
  expect(typesTold(other.client)).toEqual(['task.input_required', expired, 'task.input_required'])
})

test('credentials that served since are told anew once they are refused again', async () => {
  const week = 7 * 24 * 3600
  const { agent, id, taskId, client } = await world.begin({}, { ...bearer('one'), pauseTimeoutSeconds: week })
  agent.put(taskId, asks)
  await trip.pass(30 * minute, 30)
  const told = ['task.input_required']
  for (let n = 0; n < 2; n++) {
    agent.instead(refused)
    await trip.pass(8 * hour, 60)
    told.push(expired)
    expect(typesTold(client)).toEqual(told)
    agent.instead(undefined)
    await trip.pass(12 * hour, 60)
    told.push('task.input_required')
    expect(typesTold(client)).toEqual(told)
  }
  expect(aboutAgent(id)).toEqual([])
})

test('credentials that are replaced while another’s see the task are told as refused once each', async () => {
  const { agent, id, taskId, client } = await world.begin({}, bearer('good'))
  const other = await trip.subscribe(id, { taskId, ...bearer('bad') })
  agent.put(taskId, asks)
  let down = true
  answering(agent, taskId, token => (token !== 'good' ? refused() : down ? { status: 503 } : undefined))
  await trip.pass(2 * hour, 60)
  down = false
  await trip.pass(2 * hour, 60)
  await trip.call('PUT', `/v1/subscriptions/${other.made.id}/credentials`, bearer('worse'))
  await trip.pass(2 * hour, 30)
  down = true
  await trip.pass(5 * hour, 60)
  down = false
  await trip.pass(5 * hour, 60)
  expect(typesTold(client)).toEqual(['task.input_required'])
  expect(typesTold(other.client).filter(type => type === expired)).toHaveLength(2)
})

test('who comes late is told that a task is lost once its own credentials do not show it either', async () => {
  const { agent, id, taskId, client } = await world.begin({}, bearer('first'))
  agent.put(taskId, asks)
  await trip.pass(10 * minute, 10)
  answering(agent, taskId, (token, asked) => (token === 'good' ? undefined : gone(asked)))
  await trip.pass(hour, 30)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.orphaned'])
  const less = await trip.subscribe(id, { taskId, ...bearer('less') })
  await trip.pass(hour, 120)
  expect(typesTold(less.client)).toEqual(['task.input_required', 'task.orphaned'])
  const good = await trip.subscribe(id, { taskId, ...bearer('good') })
  await trip.pass(hour, 120)
  expect(typesTold(good.client)).toEqual(['task.input_required'])
  const back = ['task.input_required', 'task.orphaned', 'task.input_required']
  expect(typesTold(client)).toEqual(back)
  expect(typesTold(less.client)).toEqual(back)
})

test('who comes late with good credentials to a lost task is not told so, though a budget ends just then', async () => {
  const { agent, id } = await world.agentOf()
  const taskId = `late-${id}`
  answering(agent, taskId, (token, asked) => (token === 'good' ? undefined : gone(asked)))
  const first = await trip.subscribe(id, { taskId, hopTimeoutSeconds: 3660, ...bearer('first') })
  await trip.pass(hour, 20)
  expect(typesTold(first.client)).toEqual(['task.lost_access'])
  agent.instead(() => ({ status: 503 }))
  await trip.pass(50_000, 1)
  const late = await trip.subscribe(id, { taskId, ...bearer('good') })
  await trip.pass(20 * minute, 40)
  expect(typesTold(first.client)).toEqual(['task.lost_access', 'task.overdue'])
  agent.put(taskId, asks)
  answering(agent, taskId, (token, asked) => (token === 'good' ? undefined : gone(asked)))
  await trip.pass(hour, 60)
  expect(typesTold(late.client)).not.toContain('task.lost_access')
  expect(typesTold(late.client).at(-1)).toBe('task.input_required')
})

test.each([['client'], ['budget']])(
  'a task that a %s wants canceled is so though only the oldest of seven credentials may',
  async who => {
    const budget = who === 'budget' ? { hopTimeoutSeconds: 600, onOverdue: 'cancel' } : {}
    const { agent, id, taskId, client } = await world.begin({}, bearer('good'))
    for (let n = 0; n < 6; n++) await trip.subscribe(id, { taskId, ...bearer(`less-${n}`), ...budget })
    answering(agent, taskId, (token, { id: of, method }) => {
      if (method !== 'CancelTask') return undefined
      if (token !== 'good') return forbidden()
      agent.put(taskId, status('canceled'))
      return {
        body: JSON.stringify({ jsonrpc: '2.0', id: of, result: { ...status('canceled'), id: taskId } }),
      }
    })
    if (who === 'client') await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
    await trip.pass(hour, 120)
    expect(typesTold(client)).toEqual(['task.canceled'])
    const { timeline } = await trip.task(id, taskId)
    const notes = timeline.steps.map(({ note }) => note).filter(note => note !== undefined)
    expect(notes).toEqual([expect.not.stringContaining('refused')])
  },
)

test('a cancellation that nobody’s credentials may is told as refused once each was asked with', async () => {
  const { agent, id, taskId, client } = await world.begin({}, bearer('less-0'))
  for (let n = 1; n < 7; n++) await trip.subscribe(id, { taskId, ...bearer(`less-${n}`) })
  answering(agent, taskId, (_, { method }) => (method === 'CancelTask' ? forbidden() : undefined))
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(hour, 120)
  expect(typesTold(client)).toEqual(['task.cancel_refused'])
  expect(client.told()[0]?.data).toMatchObject({ by: 'client', reason: 'forbidden' })
  const cancels = agent.calls(taskId).filter(({ method }) => method === 'CancelTask')
  const tokens = cancels.map(({ headers }) => headers.authorization)
  expect(new Set(tokens).size).toBe(7)
  expect(tokens.length).toBeLessThan(10)
})

test('what is told of a task is one entry of a client, through however many of its subscriptions', async () => {
  const { agent, id, taskId, client } = await world.begin({}, bearer('one'))
  const asked = { taskId, client: client.name, targets: [], ...bearer('two') }
  await trip.subscribe(id, { ...asked, states: ['completed'] })
  const entries = async () => (await trip.inbox(client.name)).entries.map(({ type }) => type)
  answering(agent, taskId, (token, one) => (token === 'one' ? gone(one) : refused()))
  await trip.pass(hour, 60)
  answering(agent, taskId, (_, one) => gone(one))
  await trip.pass(8 * hour, 60)
  const lost = [expired, 'task.orphaned']
  expect((await entries()).toSorted()).toEqual(lost)
  agent.instead(undefined)
  await trip.pass(12 * hour, 60)
  expect((await entries()).slice(2)).toEqual(['task.working'])
  answering(agent, taskId, (_, one) => gone(one))
  await trip.pass(12 * hour, 60)
  agent.instead(undefined)
  agent.put(taskId, asks)
  await trip.pass(12 * hour, 60)
  expect((await entries()).slice(3)).toEqual(['task.orphaned', 'task.input_required'])
  expect(typesTold(client).slice(-2)).toEqual(['task.orphaned', 'task.input_required'])
})

const canceled = (taskId: string, id: string): Answer => ({
  body: JSON.stringify({ jsonrpc: '2.0', id, result: { ...status('canceled'), id: taskId } }),
})

test.each<[string, (asked: Asked) => Answer]>([
  ['does not serve', () => ({ status: 500 })],
  ['takes no more calls of', () => ({ status: 429 })],
  ['fails for', error(-32603)],
])('a task is canceled with the credentials that may though the agent %s newer ones', async (_, answer) => {
  const { agent, id, taskId, client } = await world.begin({}, bearer('good'))
  await trip.subscribe(id, { taskId, ...bearer('less') })
  answering(agent, taskId, (token, asked) => {
    if (asked.method !== 'CancelTask') return undefined
    if (token !== 'good') return answer(asked)
    agent.put(taskId, status('canceled'))
    return canceled(taskId, asked.id)
  })
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(3 * hour, 60)
  expect(typesTold(client)).toEqual(['task.canceled'])
})

test.each([[500], [429]])(
  'a cancellation that one may not, and that another is answered %i, is refused in the end',
  async code => {
    const { agent, id, taskId, client } = await world.begin({}, bearer('seer'))
    await trip.subscribe(id, { taskId, ...bearer('less') })
    answering(agent, taskId, (token, { method }) => {
      if (token === 'less') return { status: code }
      return method === 'CancelTask' ? forbidden() : undefined
    })
    await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
    await trip.pass(3 * hour, 180)
    expect(typesTold(client)).toEqual(['task.cancel_refused'])
    const cancels = agent.calls(taskId).filter(({ method }) => method === 'CancelTask')
    expect(cancels.length).toBeLessThan(25)
  },
)

test.each([[500], [429]])(
  'a task is seen in the version that its agent speaks now though another is answered %i',
  async code => {
    const { agent, id, taskId, client } = await world.begin({}, bearer('good'))
    await trip.subscribe(id, { taskId, ...bearer('less') })
    await trip.pass(10 * minute, 10)
    answering(agent, taskId, (token, asked) => {
      if (token === 'less') return { status: code }
      if (asked.method === 'GetTask') return error(-32601)(asked)
      const question = { kind: 'message', role: 'agent', messageId: 'q', parts: [] }
      const old = {
        kind: 'task',
        id: taskId,
        contextId: 'c',
        status: { state: 'input-required', message: question },
      }
      return { body: JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: old }) }
    })
    await trip.pass(8 * hour, 60)
    expect(typesTold(client)).toEqual(['task.input_required'])
  },
)
