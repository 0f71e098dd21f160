// What every channel answers after an attempt to reach a target, and when the next attempt is due. Pure.

/** What an attempt means for the wake and its target. */
export type Verdict =
  /** The target has it. */
  | { kind: 'delivered' }
  /** It may work later; `afterMs` is the target's own wish, already capped. */
  | { kind: 'retry'; reason: string; afterMs?: number }
  /** The target is gone for good: switch off this generation of it, keep its messages. */
  | { kind: 'disable'; reason: string }
  /** The target is set up wrongly (its address or certificate): tell the owner, keep the messages. */
  | { kind: 'config'; reason: string }

/** A verdict with what the attempt's record keeps of the answer. */
export type Outcome = Verdict & {
  /** HTTP status of the answer, if there was one. */
  status?: number
  /** Start of the answer as text, from {@link excerpt}. */
  answer?: string
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute

const longest = 24 * hour

/** Waits between attempts, about 75 hours in all (Standard Webhooks 1.0.0, "Deliverability and reliability"). */
const waitsMs = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  longest,
]

/** The longest `Retry-After` of a target that is heeded. */
export const longestWishMs = hour

/** How much later than planned an attempt may start at most, as a share of its wait. */
const jitter = 0.1

/** The longest time from one attempt to the next. */
export const longestWaitMs = Math.round(longest * (1 + jitter))

/**
 * How long to wait before the next attempt: the schedule, or the target's wish where that is longer. A wish never
 * shortens the schedule, since quick retries would use it up while the target is still down. Jitter only adds, so
 * that nobody is called before the time asked for, and many wakes of one outage do not come back in one instant.
 * @param tries attempts made so far, 1 after the first
 * @param random01 at least 0, below 1
 * @param wishMs from `Retry-After`; capped at 1 h before jitter
 * @returns milliseconds, or undefined when the attempts are used up
 */
export function retryAfterMs(tries: number, random01: number, wishMs = 0): number | undefined {
  const wait = waitsMs[tries - 1]
  if (wait === undefined) return undefined
  return Math.round(Math.max(wait, Math.min(wishMs, longestWishMs)) * (1 + jitter * random01))
}

/** Bytes of an answer that are kept with the attempt. */
const excerptBytes = 1024

/** The first kilobyte of an answer as text on one line, fit for logs and consoles; undefined if it says nothing. */
export function excerpt(body: Uint8Array): string | undefined {
  // `stream` leaves out a character that the cut broke in two.
  const text = new TextDecoder().decode(body.subarray(0, excerptBytes), { stream: true })
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim() || undefined
}
