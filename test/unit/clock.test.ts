// The clock of the local ground: forward only, the same over a restart.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createClock } from '../../infra/local/clock.ts'
import { makeFolder } from '../support/folder.ts'

const day = 24 * 60 * 60 * 1000

test('advances add up and are kept', () => {
  const file = join(makeFolder(), 'clock')
  const first = createClock(file)
  first.advance(day)
  first.advance(2 * day)
  const before = Date.now()
  expect(createClock(file).now()).toBeGreaterThanOrEqual(before + 3 * day)
})

test('a clock that was never moved tells the time of the system and leaves no file', () => {
  const file = join(makeFolder(), 'clock')
  const before = Date.now()
  const told = createClock(file).now()
  expect(told).toBeGreaterThanOrEqual(before)
  expect(told).toBeLessThanOrEqual(Date.now())
  expect(existsSync(file)).toBe(false)
})

test.each([-1, Number.NaN])('an advance by %d is refused', step => {
  expect(() => createClock().advance(step)).toThrow(RangeError)
})
