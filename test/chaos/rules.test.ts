// Shows that the chaos run can fail: a rule of the relay is broken at a time, and the oracle names what is lost; with all rules kept the same plays lose nothing.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Rule } from './world/judge.ts'
import { breaks, type RuleName, ruleNames } from './world/rules.ts'
import { scenes } from './world/scenes.ts'
import { openTheatre, type Theatre } from './world/theatre.ts'

let honest: Theatre

/** Each theatre starts processes of its own, and only a hang should end here. */
const patienceMs = 400_000

beforeAll(async () => {
  honest = await openTheatre({})
}, patienceMs)

afterAll(() => honest.stop())

test.each(ruleNames)(
  'nothing is lost in the scene for news that is %s',
  async rule => {
    expect(await scenes[rule](honest)).toEqual([])
  },
  patienceMs,
)

test.each(ruleNames)(
  'news that is %s is reported',
  async rule => {
    const theatre = await openTheatre(breaks[rule])
    try {
      const found = await scenes[rule](theatre)
      expect(found.map(violation => violation.rule)).toContain(expected[rule])
    } finally {
      await theatre.stop()
    }
  },
  patienceMs,
)

/** What the oracle names: news that came only with a timer or with the queue's own repeat is late. */
const expected: Record<RuleName, Rule> = {
  'dropped because a look was begun': 'late',
  'marked before it is queued': 'late',
  'held before it is queued': 'late',
  'saved without a fence': 'wrong',
  'dropped because a look is under way': 'late',
  'stepped over without a void': 'skipped',
}
