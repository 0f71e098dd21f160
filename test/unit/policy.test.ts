// What policy decides, case by case: when a look is due, whom it concerns, how long to wait.
import { describe, expect, test } from 'vitest'
import { isInterrupted, isNews, type TaskState, taskStates } from '../../shared/a2a/task.ts'
import type { Subscription, Watch } from '../../shared/model.ts'
import {
  covered,
  entryIdOf,
  floorMs,
  holdMs,
  isAhead,
  isOver,
  isSettled,
  isSuperseded,
  isUnpublished,
  leadMs,
  pollMs,
  ridesAlong,
  startAfter,
  trailingMs,
  troubleMs,
  waitersOf,
  waitMs,
  wakeIdOf,
  wants,
  windowMs,
} from '../../shared/policy.ts'
import type { Wake } from '../../shared/telling.ts'
import { hour, minute, now, second, watchWith } from '../support/watches.ts'

describe('an agent is behind a push that named news it does not show', () => {
  test.each<[named: TaskState | undefined, known: TaskState | undefined, ahead: boolean]>([
    ['completed', 'working', true],
    ['input-required', 'working', true],
    ['input-required', 'auth-required', true],
    ['failed', undefined, true],
    ['input-required', 'input-required', false],
    ['completed', 'completed', false],
    // What ended does not end again, whatever a push says (A2A 1.0 section 3.4).
    ['failed', 'completed', false],
    ['input-required', 'canceled', false],
    ['working', 'submitted', false],
    ['unknown', 'working', false],
    [undefined, 'working', false],
  ])('named %s, known %s: %s', (named, known, ahead) => {
    expect(isAhead(named, watchWith(known === undefined ? {} : { state: known }))).toBe(ahead)
  })
})

describe('a push is settled by a look that completed, and started a window after it', () => {
  test.each<[what: string, looked: number, settled: boolean]>([
    ['a window after', now + windowMs, true],
    ['a little less after', now + windowMs - 1, false],
    ['at once', now, false],
    ['before', now - minute, false],
  ])('%s', (_what, looked, settled) => {
    expect(isSettled(watchWith({ looked }), { at: now })).toBe(settled)
  })

  test('not by one that merely started', () => {
    expect(isSettled(watchWith({ lookAt: now + minute }), { at: now })).toBe(false)
  })
})

describe('somebody is still to be told', () => {
  test.each<[what: string, watch: Partial<Watch>, untold: boolean]>([
    ['of a revision that was not published', { rev: 2, woken: 1 }, true],
    ['who came late', { fresh: ['s2'] }, true],
    ['nobody: all know it', {}, false],
    ['nobody: there is nothing to tell yet', { rev: 0, woken: 0, fresh: ['s1'] }, false],
  ])('%s', (_what, watch, untold) => {
    expect(isUnpublished(watchWith(watch))).toBe(untold)
  })
})

describe('a task is over once it ended, all were told and its timer is gone', () => {
  test.each<[what: string, watch: Partial<Watch>, over: boolean]>([
    ['all of it', { state: 'completed' }, true],
    ['it goes on', { state: 'working' }, false],
    ['it asks', { state: 'input-required' }, false],
    ['it was never seen', {}, false],
    ['a timer is left', { state: 'failed', due: now }, false],
    ['the end was not told', { state: 'failed', rev: 2 }, false],
    ['somebody came late', { state: 'rejected', fresh: ['s2'] }, false],
  ])('%s', (_what, watch, over) => {
    expect(isOver(watchWith(watch))).toBe(over)
  })
})

describe('a look waits for the window to end, and for the look under way', () => {
  test.each<[what: string, watch: Partial<Watch>, wait: number]>([
    ['nobody looks', {}, 0],
    ['one started just now', { lookAt: now, lease: now + minute }, windowMs],
    ['one started 400 ms ago', { lookAt: now - 400 }, windowMs - 400],
    ['one is under way for long', { lookAt: now - 5 * second, lease: now + second }, windowMs],
    ['one died long ago', { lookAt: now - minute, lease: now - 1 }, 0],
    ['one ended a window ago', { lookAt: now - windowMs, lease: 0 }, 0],
    ['one goes on since a window ago', { lookAt: now - windowMs, lease: now + minute }, windowMs],
    ['one started by a clock ahead of ours', { lookAt: now + 300 }, windowMs + 300],
  ])('%s', (_what, watch, wait) => {
    expect(waitMs(watchWith(watch), now)).toBe(wait)
  })

  test('its start is later than the one before, whatever the clocks say', () => {
    expect(startAfter(watchWith({ lookAt: now - minute }), now)).toBe(now)
    expect(startAfter(watchWith({ lookAt: now }), now)).toBe(now + 1)
    expect(startAfter(watchWith({ lookAt: now + 300 }), now)).toBe(now + 301)
  })
})

describe('a push rides along on a look that is on its way', () => {
  test.each<[what: string, state: TaskState | undefined, at: number, again: number, rides: boolean]>([
    ['that starts a window after it', 'working', now - windowMs, now, true],
    ['when it names no state', undefined, now - windowMs, now, true],
    ['not one that starts too soon after it', 'working', now - windowMs + 1, now, false],
    ['not one that should have started before', 'working', now - minute, now - 1, false],
    ['not when nothing is on its way', 'working', now - minute, 0, false],
    ['not when it ended something', 'completed', now - minute, now + second, false],
    ['not when it asks', 'input-required', now - minute, now + second, false],
  ])('%s', (_what, state, at, again, rides) => {
    expect(ridesAlong(watchWith({ again }), { at, state }, now)).toBe(rides)
  })

  test.each<[what: string, at: number, own: boolean, stands: number]>([
    ['for all that was pushed until a window before its mark', now - minute, true, now - windowMs],
    ['for itself, if it came later', now - 1, true, now - 1],
    ['for itself alone, if the mark is another’s', now - minute, false, now - minute],
  ])('the message of a trailing look stands %s', (_what, at, own, stands) => {
    const watch = watchWith({ again: now })
    expect(covered(watch, { at, state: 'working' }, own)).toEqual({ at: stands, state: 'working' })
  })

  test('so whoever rides along on its mark is covered by what settles it', () => {
    const watch = watchWith({ again: now, looked: now })
    const rider = { at: now - windowMs, state: 'working' } as const
    expect(ridesAlong(watch, rider, now)).toBe(true)
    expect(isSettled(watch, covered(watch, { at: 0 }, true))).toBe(true)
    expect(isSettled(watch, rider)).toBe(true)
    expect(isSettled({ ...watch, looked: now - 1 }, covered(watch, { at: 0 }, true))).toBe(false)
  })

  test.each(taskStates)('%s is put off no longer than it must if it is news, else a window more', state => {
    expect(trailingMs(300, { at: now, state })).toBe(isNews(state) ? 300 : 300 + windowMs)
  })

  test.each(taskStates)(
    '%s is looked at once if it is news or wanted, else when its burst is over',
    state => {
      const bound = { ...asking, taskId: 'k-1' }
      expect(leadMs(bound, state)).toBe(isNews(state) ? 0 : 2 * windowMs)
      expect(leadMs({ ...bound, states: [state] }, state)).toBe(0)
      // Whoever waits for the first push to be bound is not kept waiting.
      expect(leadMs(asking, state)).toBe(0)
    },
  )
})

/** A subscription to questions only. */
const asking: Subscription = {
  ref: 's',
  ...{ hook: '', tenant: 't', id: 's', agent: 'a', principal: 'agent', scope: 'task', generation: 1 },
  states: ['input-required', 'auth-required'],
  targets: [],
  status: 'active',
  registration: { status: 'handed_out' },
  asked: '',
  createdAt: now,
  expiresAt: now + hour,
}

test.each(taskStates)('a subscription to questions hears of %s only if it is one', state => {
  expect(wants(asking, state)).toBe(isInterrupted(state))
})

/** A wake of revision 2. */
const wakeWith = (more: Partial<Wake> = {}): Wake => ({
  ...{ id: 'wk', tenant: 't', target: 'x', type: 'task.input_required', state: 'input-required', rev: 2 },
  ...{ at: now, status: 'pending', attempts: [], tries: 0, lease: 0 },
  ...more,
})

describe('a wake of revision 2 is superseded', () => {
  test.each<[what: string, watch: Partial<Watch>, superseded: boolean]>([
    ['by a newer one that was published', { rev: 3, woken: 3, state: 'auth-required' }, true],
    ['not by one that was not published yet', { rev: 3, woken: 2, state: 'auth-required' }, false],
    ['not by one that its subscription does not want', { rev: 3, woken: 3, state: 'completed' }, false],
    [
      'by one that was told and has passed',
      { rev: 5, woken: 5, state: 'working', news: { 'input-required': 4 } },
      true,
    ],
    [
      'not by one that has passed untold',
      { rev: 5, woken: 3, state: 'working', news: { 'input-required': 4 } },
      false,
    ],
    [
      'not by one that came before it',
      { rev: 3, woken: 3, state: 'working', news: { 'auth-required': 1, 'input-required': 2 } },
      false,
    ],
    ['not by itself', { rev: 2, woken: 2, state: 'input-required' }, false],
  ])('%s', (_what, watch, superseded) => {
    expect(isSuperseded(watchWith(watch), asking, wakeWith())).toBe(superseded)
  })

  test('by none if it tells a step', () => {
    const newer = watchWith({ rev: 3, woken: 3, state: 'auth-required' })
    expect(isSuperseded(newer, asking, wakeWith({ type: 'task.overdue' }))).toBe(false)
  })
})

describe('while a target is away the newest of those that wait speaks', () => {
  const [overdue, other] = [wakeWith({ id: 'o', type: 'task.overdue' }), wakeWith({ id: 'p' })]
  const spoken = (sub: Subscription | undefined, one: Wake, two: Wake, subject = 'w'): boolean =>
    waitersOf(sub, 'w', one) === waitersOf(sub, subject, two)

  test('for all of a client’s', () => {
    expect(spoken({ ...asking, client: 'c' }, overdue, other, 'another')).toBe(true)
  })

  test('without a client for the states of one task, and for nothing else', () => {
    expect(spoken(asking, wakeWith(), other)).toBe(true)
    expect(spoken(asking, wakeWith(), other, 'another')).toBe(false)
    expect(spoken(asking, overdue, other)).toBe(false)
    expect(spoken(undefined, wakeWith(), other)).toBe(false)
  })
})

describe('waits', () => {
  test.each<[silence: number, most: number | undefined, wait: number]>([
    [0, undefined, minute],
    [2 * minute, undefined, minute],
    [10 * minute, undefined, 5 * minute],
    [12 * hour, undefined, 6 * hour],
    [48 * hour, undefined, 6 * hour],
    [10 * hour, 3600, hour],
    [10 * hour, 5, minute],
  ])(
    'a task silent for %i ms, its agent settled for %s s at most, is looked at in %i ms',
    (silence, most, wait) => {
      expect(floorMs(silence, most)).toBe(wait)
    },
  )

  test.each<[silence: number, wait: number]>([
    [0, 2 * second],
    [4 * second, 2 * second],
    [minute, 30 * second],
    [2 * minute, minute],
    [hour, minute],
    [5 * hour, 5 * minute],
    [100 * hour, 15 * minute],
  ])('an agent that cannot push is asked %i ms after a change again in %i ms', (silence, wait) => {
    expect(pollMs(silence)).toBe(wait)
  })

  test.each<[failures: number, wait: number]>([
    [1, 4 * second],
    [2, 8 * second],
    [8, 512 * second],
    [9, 15 * minute],
    [1000, 15 * minute],
  ])('the look after %i failures comes in %i ms at most, and not before half of that', (failures, wait) => {
    expect([0, 0.5, 1].map(share => troubleMs(failures, share))).toEqual([wait / 2, wait * 0.75, wait])
  })

  test.each<[tries: number, wait: number]>([
    [0, 5 * minute],
    [1, 10 * minute],
    [6, 320 * minute],
    [7, 6 * hour],
    [1000, 6 * hour],
  ])('what tick queued in vain %i times is held for %i ms', (tries, wait) => {
    expect(holdMs(tries)).toBe(wait)
  })
})

describe('ids of wakes and entries', () => {
  const id = (more: Partial<Watch> = {}, rev = 1, sub = 's1', target = 'g1') =>
    wakeIdOf(watchWith(more), rev, sub, target)

  test('are the same when only what a look changes is different', () => {
    expect(id({ looked: now, lookAt: now, lease: now, woken: 0, rev: 7, digest: 'x', due: now })).toBe(id())
    expect(entryIdOf(watchWith({ looked: now, rev: 7 }), 1, 'c1')).toBe(entryIdOf(watchWith(), 1, 'c1'))
  })

  test('differ by task, by its record’s age, by revision, subscriber and target', () => {
    const wakes = [
      id(),
      id({ key: 'w2' }),
      id({ created: now }),
      id({}, 2),
      id({}, 1, 's2'),
      id({}, 1, 's1', 'g2'),
      id({}, 1, 's1g', '1'),
    ]
    const entries = [
      entryIdOf(watchWith(), 1, 'c1'),
      entryIdOf(watchWith({ key: 'w2' }), 1, 'c1'),
      entryIdOf(watchWith({ created: now }), 1, 'c1'),
      entryIdOf(watchWith(), 2, 'c1'),
      entryIdOf(watchWith(), 1, 'c2'),
    ]
    expect(new Set([...wakes, ...entries]).size).toBe(wakes.length + entries.length)
  })
})
