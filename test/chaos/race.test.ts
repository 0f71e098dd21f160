// Schedules without deaths, floods of questions, and what each rule is for: the doors run once more with its text changed, and break a promise.
import { beforeAll, describe, expect, test } from 'vitest'
import { runBeside } from '../support/race/child.ts'
import type { Result } from '../support/race/main.ts'
import { needs } from '../support/race/needs.ts'
import { breaks } from '../support/race/rules.ts'

/** Schedules that are tried at most until the want of a rule shows. */
const most = 1500

test('on a day without deaths every lasting state is told within half a minute of its push', async () => {
  const [found] = await runBeside([{ odds: 'mild', from: 1, to: 60 }])
  expect(found?.broken).toEqual([])
})

test('an agent that takes back thirty questions costs a bounded number of messages', async () => {
  const [found] = await runBeside([{ odds: 'mild', pace: 'flapping', from: 1, to: 5 }])
  expect(found?.broken).toEqual([])
})

describe('without one rule', () => {
  const all = Object.entries(needs).map(([rule, need]) => ({ rule, ...need }))
  let shown: Result[] = []
  beforeAll(async () => {
    shown = await runBeside(namesOf(needs).map(rule => ({ rule, most })))
  }, 600_000)

  test.each(all)('$rule: $name', ({ rule }) => {
    const at = all.findIndex(need => need.rule === rule)
    expect(shown[at]?.broken, 'a schedule that shows what the rule is for').toHaveLength(1)
  })

  test('every rule has its need shown', () => {
    expect(Object.keys(needs).sort()).toEqual(Object.keys(breaks).sort())
  })
})

const namesOf = <Name extends string>(record: Record<Name, unknown>): Name[] => {
  const names: Name[] = []
  for (const name in record) names.push(name)
  return names
}
