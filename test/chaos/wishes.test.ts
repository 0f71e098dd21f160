// A task is to be canceled while several wait for it, each with credentials of its own: the wish comes to an end, and hides nothing meanwhile.
import { expect, test } from 'vitest'
import { type Asked, answering, bearer, forbidden, gone, refused } from '../support/bearers.ts'
import type { Answer } from '../support/receiver.ts'
import type { Scripted } from '../support/scripted.ts'
import { status } from '../support/scripted.ts'
import { push, statusPush } from '../support/trip.ts'
import { day, hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

/** What the look queues at which it dies, and stays dead until this is undefined. */
let deadAt: string | undefined
let dead = false
waitsOfFile({
  faults: ({ who, operation, body }) => {
    if (who !== 'look' || deadAt === undefined) return undefined
    if (operation.startsWith('SendMessage') && JSON.stringify(body).includes(deadAt)) dead = true
    return dead ? 'throttle' : undefined
  },
})

const asks = status('input-required', { message: { messageId: 'q', parts: [] } })
const month = { pauseTimeoutSeconds: 40 * 24 * 3600 }
const cancelsOf = (agent: Scripted, taskId: string): number =>
  agent.calls(taskId).filter(({ method }) => method === 'CancelTask').length
const notesOf = async (id: string, taskId: string) =>
  (await trip.task(id, taskId)).timeline.steps.map(({ note }) => note).filter(note => note !== undefined)
/** Writes of a look that set something. */
const setsOf =
  (name: string) =>
  ({ who, operation, body }: { who: string; operation: string; body: Record<string, unknown> }): boolean =>
    who === 'look' && operation === 'UpdateItem' && name in ((body.ExpressionAttributeValues ?? {}) as object)

test.each<[string, Answer]>([
  ['refused', { status: 401 }],
  ['not served', { status: 500 }],
  ['to wait', { status: 429 }],
])(
  'who sees a task, but may not have it canceled, hears its end though three others’ credentials are %s',
  async (_, answer) => {
    const { agent, id, taskId, hook, client } = await world.begin({}, bearer('good'))
    for (let n = 0; n < 3; n++) await trip.subscribe(id, { taskId, ...bearer(`less-${n}`) })
    await trip.pass(minute, 20)
    answering(agent, taskId, (token, { method }) =>
      token !== 'good' ? answer : method === 'CancelTask' ? forbidden() : undefined,
    )
    await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
    await trip.pass(20 * minute, 60)
    agent.put(taskId, status('completed'))
    await push(hook, statusPush(taskId, 'completed'))
    await trip.pass(hour, 60)
    expect(typesTold(client)).toContain('task.completed')
  },
)

test('a wish is told as refused in the end though most credentials do not even see the task', async () => {
  const { agent, id, taskId, client } = await world.begin({}, bearer('good'))
  for (let n = 0; n < 3; n++) await trip.subscribe(id, { taskId, ...bearer(`less-${n}`) })
  await trip.pass(minute, 20)
  answering(agent, taskId, (token, { method }) =>
    token !== 'good' ? refused() : method === 'CancelTask' ? forbidden() : undefined,
  )
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(day, 200)
  expect(typesTold(client)).toEqual(['task.cancel_refused'])
  const before = cancelsOf(agent, taskId)
  await trip.pass(day, 100)
  expect(cancelsOf(agent, taskId)).toBe(before)
})

test.each([[4], [6]])(
  'of %i the newest may cancel, and is asked again though the others were denied and it failed at first',
  async many => {
    const { agent, id, taskId, client } = await world.begin({}, bearer('less-0'))
    for (let n = 1; n < many - 1; n++) await trip.subscribe(id, { taskId, ...bearer(`less-${n}`) })
    await trip.subscribe(id, { taskId, ...bearer('good') })
    await trip.pass(5000, 5)
    const until = trip.local.now() + minute
    const denied: string[] = []
    answering(agent, taskId, (token, asked) => {
      if (asked.method !== 'CancelTask') return undefined
      if (token !== 'good') {
        denied.push(token)
        return forbidden()
      }
      if (trip.local.now() < until) return { status: 503 }
      agent.put(taskId, status('canceled'))
      return canceled(taskId, asked)
    })
    await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
    await trip.pass(hour, 240)
    expect(typesTold(client)).toEqual(['task.canceled'])
    // What the agent said to them is its word.
    expect(denied).toHaveLength(many - 1)
  },
)

const canceled = (taskId: string, { id }: Asked): Answer => ({
  body: JSON.stringify({ jsonrpc: '2.0', id, result: { ...status('canceled'), id: taskId } }),
})

test.each<[string, Answer]>([
  ['500', { status: 500 }],
  ['nothing', { fault: 'hang' }],
])('who had a task canceled stands in its timeline though the agent answers %s', async (_, answer) => {
  const { agent, id, taskId, client } = await world.begin()
  agent.instead(({ method }) => {
    if (method !== 'CancelTask') return undefined
    agent.put(taskId, status('canceled'))
    return answer
  })
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(hour, 60)
  expect(typesTold(client)).toEqual(['task.canceled'])
  expect(await notesOf(id, taskId)).toHaveLength(1)
})

test('who comes days after the last subscription was deleted while a look raised an alarm hears nothing of that', async () => {
  const { agent, id, taskId, made } = await world.begin()
  agent.put(taskId, asks)
  await trip.pass(10 * minute, 10)
  agent.instead(gone)
  const hold = trip.hold(setsOf(':alarms'))
  const passing = trip.pass(hour, 60)
  await hold.held
  await trip.call('DELETE', `/v1/subscriptions/${made.id}`)
  hold.release()
  await passing
  agent.instead(undefined)
  await trip.pass(30 * day, 30)
  const late = await trip.subscribe(id, { taskId })
  await trip.pass(hour, 60)
  expect(typesTold(late.client)).toEqual(['task.input_required'])
})

test('a wish that a look puts off while the last subscription is deleted is not that of who comes next', async () => {
  const { agent, id, taskId, made } = await world.begin()
  agent.instead(({ method }) => (method === 'CancelTask' ? { status: 503 } : undefined))
  const hold = trip.hold(setsOf(':cancel'))
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  const passing = trip.pass(5000, 5)
  await hold.held
  await trip.call('DELETE', `/v1/subscriptions/${made.id}`)
  hold.release()
  await passing
  const before = cancelsOf(agent, taskId)
  const late = await trip.subscribe(id, { taskId })
  await trip.pass(hour, 60)
  expect(cancelsOf(agent, taskId)).toBe(before)
  expect(typesTold(late.client)).toEqual([])
})

test('who joins with good credentials after a look died that told others of a loss is not told so', async () => {
  const { agent, id, taskId, client } = await world.begin({}, { ...month, ...bearer('first') })
  agent.put(taskId, asks)
  await trip.pass(10 * minute, 10)
  answering(agent, taskId, (token, asked) => (token === 'good' ? undefined : gone(asked)))
  deadAt = 'task.orphaned'
  for (let n = 0; n < 120 && !dead; n++) await trip.pass(10_000)
  expect(dead).toBe(true)
  const late = await trip.subscribe(id, { taskId, ...month, ...bearer('good') })
  await trip.pass(2000, 2)
  deadAt = undefined
  dead = false
  await trip.pass(5 * hour, 100)
  expect(typesTold(late.client)).toEqual(['task.input_required'])
  expect(typesTold(client)).toEqual(['task.input_required', 'task.orphaned', 'task.input_required'])
})

test('a wish that was denied to some waits for the others while their agent answers nobody', async () => {
  const { agent, id, taskId, client } = await world.begin({}, { ...month, ...bearer('less') })
  await trip.subscribe(id, { taskId, ...month, ...bearer('good') })
  await trip.pass(minute, 20)
  let stands: 'well' | 'away' | 'back' = 'well'
  answering(agent, taskId, (token, asked) => {
    if (stands === 'away') return { status: 503 }
    if (asked.method !== 'CancelTask') return undefined
    if (token !== 'good') {
      if (stands === 'well') stands = 'away'
      return forbidden()
    }
    agent.put(taskId, status('canceled'))
    return canceled(taskId, asked)
  })
  await trip.subscribe(id, { taskId, ...month, ...bearer('less') })
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  for (let n = 0; n < 60 && stands === 'well'; n++) await trip.pass(5000)
  expect(stands).toBe('away')
  await trip.pass(6 * hour, 200)
  expect(typesTold(client)).toEqual([])
  stands = 'back'
  await trip.pass(8 * hour, 200)
  expect(typesTold(client)).toEqual(['task.canceled'])
})

test('a cancellation that is to wait for longer than any message can is asked for again when its time has come', async () => {
  const { agent, id, taskId } = await world.begin()
  const asked: number[] = []
  agent.instead(({ method }) => {
    if (method !== 'CancelTask') return undefined
    asked.push(trip.local.now())
    return { status: 503, headers: { 'retry-after': '2400' } }
  })
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(3 * hour, 360)
  expect(asked.length).toBeGreaterThan(2)
  const waits = asked.slice(1).map((at, n) => at - (asked[n] ?? 0))
  for (const waitMs of waits)
    expect(waitMs / minute).toSatisfy((waited: number) => waited >= 40 && waited < 50)
})

test('a wish ends though those who were still to be asked with left, and another may be made', async () => {
  const { agent, id, taskId, client } = await world.begin({}, bearer('less'))
  const two = await trip.subscribe(id, { taskId, ...bearer('away') })
  await trip.pass(minute, 20)
  answering(agent, taskId, (token, { method }) =>
    method !== 'CancelTask' ? undefined : token === 'less' ? forbidden() : { status: 503 },
  )
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(5000, 5)
  await trip.call('DELETE', `/v1/subscriptions/${two.made.id}`)
  await trip.pass(day, 60)
  expect(typesTold(client)).toEqual(['task.cancel_refused'])
  agent.instead(({ method }) => {
    if (method === 'CancelTask') agent.put(taskId, status('canceled'))
    return undefined
  })
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(hour, 20)
  expect(typesTold(client)).toEqual(['task.cancel_refused', 'task.canceled'])
})

test('an agent that says yes each time, with news of it, and works on is asked ten times, and no budget begins anew by that', async () => {
  const { agent, taskId, client } = await world.begin({}, { hopTimeoutSeconds: 600, onOverdue: 'cancel' })
  let asked = 0
  agent.instead(({ id: call, method }) => {
    if (method !== 'CancelTask') return undefined
    const task = status('working', { message: { messageId: `m-${++asked}`, parts: [] } })
    agent.put(taskId, task)
    return { body: JSON.stringify({ jsonrpc: '2.0', id: call, result: { ...task, id: taskId } }) }
  })
  await trip.pass(day, 300)
  expect(asked).toBe(10)
  // Once for the time that it took, and once for that since it was last asked.
  const told = ['task.overdue', 'task.cancel_refused', 'task.overdue']
  expect(typesTold(client)).toEqual(told)
  const [first, refusal, last] = client.told().map(({ data }) => data)
  expect(first).toMatchObject({ action: 'cancel' })
  expect(refusal).toMatchObject({ reason: 'not_canceled' })
  expect(last).not.toHaveProperty('action')
})

test('what the answer to a cancellation leaves out of a task is not taken for its change', async () => {
  const { agent, id, taskId, client } = await world.begin()
  agent.put(taskId, { ...asks, artifacts: [{ artifactId: 'a', parts: [] }] })
  await trip.pass(5 * minute, 10)
  agent.instead(({ id: call, method }) =>
    method === 'CancelTask'
      ? { body: JSON.stringify({ jsonrpc: '2.0', id: call, result: { ...asks, id: taskId } }) }
      : undefined,
  )
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(3 * hour, 100)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.cancel_refused'])
})

test.each<[string, Answer | undefined]>([
  ['an empty 200', { status: 200, body: '' }],
  ['an empty 202', { status: 202, body: '' }],
  ['a task without status', undefined],
])('a cancellation that is answered by %s and works later is not told as refused', async (_, answer) => {
  const { agent, id, taskId, client } = await world.begin()
  let done = Number.POSITIVE_INFINITY
  agent.instead(({ method }) => {
    if (trip.local.now() > done) agent.put(taskId, status('canceled'))
    if (method !== 'CancelTask') return undefined
    done = Math.min(done, trip.local.now() + 5000)
    return answer
  })
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(hour, 100)
  expect(typesTold(client)).toEqual(['task.canceled'])
  expect(await notesOf(id, taskId)).toHaveLength(1)
})

test.each<[string, Answer]>([
  ['503', { status: 503 }],
  ['401', { status: 401 }],
])(
  'who had a task canceled stands in its timeline though its agent answered one’s %s and another’s look saw it',
  async (_, answer) => {
    const { agent, id, taskId } = await world.begin({}, bearer('one'))
    await trip.subscribe(id, { taskId, ...bearer('two') })
    await trip.pass(minute, 20)
    agent.instead(({ method }) => {
      if (method !== 'CancelTask') return undefined
      agent.put(taskId, status('canceled'))
      return answer
    })
    await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
    await trip.pass(hour, 40)
    expect(await notesOf(id, taskId)).toHaveLength(1)
  },
)

test('who had a task canceled stands in its timeline though the look died as soon as it was', async () => {
  const { agent, id, taskId } = await world.begin()
  agent.instead(({ method }) => {
    if (method !== 'CancelTask') return undefined
    agent.put(taskId, status('canceled'))
    dead = true
    return undefined
  })
  deadAt = 'nothing that is sent'
  await trip.call('POST', `/v1/tasks/${id}/${taskId}/cancel`, {})
  await trip.pass(5000, 5)
  expect(dead).toBe(true)
  deadAt = undefined
  dead = false
  await trip.pass(hour, 60)
  expect(await notesOf(id, taskId)).toHaveLength(1)
})
