// Whatever order things happen in, and whoever dies on the way: the last state is told. The real doors under random schedules of a table and queues in memory.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { runJobs } from '../support/race/child.ts'
import { breaks, changed, scale } from '../support/race/rules.ts'

// `npm run race` tries tens of thousands of them.
const few = 60

test('among deaths, doubles, lost answers, replicas and clocks half a second off, nothing is lost, told under two names or left over', async () => {
  const [found] = await runJobs([{ odds: 'rough', pace: 'brief', from: 1, to: few }])
  expect(found).toEqual({ runs: few, broken: [] })
})

describe('each rule can be broken, so that the chaos tests show what it is for:', () => {
  test.each(Object.entries({ ...breaks, scale }))('%s', (_, all) => {
    for (const one of all) {
      const text = readFileSync(one.file, 'utf8')
      expect(changed(text, [one]), one.file).not.toBe(text)
    }
  })
})
