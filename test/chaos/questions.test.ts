// A question without an id that is asked anew is told soon, whatever older replicas answer in between; an agent that dates each answer costs little.
import { expect, test } from 'vitest'
import { status } from '../support/scripted.ts'
import { push, statusPush } from '../support/trip.ts'
import { day, hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

waitsOfFile()

/** What the agent shows: the question, with its time in minutes, or the state before it. */
type Shown = number | 'working'

/** A question that was told ten hours ago, and how often it was told since. */
async function beginAsked(more?: Record<string, unknown>) {
  const { agent, taskId, hook, client } = await world.begin(more)
  const base = trip.local.now()
  const show = (shown: Shown): void => {
    const [state, minutes] = shown === 'working' ? [shown, -1] : ['input-required', shown]
    agent.put(taskId, status(state, { timestamp: new Date(base + minutes * minute).toISOString() }))
  }
  show(0)
  const pushed = (n: number) => push(hook, { ...statusPush(taskId, 'input-required'), n })
  await pushed(0)
  await trip.pass(10 * hour, 5)
  expect(typesTold(client)).toEqual(['task.input_required'])
  let looks = 0
  return {
    pushed,
    looks: () => looks,
    toldAgain: () => typesTold(client).length - 1,
    /** What each look is shown from now on, by its number. */
    answer: (by: (n: number) => Shown): void => {
      looks = 0
      agent.instead(({ method }) => {
        if (method === 'GetTask') show(by(looks++))
        return undefined
      })
    },
  }
}
const inTurn =
  (...answers: [...Shown[], number]) =>
  (n: number): Shown =>
    answers[n] ?? answers.at(-1) ?? 0

test.each<[what: string, ...answers: [...Shown[], number]]>([
  ['once more before that was told', 1, 2],
  ['once more while a replica shows the first', 1, 0, 2],
  ['while a replica shows what was before it', 1, 'working', 0, 'working', 1],
  ['while replicas show the times between in turn', 2, 1, 2, 1, 0, 2],
])('a question that is asked anew is told soon: %s', async (_, ...answers) => {
  const { answer, pushed, toldAgain } = await beginAsked()
  answer(inTurn(...answers))
  await pushed(1)
  await trip.pass(2 * minute, 40)
  expect(toldAgain()).toBe(1)
})

test('a question that is asked anew is told soon though another time of it was seen once, long before', async () => {
  const { answer, pushed, toldAgain } = await beginAsked()
  answer(inTurn(1, 0))
  await pushed(1)
  await trip.pass(10 * minute, 40)
  expect(toldAgain()).toBe(0)
  answer(inTurn(2))
  await pushed(2)
  await trip.pass(minute, 20)
  expect(toldAgain()).toBe(1)
})

test('of an agent that is polled, too, a question that is asked anew is told once it was seen twice in a row', async () => {
  const { answer, looks, toldAgain } = await beginAsked({ pushNotifications: false })
  answer(inTurn(1))
  for (let passed = 0; looks() === 0 && passed < hour; passed += minute) await trip.pass(minute)
  await trip.pass(10_000, 5)
  expect(toldAgain()).toBe(1)
})

test.each<[string, (n: number) => Shown]>([
  ['each answer', n => 1 + n],
  ['every other answer', n => (n % 2 === 0 ? 1 + n : 0)],
])('an agent that dates %s anew is asked without end, but not often', async (_, by) => {
  const { answer, looks, pushed } = await beginAsked()
  answer(by)
  await pushed(1)
  await trip.pass(4 * minute, 60)
  await trip.pass(day, 100)
  const first = looks()
  await trip.pass(4 * hour, 60)
  expect(first).toBeLessThan(80)
  expect(looks() - first).toBeLessThan(20)
})

test('a question is told once though the agent dates each answer anew, and is overdue in time', async () => {
  const { agent, taskId, client } = await world.begin({}, { pauseTimeoutSeconds: 1800 })
  const ask = ({ id, method, params }: { id: string; method: string; params: { id: string } }) =>
    method === 'GetTask' && params.id === taskId
      ? {
          body: JSON.stringify({
            ...{ jsonrpc: '2.0', id },
            result: {
              id: taskId,
              ...status('input-required', { timestamp: new Date(trip.local.now()).toISOString() }),
            },
          }),
        }
      : undefined
  agent.instead(ask)
  await trip.pass(hour, 60)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.overdue'])
  const calls = agent.calls(taskId).length
  await trip.pass(hour, 60)
  expect(agent.calls(taskId).length - calls).toBeLessThan(10)
})

test('a question that is asked anew without a word is told again', async () => {
  const { agent, taskId, hook, client } = await world.begin()
  const asks = (minutes: number) =>
    status('input-required', { timestamp: new Date(trip.local.now() + minutes * minute).toISOString() })
  agent.put(taskId, asks(0))
  await push(hook, statusPush(taskId, 'input-required'))
  await trip.pass(minute, 6)
  agent.put(taskId, asks(1))
  await push(hook, statusPush(taskId, 'input-required'))
  await trip.pass(minute, 6)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.input_required'])
})

test('a question that is asked anew is told within a minute though an older replica answers in between', async () => {
  const { agent, taskId, hook, client } = await world.begin()
  const asks = (minutes: number) =>
    status('input-required', { timestamp: new Date(trip.local.now() + minutes * minute).toISOString() })
  const first = asks(0)
  agent.put(taskId, first)
  await push(hook, statusPush(taskId, 'input-required'))
  await trip.pass(4 * hour, 30)
  const second = asks(1)
  let seen = 0
  agent.put(taskId, second)
  agent.instead(({ method }) => {
    if (method !== 'GetTask') return undefined
    seen += 1
    agent.put(taskId, seen === 2 || seen === 3 ? first : second)
    return undefined
  })
  await push(hook, { ...statusPush(taskId, 'input-required'), again: true })
  await trip.pass(minute, 30)
  expect(typesTold(client)).toEqual(['task.input_required', 'task.input_required'])
})
