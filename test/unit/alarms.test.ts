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
  expect(alarmOf({ rev }, { trouble, times, since: now - since }, now)).toBe(alarm)
})

test('another lasting trouble is counted anew, from its own beginning', () => {
  const first = metAgain(undefined, 'not_found', 1)
  expect(first).toEqual({ trouble: 'not_found', since: 1, times: 1 })
  expect(metAgain(first, 'not_found', 5)).toEqual({ trouble: 'not_found', since: 1, times: 2 })
  expect(metAgain(first, 'forbidden', 9)).toEqual({ trouble: 'forbidden', since: 9, times: 1 })
})
