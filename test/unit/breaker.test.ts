// The rules of calling an agent, without a table: slots, when it is left alone and for how long, and how looks that wait are spread.
import { describe, expect, test } from 'vitest'
import {
  type Calls,
  freeSlots,
  mostAskedMs,
  openAfter,
  openForMs,
  openMs,
  queueMs,
  reopenMs,
  type Sign,
  signOf,
  stateOf,
  takenSlots,
  trips,
} from '../../shared/breaker.ts'
import type { Trouble } from '../../shared/model.ts'

const now = 1_000_000

test('a slot is free again once its call must be over', () => {
  const calls: Calls = { s0: now + 1, s1: now - 1, s3: now + 5 }
  expect(takenSlots(calls, 4, now)).toEqual([0, 3])
  expect(freeSlots(calls, 4, now)).toEqual([1, 2])
  expect(freeSlots(calls, 4, now + 10)).toEqual([0, 1, 2, 3])
})

test('a slot beyond a limit that was lowered counts no more', () => {
  expect(takenSlots({ s7: now + 1 }, 2, now)).toEqual([])
})

test('only many failures in a row over some time leave an agent alone', () => {
  const { failures, milliseconds } = openAfter
  expect(trips({ failures, failedSince: now - milliseconds }, now)).toBe(true)
  expect(trips({ failures: failures - 1, failedSince: now - milliseconds }, now)).toBe(false)
  expect(trips({ failures, failedSince: now - milliseconds + 1 }, now)).toBe(false)
  expect(trips({}, now)).toBe(false)
})

test('an open breaker lets one try once its time is over', () => {
  expect(stateOf({}, now)).toBe('closed')
  expect(stateOf({ openUntil: now + 1 }, now)).toBe('open')
  expect(stateOf({ openUntil: now }, now)).toBe('half_open')
})

test('the time alone doubles up to a bound, and is spread', () => {
  const middle = [0, 1, 2, 3, 4, 50].map(opens => openForMs(opens, 0.5))
  expect(middle).toEqual([30_000, 60_000, 120_000, 240_000, 300_000, 300_000])
  expect(openForMs(0, 0)).toBeLessThan(openForMs(0, 0.99))
  expect(openForMs(99, 1)).toBeLessThanOrEqual(openMs.most * 1.2)
})

test('who waits comes again later each time, never all at once, never before the agent may be tried', () => {
  expect([0, 1, 2, 9, 1000].map(turns => queueMs(turns, 0.5))).toEqual([1000, 2000, 4000, 60_000, 60_000])
  expect(queueMs(3, 0.1)).toBeLessThan(queueMs(3, 0.9))
  expect(reopenMs(5000, 0, 0)).toBeGreaterThan(5000)
  expect(reopenMs(-9, 0, 0)).toBeGreaterThan(0)
})

describe('what an answer says of its agent', () => {
  const failed = (trouble: Trouble, retryAfterMs?: number): Sign | undefined =>
    signOf({ ok: false, trouble, detail: 'why', ...(retryAfterMs !== undefined && { retryAfterMs }) })

  test.each<Trouble>([
    'not_found',
    'forbidden',
    'unauthorized',
    'wrong_task',
    'unreadable',
    'too_large',
    'failed',
  ])('%s is an answer: others may be served', trouble => {
    expect(failed(trouble)).toEqual({ kind: 'answered' })
    expect(signOf({ ok: true })).toEqual({ kind: 'answered' })
  })

  test.each<Trouble>(['unreachable', 'rate_limited'])(
    '%s is a failure, or a wish to be left alone',
    trouble => {
      expect(failed(trouble)).toEqual({ kind: 'failed', fault: 'why' })
      expect(failed(trouble, 0)).toEqual({ kind: 'failed', fault: 'why' })
      expect(failed(trouble, 7000)).toEqual({ kind: 'asked', ms: 7000, fault: 'why' })
      expect(failed(trouble, 24 * 3_600_000)).toEqual({ kind: 'asked', ms: mostAskedMs, fault: 'why' })
      // What is asked of one subscription's credentials says not for how long all are to wait.
      const answer = { ok: false, trouble, detail: 'why', retryAfterMs: 7000, own: true } as const
      expect(signOf(answer)).toEqual({ kind: 'asked', fault: 'why' })
    },
  )
})
