// When a trouble is told, and as what: not before it may be taken for lasting, and differently before and after the task was seen.
import { expect, test } from 'vitest'
import { alarmOf, metAgain, orphanMs } from '../../shared/alarms.ts'
import type { Trouble } from '../../shared/model.ts'
import { aheadTries } from '../../shared/policy.ts'

const now = 1e9

test.each<[what: string, trouble: Trouble, rev: number, times: number, since: number, alarm?: string]>([
  ['case 137: a task never seen, asked for often', 'not_found', 0, aheadTries, 0, 'task.lost_access'],
  ['the same, asked for less often', 'not_found', 0, aheadTries - 1, 0],
  ['case 137: a task seen before, missing for long', 'not_found', 3, aheadTries, orphanMs, 'task.orphaned'],
  ['the same, missing for a while', 'not_found', 3, aheadTries, orphanMs - 1],
  ['case 136: a task that became forbidden', 'forbidden', 3, aheadTries, orphanMs, 'task.lost_access'],
  ['one 401', 'unauthorized', 1, 1, 0],
  ['case 135: 401 again', 'unauthorized', 1, 2, 0, 'subscription.credentials_expired'],
  ['a refresh token that was refused', 'credentials_expired', 1, 1, 0, 'subscription.credentials_expired'],
  ['case 142: an answer too large to show a state', 'too_large', 1, 1, 0, 'task.too_large'],
  ['case 140: an agent that is down for long', 'unreachable', 1, 99, orphanMs],
  ['case 146: another task for long', 'wrong_task', 1, 99, orphanMs],
])('%s', (_what, trouble, rev, times, since, alarm) => {
  expect(alarmOf({ rev }, { trouble, times, since: now - since, row: times }, now)).toBe(alarm)
})

test('troubles that one fault may show in turn are counted together, another anew but in one row', () => {
  const first = metAgain(undefined, 'not_found', 1)
  expect(first).toEqual({ trouble: 'not_found', since: 1, times: 1, row: 1 })
  const second = metAgain(first, 'forbidden', 5)
  expect(second).toEqual({ trouble: 'forbidden', since: 1, times: 2, row: 2 })
  const third = metAgain(second, 'unreadable', 9)
  expect(third).toEqual({ trouble: 'unreadable', since: 9, times: 1, row: 3 })
  expect(metAgain(third, 'unreadable', 12)).toEqual({ trouble: 'unreadable', since: 9, times: 2, row: 4 })
})
