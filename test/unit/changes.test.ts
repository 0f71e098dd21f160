// What counts as a change of a task, case by case, and which answers are an older replica's.
import { describe, expect, test } from 'vitest'
import { type Task, type TaskState, taskStates } from '../../shared/a2a/task.ts'
import type { Watch } from '../../shared/model.ts'
import { compare } from '../../shared/policy.ts'
import { minute, now, watchWith } from '../support/watches.ts'

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

  test.each<[what: string, known: string | undefined, answer: string | undefined, change: string]>([
    [
      'if the agent dates it before what is known',
      '2026-01-01T00:00:02Z',
      '2026-01-01T00:00:01.999Z',
      'back',
    ],
    ['whatever the zone it is written in', '2026-01-01T00:00:02Z', '2026-01-01T02:00:01+02:00', 'back'],
    ['not at the same time', '2026-01-01T00:00:02Z', '2026-01-01T00:00:02.000Z', 'new'],
    ['not if nothing is dated', undefined, undefined, 'new'],
    ['not if only one is dated', '2026-01-01T00:00:02Z', undefined, 'new'],
    ['not by an unset time (Go)', '2026-01-01T00:00:02Z', '0001-01-01T00:00:00Z', 'new'],
    ['not by an unset time (epoch)', '2026-01-01T00:00:02Z', '1970-01-01T00:00:00Z', 'new'],
    ['not by what is no time', '2026-01-01T00:00:02Z', 'yesterday', 'new'],
  ])('and one that was passed over, %s', (_what, stamp, timestamp, change) => {
    const dated = { ...(timestamp !== undefined && { timestamp }) }
    const known = stamp === undefined ? {} : { stamp }
    expect(changeAfter([working], { ...asks, ...dated }, known)).toBe(change)
    if (change === 'back')
      expect(changeAfter([working], { ...asks, ...dated }, { ...known, backSince: now - minute })).toBe('new')
  })

  test('of a question that was told by its time alone the next time counts once it is a minute old', () => {
    const at = (ms: number) => new Date(now - ms).toISOString()
    const asked = (ms: number): Raw => ({ state: 'input-required', timestamp: at(ms) })
    const known = havingSeen(asked(3 * minute))
    const first = compare({ ...known, stamp: at(3 * minute) }, taskWith(asked(10)), now)
    expect(first).toMatchObject({ change: 'none', restamp: at(10) })
    expect(first.anew).toBeUndefined()
    const restamped = { ...known, stamp: at(3 * minute), restamp: at(10) }
    const told = compare(restamped, taskWith(asked(10)), now)
    expect(told).toMatchObject({ change: 'new', anew: true })
    const doubted: Partial<Watch> = { ...restamped, anew: true }
    expect(compare({ ...restamped, ...doubted }, taskWith(asked(10)), now)).toMatchObject({
      ...{ change: 'none', restamp: at(10), anew: true },
    })
    const old = { ...restamped, ...doubted, restamp: at(minute) }
    expect(compare(old, taskWith(asked(minute)), now).change).toBe('new')
    // It stood for a minute: so it was asked.
    const stands = { ...known, anew: true, changed: now - minute } as const
    expect(compare(stands, taskWith(asked(3 * minute)), now).anew).toBeUndefined()
    expect(compare({ ...stands, changed: now - minute + 1 }, taskWith(asked(3 * minute)), now).anew).toBe(
      true,
    )
  })

  test('an end is never one', () => {
    expect(changeAfter([working, asks], { state: 'completed' })).toBe('new')
    const earlier: Raw = { state: 'completed', timestamp: '2026-06-15T12:00:00.000Z' }
    expect(changeAfter([working], earlier, { stamp: '2026-06-15T12:00:01.400Z' })).toBe('new')
  })

  test('the last four are remembered, each once', () => {
    const steps = [1, 2, 3, 4, 5].map(step => ({ message: step }))
    expect(havingSeen(...steps).ring).toHaveLength(4)
    expect(changeAfter(steps, { message: 2 })).toBe('back')
    expect(changeAfter(steps, { message: 1 })).toBe('new')
    const returned = compare(
      { ...havingSeen(...steps.slice(0, 2)), backSince: now - minute },
      taskWith(steps[0]),
      now,
    )
    expect(returned).toMatchObject({
      change: 'new',
      ring: havingSeen(...steps.slice(0, 2)).ring.toReversed(),
    })
  })
})
