// What lasts is told though an agent answers in forms that nobody would expect: too many parts, other versions, an error beside a task.
import { expect, test } from 'vitest'
import { type Answer, startReceiver } from '../support/receiver.ts'
import { status } from '../support/scripted.ts'
import { push, statusPush } from '../support/trip.ts'
import { hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

waitsOfFile()

test('a task that ends with 200 000 artifacts is told as any other', async () => {
  const { agent, id, taskId, hook, client } = await world.begin()
  agent.put(taskId, { ...status('completed'), artifacts: Array.from({ length: 200_000 }, () => 1) })
  expect(await push(hook, statusPush(taskId, 'completed'))).toBe(202)
  await trip.pass(minute, 4)
  expect(typesTold(client)).toEqual(['task.completed'])
  const { state, artifacts } = await trip.task(id, taskId)
  expect([state, artifacts?.count]).toEqual(['completed', 200_000])
})

test.each([[''], [{}], [{ code: 0, message: '' }]])(
  'a task beside the error %j that says nothing is told',
  async error => {
    const { agent, client } = await world.begin()
    agent.instead(({ id, params }) => ({
      body: JSON.stringify({ jsonrpc: '2.0', id, result: { ...status('completed'), id: params.id }, error }),
    }))
    await trip.pass(10 * minute, 6)
    expect(typesTold(client)).toEqual(['task.completed'])
  },
)

test.each([
  ['an object', { a: { parts: [{ text: 'SECRET' }] } }],
  ['a text', 'SECRET'],
])('unfinished work that is %s instead of a list is withheld', async (_, artifacts) => {
  const { agent, id, taskId } = await world.begin({}, { partialWork: 'withhold' })
  agent.put(taskId, { ...status('failed'), artifacts })
  await trip.pass(3 * minute, 3)
  const seen = await trip.task(id, taskId)
  expect(seen).toMatchObject({ state: 'failed', withheld: true, artifacts: { count: 1 } })
  expect(JSON.stringify(seen)).not.toContain('SECRET')
})

/** An agent of HTTP+JSON whose answers go by the path: A2A 0.3 puts its own below `/v1`. */
async function restAgent(answer: (old: boolean) => Answer) {
  const receiver = await startReceiver()
  world.alsoStop(receiver.stop)
  receiver.answer(({ url }) => answer(url.startsWith('/v1/')))
  const id = `rest-${world.count()}`
  await trip.call('PUT', `/v1/agents/${id}`, { url: receiver.origin, binding: 'HTTP+JSON', version: '1.0' })
  const { client } = await trip.subscribe(id, { taskId: 'task' })
  return { id, client }
}
const unknownVersion: Answer = {
  status: 400,
  body: JSON.stringify({ error: { code: 400, details: [{ reason: 'VERSION_NOT_SUPPORTED' }] } }),
}
const shown = (state: string): Answer => ({
  body: JSON.stringify({ id: 'task', contextId: 'c', ...status(state) }),
})
const unrouted: Answer = { status: 404, body: 'Cannot GET' }

test('one word of an unknown version does not make an agent one of the other, which a router knows nothing of', async () => {
  let now = shown('working')
  const { id, client } = await restAgent(old => (old ? unrouted : now))
  await trip.pass(3000, 3)
  now = unknownVersion
  await trip.pass(10 * minute, 10)
  now = shown('completed')
  await trip.pass(hour, 12)
  expect(typesTold(client)).toEqual(['task.completed'])
  const { calls } = await trip.call<{ calls: { version: { spoken: string } } }>(
    'GET',
    `/v1/agents/${id}/health`,
  )
  expect(calls.version.spoken).toBe('1.0')
})

test('an agent that gives up the version it was asked for in is asked for in the registered one before its task counts as gone', async () => {
  let upgraded = false
  const { client } = await restAgent(old => {
    if (old) return upgraded ? unrouted : shown('working')
    return upgraded ? shown('completed') : unknownVersion
  })
  await trip.pass(minute, 6)
  upgraded = true
  await trip.pass(hour, 12)
  expect(typesTold(client)).toEqual(['task.completed'])
})
