// Time budgets, case by case: when one is used up, that it is told once, and when the next one is.
import { describe, expect, test } from 'vitest'
import { timesOf } from '../../shared/budgets.ts'
import type { Subscription, Watch } from '../../shared/model.ts'
import { readStep } from '../../shared/steps.ts'
import { hour, minute, now, second, watchWith } from '../support/watches.ts'

const subWith = (more: Partial<Subscription> = {}): Subscription => ({
  ref: 's1',
  hook: 'h',
  tenant: 't',
  id: 'sub_1',
  agent: 'a',
  principal: 'agent',
  scope: 'task',
  states: ['completed'],
  targets: [],
  generation: 1,
  status: 'active',
  registration: { status: 'handed_out' },
  asked: '',
  createdAt: now - 2 * hour,
  expiresAt: now + 1000 * hour,
  ...more,
})

/** What is told now, and when the next budget ends, both as minutes from now. */
const judge = (watch: Partial<Watch>, ...subs: Partial<Subscription>[]) => {
  const { steps, saves, next } = timesOf(watchWith({ state: 'working', ...watch }), subs.map(subWith), now)
  const told = steps.map(readStep).map(({ type, sub, at, data }) => {
    const { budget = type, action } = data
    return [budget, sub, (at - now) / minute, ...(action === undefined ? [] : [action])].join(' ')
  })
  return { told, saves, next: next === undefined ? undefined : (next - now) / minute }
}

const hop = (minutes: number): Partial<Subscription> => ({ hopTimeoutSeconds: minutes * 60 })

describe('a budget is used up at its very millisecond, and no sooner', () => {
  test.each<[string, Partial<Watch>, Partial<Subscription>, string[], number]>([
    ['a hop', { changed: now - 10 * minute }, hop(10), ['hop s1 0'], 1000 * 60],
    ['not yet', { changed: now - 10 * minute + 1 }, hop(10), [], 1 / 60_000],
    // The watch of the tests changed an hour ago.
    ['long ago', {}, hop(10), ['hop s1 -50'], 1000 * 60],
    ['no hop while it waits for somebody', { state: 'input-required' }, hop(10), [], 23 * 60],
    ['a pause', { state: 'auth-required' }, { pauseTimeoutSeconds: 3600 }, ['pause s1 0'], 1000 * 60],
    ['no pause while it works', {}, { pauseTimeoutSeconds: 60 }, [], 1000 * 60],
    [
      'a pause of a day unless said',
      { changed: now - 24 * hour, state: 'input-required' },
      { createdAt: now - 24 * hour },
      ['pause s1 0'],
      1000 * 60,
    ],
    [
      'end to end, whatever changed',
      { changed: now - second },
      { endToEndSeconds: 7200 },
      ['end_to_end s1 0'],
      1000 * 60,
    ],
    ['of an agent’s task from its first sight', {}, { scope: 'agent', endToEndSeconds: 5400 }, [], 30],
    ['nobody’s time begins before the subscription', {}, { ...hop(10), createdAt: now - 4 * minute }, [], 6],
    ['with a cancellation', {}, { ...hop(60), onOverdue: 'cancel' }, ['hop s1 0 cancel'], 1],
  ])('%s', (_what, watch, sub, told, next) => {
    const judged = judge(watch, sub)
    expect(judged.told).toEqual(told)
    expect(judged.next).toBeCloseTo(next, 5)
  })

  test('of a task that was never seen too', () => {
    const { state: _, ...unseen } = watchWith({ rev: 0 })
    const { steps } = timesOf(unseen, [subWith(hop(30))], now)
    expect(steps.map(readStep)).toMatchObject([{ type: 'task.overdue', rev: 0, data: { budget: 'hop' } }])
  })
})

test('what was told is not told again, but to who was not told anything yet', () => {
  const late = { changed: now - 20 * minute }
  const first = judge(late, hop(10))
  expect(first).toMatchObject({ told: ['hop s1 -10'], saves: { overdue: { s1: now } } })
  expect(judge({ ...late, ...first.saves }, hop(10))).toMatchObject({ told: [], saves: {} })
  const two = [hop(10), { ...hop(10), ref: 's2' }]
  expect(judge({ ...late, ...first.saves }, ...two)).toMatchObject({
    told: ['hop s2 -10'],
    saves: { overdue: { s1: now, s2: now } },
  })
  expect(judge({ ...late, ...first.saves }, two[1] ?? {}).saves).toEqual({ overdue: { s2: now } })
})

test('after a change a hop is told anew', () => {
  const again = { overdue: { s1: now - 11 * minute }, changed: now - 10 * minute }
  expect(judge(again, hop(10)).told).toEqual(['hop s1 0'])
})

test('each subscription has its own budgets, and one that cancels cancels for all', () => {
  const { told, saves } = judge(
    {},
    { ...hop(30), endToEndSeconds: 3600 },
    { ref: 's2', id: 'sub_2', onOverdue: 'cancel', hopTimeoutSeconds: 600 },
  )
  expect(told).toEqual(['hop s1 -30', 'end_to_end s1 -60', 'hop s2 -50 cancel'])
  expect(saves.overdueCancel).toEqual({
    by: 'policy',
    why: 'hop of sub_2',
    at: now,
    subscriptions: ['sub_2'],
  })
})

test('while a budget has the task canceled it does not begin anew, and others do', () => {
  const wish = { by: 'policy', why: 'w', at: now - hour, subscriptions: ['sub_1'] } as const
  const watch = { overdueCancel: { ...wish, subscriptions: ['sub_1'] }, changed: now - 10 * minute }
  const subs = [
    { ...hop(10), onOverdue: 'cancel' },
    { ref: 's2', id: 'sub_2', ...hop(10) },
  ] as const
  expect(judge(watch, ...subs).told).toEqual(['hop s2 0'])
  expect(judge(watch, { ...subs[0], endToEndSeconds: 7200 }).told).toEqual(['end_to_end s1 0 cancel'])
})

test('what an agent refused to cancel is not canceled by budgets of who was on it then', () => {
  const sub: Partial<Subscription> = { ...hop(10), onOverdue: 'cancel', createdAt: now - hour }
  const told = (refusedAt: number, more = {}) => judge({ refusedAt }, { ...sub, ...more })
  expect(told(now - hour)).toMatchObject({ told: ['hop s1 -50'], saves: { overdue: { s1: now } } })
  expect(told(now - hour).saves).not.toHaveProperty('overdueCancel')
  expect(told(now - hour - 1).told).toEqual(['hop s1 -50 cancel'])
  expect(told(now - hour, { credentialsAt: now - minute }).told).toEqual(['hop s1 -50 cancel'])
})

test('a cancellation that is still to be sent brings a look within a minute', () => {
  expect(judge({ cancel: { by: 'client', why: 'w', at: now } }, {}).next).toBe(1)
})

test('an ended task has no budgets', () => {
  expect(judge({ state: 'failed' }, { ...hop(1), endToEndSeconds: 60, expiresAt: now })).toEqual({
    told: [],
    saves: {},
    next: undefined,
  })
})

test('a task’s subscription that runs out is told so; an agent’s is no task’s business', () => {
  expect(judge({}, { expiresAt: now }).told).toEqual(['subscription.expired s1 0'])
  expect(judge({}, { expiresAt: now + minute })).toMatchObject({ told: [], next: 1 })
  expect(judge({}, { expiresAt: now, scope: 'agent' })).toMatchObject({ told: [], next: undefined })
})

describe('a budget from end to end covers the tasks below', () => {
  const ended = { state: 'completed', agent: 'a', taskId: 'root' } as const
  const asked = (minutes: number) => subWith({ endToEndSeconds: minutes * 60, createdAt: now - 2 * hour })
  const below = (...names: string[]) => names.map(name => ({ name, created: now - hour }))
  const openIn = (steps: string[]) => steps.map(readStep).map(({ data }) => data.open)

  test('of a task that has ended it is told while one of them is open, and only to whom it covers them', () => {
    const watch = watchWith(ended)
    const { steps, saves, next } = timesOf(watch, [asked(120), subWith(hop(1))], now, below('b/one', 'b/two'))
    expect(openIn(steps)).toEqual(['b/one b/two'])
    expect({ saves, next }).toEqual({ saves: { overdue: { s1: now } }, next: undefined })
    expect(timesOf(watch, [asked(120)], now)).toEqual({ steps: [], saves: {}, next: undefined })
    expect(timesOf({ ...watch, overdue: { s1: now } }, [asked(120)], now, below('b/one')).steps).toEqual([])
  })

  test('it is not told before its time, but waited for', () => {
    const later = timesOf(watchWith(ended), [asked(130)], now, below('b/one'))
    expect(later).toEqual({ steps: [], saves: {}, next: now + 10 * minute })
  })

  test('of a task that is open, itself and at most nine below are named, as paths of the API have them', () => {
    const many = Array.from({ length: 20 }, (_, at) => `b/${at}`)
    const watch = watchWith({ state: 'working', agent: 'a', taskId: 'to do/1' })
    const [told = ''] = openIn(timesOf(watch, [asked(120)], now, below(...many)).steps)
    expect(String(told).split(' ')).toEqual(['a/to%20do%2F1', ...many.slice(0, 9)])
  })

  test('it covers no task that came once it was over', () => {
    const late = [...below('b/one'), { name: 'b/late', created: now - 9 * minute }]
    const open = timesOf(watchWith({ ...ended, state: 'working' }), [asked(110)], now, late)
    expect(openIn(open.steps)).toEqual(['a/root b/one'])
    expect(openIn(timesOf(watchWith(ended), [asked(110)], now, late).steps)).toEqual(['b/one'])
    expect(timesOf(watchWith(ended), [asked(110)], now, late.slice(1)).steps).toEqual([])
    const two = timesOf(watchWith(ended), [asked(110), asked(130)], now, late.slice(1))
    expect(two).toEqual({ steps: [], saves: {}, next: now + 10 * minute })
  })

  test('a task that has ended is not canceled', () => {
    const sub = { ...asked(120), onOverdue: 'cancel' as const }
    const { steps, saves } = timesOf(watchWith(ended), [sub], now, below('b/one'))
    expect(saves).toEqual({ overdue: { s1: now } })
    expect(steps.map(readStep)).not.toMatchObject([{ data: { action: 'cancel' } }])
  })
})
