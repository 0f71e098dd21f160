// A clock that stands still until it is moved, so that what happens at one instant can be said exactly.
import type { Clock } from '../../infra/local/clock.ts'

/** 2026-01-01T00:00:00Z. */
const begin = 1_767_225_600_000

/** Makes the clock. The queues' own time cannot stand still: it runs on, and jumps ahead as often as this one moves. */
export function stillClock(): Clock {
  let at = begin
  const offset = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT)
  return {
    now: () => at,
    advance: milliseconds => {
      at += milliseconds
      Atomics.add(new BigInt64Array(offset), 0, BigInt(milliseconds))
    },
    offset,
  }
}
