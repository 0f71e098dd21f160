// Shows that the chaos run can fail: a rule of the relay is broken at a time, and the oracle names what is lost; with all rules kept the same plays lose nothing.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { breaks } from './world/rules.ts'
import { openTheatre, scenes, type Theatre } from './world/scenes.ts'

let honest: Theatre

beforeAll(async () => {
  honest = await openTheatre({})
})

afterAll(() => honest.stop())

test.each(Object.entries(scenes))(
  'nothing is lost in the scene for news that is %s',
  async (_rule, scene) => {
    expect(await scene(honest)).toEqual([])
  },
)

test.each(Object.entries(breaks))('news that is %s is reported as lost', async (rule, broken) => {
  const theatre = await openTheatre(broken)
  try {
    const found = await scenes[rule]?.(theatre)
    expect(found).not.toEqual([])
    expect(found?.map(violation => violation.rule)).toContain(expected[rule])
  } finally {
    await theatre.stop()
  }
})

const expected: Record<string, string> = {
  'marked before it is queued': 'late',
  'stepped over without a void': 'skipped',
}
