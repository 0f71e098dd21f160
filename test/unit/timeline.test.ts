// A task's story: what a transition looks like packed, what folds, and what merging keeps.
import { expect, test } from 'vitest'
import type { Story, Transition } from '../../shared/model.ts'
import { delayOf, merge, pack, placeFor, unpack } from '../../shared/timeline.ts'

const step = (at: number, more: Partial<Transition> = {}): Transition => ({
  ...{ at, source: 'look', from: 'working', to: 'working', rev: at },
  ...more,
})
const none: Story = { steps: [] }
/** What waits on a watch after these transitions, seen one after the other. */
function waiting(steps: Transition[], before: string[] = []): string[] {
  const texts = [...before]
  for (const one of steps) {
    const { at, text } = placeFor(texts, one)
    texts[at === 'end' ? texts.length : at] = text
  }
  return texts
}

test.each<Transition>([
  step(1),
  { at: 1, source: 'policy', rev: 0 },
  { at: 1, source: 'push', to: 'failed', rev: 2, delay: -5 },
  { at: 9, source: 'cancel', rev: 2, note: 'too long, "said" the policy' },
  { at: 9, source: 'cancel', rev: 2, note: 'depends on [a,null],null,{}]' },
  step(8, { works: { count: 1, bytes: 2 }, note: '' }),
  step(8, { works: { count: 1, bytes: 2, changed: [{ id: '[b,null]', bytes: 2, sha256: 'f' }] } }),
  step(7, {
    since: 3,
    folded: 4,
    works: { count: 1, bytes: 2, changed: [{ id: 'a', bytes: 2, sha256: 'f' }] },
  }),
])('a transition is read as it was packed: %j', one => {
  expect(unpack(pack(one))).toEqual(one)
})

test.each([
  ['2026-01-01T00:00:01Z', 2000, 1000],
  ['2026-01-01T00:00:03.5Z', 2000, -1500],
  ['0001-01-01T00:00:00Z', 2000, undefined],
  ['1970-01-01T00:00:00Z', 2000, undefined],
  ['soon', 2000, undefined],
  [undefined, 2000, undefined],
])('a state dated %s that is heard of after %d ms took %s', (timestamp, after, delay) => {
  expect(delayOf(timestamp, Date.parse('2026-01-01T00:00:00Z') + after)).toBe(delay)
})

test('what changes while a state goes on folds into one, whose span and number are known', () => {
  const first = step(1, { from: 'submitted' })
  const texts = waiting([first, step(2), step(3), step(4)])
  expect(texts.map(unpack)).toEqual([first, step(4, { since: 2, folded: 3 })])
})

test('what waits on a watch stays few, and tells how many it stands for', () => {
  const states = ['working', 'input-required'] as const
  const all = Array.from({ length: 40 }, (_, at) =>
    step(at, { from: states[at % 2] ?? 'working', to: states[(at + 1) % 2] ?? 'working' }),
  )
  const texts = waiting(all)
  expect(texts.length).toBeLessThanOrEqual(3)
  expect(texts.map(unpack).reduce((sum, { folded = 1 }) => sum + folded, 0)).toBe(40)
  expect(texts.join('').length).toBeLessThan(300)
})

test('what somebody did, and why, is never folded away by looks', () => {
  const note = { at: 2, source: 'cancel', rev: 1, note: 'overdue' } as const
  const after = waiting(
    [3, 4, 5, 6].map(at => step(at)),
    [...waiting([step(1)]), pack(note)],
  )
  expect(after.map(unpack)).toContainEqual(note)
})

test('a story has each transition once, in order, whatever a look that died left', () => {
  const waits = [pack(step(1, { rev: 1 })), pack(step(3, { source: 'cancel', note: 'x' }))]
  const dead = merge(none, waits, step(4, { to: 'completed', rev: 2 }))
  const story = merge(dead, waits, step(9, { to: 'completed', rev: 2 }))
  expect(story.steps.map(({ at }) => at)).toEqual([1, 3, 9])
  expect(merge(story, waits)).toEqual(story)
})

test('a story is bounded, and what is told no more is counted by its cause', () => {
  let story = none
  for (let at = 1; at <= 500; at++)
    story = merge(
      story,
      [],
      step(at, { source: at % 5 === 0 ? 'push' : 'look', ...(at === 1 && { folded: 3, since: 0 }) }),
    )
  expect(story.steps.length).toBe(50)
  expect(story.earlier).toEqual({ counts: { push: 90, look: 362 }, since: 0, until: 450 })
  const works = { count: 1, bytes: 1, changed: [{ id: 'x'.repeat(4000), bytes: 1, sha256: 'f' }] }
  story = merge(merge(story, [], step(501, { works })), [], step(502, { works }))
  expect(story.steps.map(pack).join('').length).toBeLessThan(8000)
  expect(story.steps.at(-1)?.at).toBe(502)
})
