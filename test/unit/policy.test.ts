// What policy decides, case by case: when a look is due, what changed, whom it concerns, how long to wait.
import { describe, expect, test } from 'vitest'
import { isInterrupted, isNews, type Task, type TaskState, taskStates } from '../../shared/a2a/task.ts'
import type { Subscription, Watch } from '../../shared/model.ts'
import {
  compare,
  entryIdOf,
  floorMs,
  holdMs,
  isAhead,
  isOver,
  isSettled,
  isUnpublished,
  pollMs,
  ridesAlong,
  startAfter,
  trailingMs,
  troubleMs,
  waitMs,
  wakeIdOf,
  wants,
  windowMs,
} from '../../shared/policy.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const now = Date.UTC(2026, 0, 1)

const watchWith = (more: Partial<Watch> = {}): Watch => ({
  key: 'w',
  tenant: 't',
  agent: 'a',
  principal: 'agent',
  taskId: 'task',
  created: now - hour,
  subs: ['s1'],
  fresh: [],
  ring: [],
  rev: 1,
  woken: 1,
  changed: now - hour,
  looked: now - hour,
  lookAt: now - hour,
  lease: 0,
  again: 0,
  holds: 0,
  ...more,
})

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

  test.each(taskStates)('%s is put off no longer than it must if it is news, else a window more', state => {
    expect(trailingMs(300, { at: now, state })).toBe(isNews(state) ? 300 : 300 + windowMs)
  })
})

type Raw = { state?: TaskState; message?: unknown; timestamp?: string; artifacts?: unknown; more?: object }

const taskWith = ({ state = 'working', message, timestamp, artifacts, more }: Raw = {}): Task => ({
  id: 'task',
  state,
  ...(timestamp !== undefined && { timestamp }),
  raw: {
    id: 'task',
    status: {
      state,
      ...(message !== undefined && { message }),
      ...(timestamp !== undefined && { timestamp }),
    },
    ...(artifacts !== undefined && { artifacts }),
    ...more,
  },
})

/** The watch after these answers, each taken over as a look does. */
const havingSeen = (...answers: Raw[]): Watch => {
  let watch = watchWith()
  for (const raw of answers) {
    const { change, digest, ring } = compare(watch, taskWith(raw), now)
    if (change === 'new') watch = watchWith({ ...watch, state: raw.state ?? 'working', digest, ring })
  }
  return watch
}

const changeAfter = (known: Raw[], answer: Raw, more: Partial<Watch> = {}): string =>
  compare({ ...havingSeen(...known), ...more }, taskWith(answer), now).change

describe('a change is what a client could see', () => {
  const message = { messageId: 'm1', parts: [{ text: 'Which one?' }] }
  const artifacts = [{ artifactId: 'a1', parts: [{ text: 'one' }] }]

  test.each<[what: string, known: Raw, answer: Raw, change: string]>([
    ['the same again', {}, {}, 'none'],
    ['another state', {}, { state: 'completed' }, 'new'],
    ['another message', { message }, { message: { ...message, messageId: 'm2' } }, 'new'],
    ['a message where none was', {}, { message }, 'new'],
    ['another artifact', { artifacts }, { artifacts: [...artifacts, { artifactId: 'a2' }] }, 'new'],
    ['artifacts in another order', { artifacts: [1, 2] }, { artifacts: [2, 1] }, 'new'],
    [
      'the same with its keys in another order',
      { message: { a: 1, b: { c: 2, d: [3] } } },
      { message: { b: { d: [3], c: 2 }, a: 1 } },
      'none',
    ],
    ['only a time that moved', { timestamp: 'T1' }, { timestamp: 'T2' }, 'none'],
    ['only history and metadata', {}, { more: { history: [1], metadata: { x: 1 } } }, 'none'],
    [
      'a new question without a message, by its time',
      { state: 'input-required', timestamp: 'T1' },
      { state: 'input-required', timestamp: 'T2' },
      'new',
    ],
    [
      'the same question, by its message',
      { state: 'input-required', message, timestamp: 'T1' },
      { state: 'input-required', message, timestamp: 'T2' },
      'none',
    ],
    ['null where nothing was', {}, { more: { artifacts: null } }, 'none'],
  ])('%s: %3$s', (_what, known, answer, change) => {
    expect(changeAfter([known], answer)).toBe(change)
  })

  test.each(taskStates)('a first answer is new: %s', state => {
    expect(compare(watchWith({ rev: 0 }), taskWith({ state }), now).change).toBe('new')
  })

  test.each(taskStates.filter(state => state !== 'failed'))('what ended stays so: failed, then %s', state => {
    const ended = havingSeen({ state: 'failed' })
    expect(compare(ended, taskWith({ state }), now)).toEqual({
      change: 'none',
      digest: ended.digest,
      ring: ended.ring,
    })
  })

  test('texts of differing parts never make one digest', () => {
    const digests = [
      taskWith({ message: 'a', artifacts: 'b' }),
      taskWith({ message: 'ab' }),
      taskWith({ artifacts: 'ab' }),
      taskWith({ message: ['a', 'b'] }),
      taskWith({ message: { a: 'b' } }),
    ].map(task => compare(watchWith(), task, now).digest)
    expect(new Set(digests).size).toBe(digests.length)
  })
})

describe('an answer that was seen and left is a replica’s', () => {
  const working: Raw = { state: 'working' }
  const asks: Raw = { state: 'input-required', message: { messageId: 'm1' } }

  test('for a minute from the first such answer, then it is new', () => {
    expect(changeAfter([working, asks], working)).toBe('back')
    expect(changeAfter([working, asks], working, { backSince: now - minute + 1 })).toBe('back')
    expect(changeAfter([working, asks], working, { backSince: now - minute })).toBe('new')
  })

  test('it changes neither digest nor ring', () => {
    const watch = havingSeen(working, asks)
    const { ring } = compare(watch, taskWith(working), now)
    expect(ring).toEqual(watch.ring)
  })

  test('unless the agent dates it anew', () => {
    const at = (timestamp: string): Raw => ({ ...working, timestamp })
    const known = [at('2026-01-01T00:00:01Z'), { ...asks, timestamp: '2026-01-01T00:00:02Z' }]
    expect(changeAfter(known, at('2026-01-01T00:00:01Z'))).toBe('back')
    expect(changeAfter(known, at('2026-01-01T00:00:03Z'))).toBe('new')
  })

  test('an end is never one', () => {
    expect(changeAfter([working, asks], { state: 'completed' })).toBe('new')
  })

  test('the last four are remembered, each once', () => {
    const steps = [1, 2, 3, 4, 5].map(step => ({ message: step }))
    expect(havingSeen(...steps).ring).toHaveLength(4)
    expect(changeAfter(steps, { message: 2 })).toBe('back')
    expect(changeAfter(steps, { message: 1 })).toBe('new')
    const returned = compare(
      { ...havingSeen(...steps), backSince: now - minute },
      taskWith({ message: 2 }),
      now,
    )
    expect(new Set(returned.ring).size).toBe(4)
  })
})

test.each(taskStates)('a subscription to questions hears of %s only if it is one', state => {
  const sub: Subscription = {
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
  expect(wants(sub, state)).toBe(isInterrupted(state))
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
  ])('the look after %i failures comes in %i ms', (failures, wait) => {
    expect(troubleMs(failures)).toBe(wait)
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
