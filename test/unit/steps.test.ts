// A step is told from its text alone, under ids that nothing else has.
import { expect, test } from 'vitest'
import { entryIdOf, isOver, isUnpublished, wakeIdOf } from '../../shared/policy.ts'
import { readStep, writeStep } from '../../shared/steps.ts'
import { now, watchWith } from '../support/watches.ts'

const watch = watchWith({ rev: 3, state: 'working' })

test('what was written is read again, whatever stands in it', () => {
  const data = { budget: 'hop', seconds: 600, words: 'a=b&c #d% ü\n', rev: '9' }
  expect(readStep(writeStep(watch, 'task.overdue', now, { sub: 's1', data }))).toEqual({
    type: 'task.overdue',
    at: now,
    rev: 3,
    state: 'working',
    sub: 's1',
    data: { budget: 'hop', seconds: 600, words: 'a=b&c #d% ü\n' },
  })
})

test('a task that was never seen has no state in its steps', () => {
  expect(readStep(writeStep(watchWith({ rev: 0 }), 'task.lost_access', now))).toEqual({
    type: 'task.lost_access',
    at: now,
    rev: 0,
    data: {},
  })
})

test('a step of a version to come is told as it stands', () => {
  expect(readStep('type=task.dreamt&at=5&rev=1&state=dreaming&depth=2')).toEqual({
    type: 'task.dreamt',
    at: 5,
    rev: 1,
    data: { depth: '2' },
  })
})

test('the same step is the same wake and entry, and no other step or revision is', () => {
  const texts = [
    writeStep(watch, 'task.overdue', now, { data: { budget: 'hop' } }),
    writeStep(watch, 'task.overdue', now, { data: { budget: 'pause' } }),
    writeStep(watch, 'task.overdue', now + 1, { data: { budget: 'hop' } }),
    writeStep(watch, 'task.disputed', now, { data: { budget: 'hop' } }),
    writeStep(watch, 'task.overdue', now, { sub: 's1', data: { budget: 'hop' } }),
  ]
  const names = [...texts, 3]
  const ids = names.flatMap(name => [wakeIdOf(watch, name, 's1', 't1'), entryIdOf(watch, name, 'c1')])
  expect(new Set(ids).size).toBe(2 * names.length)
  expect(wakeIdOf(watch, texts[0] ?? '', 's1', 't1')).toBe(ids[0])
})

test('a step that is owed is unpublished, though the task ended and has no timer', () => {
  const ended = watchWith({ state: 'completed' })
  expect([isUnpublished(ended), isOver(ended)]).toEqual([false, true])
  const owing = { ...ended, owed: [writeStep(ended, 'task.disputed', now)] }
  expect([isUnpublished(owing), isOver(owing)]).toEqual([true, false])
})
