// Decides whether an agent may be called now: how many at a time, and when one that does not answer is left alone. Pure.
import { exchangeMs } from './a2a/endpoint.ts'
import type { Failure } from './a2a/trouble.ts'
import { limits } from './limits.ts'
import type { ProtocolVersion } from './model.ts'

const second = 1000
const minute = 60 * second

/** What a call needs of its slot's time: the longest exchange, and what stands around it. */
export const callMs = exchangeMs + 2 * second
/** How long a slot is taken for: so long a process may begin calls under it, and one call more. */
export const slotMs = 20 * second + callMs
/** How many calls in a row must have failed, and for how long, before the agent is left alone. */
export const openAfter = { failures: 5, milliseconds: 30 * second } as const
/** For how long an agent is left alone: at first, and at most after it failed its probes. */
export const openMs = { first: 30 * second, most: 5 * minute } as const
/** The longest that an agent's own `Retry-After` is heeded: what waits is news. */
export const mostAskedMs = 60 * minute
/** How long one probe of an agent that was left alone may take before another is made. */
export const probeMs = 2 * exchangeMs

/** For how long calls must have failed before the agent counts as unreachable: restarts and short cuts are nobody's news. */
export const unreachableMs = 5 * minute

/** The item `calls` of an agent. Slots `s0`, `s1`, … hold the time by which each call must be over. Times are ms since 1970. */
export type Calls = {
  [slot: `s${number}`]: number
  /** Calls in a row that were not answered, and since when. */
  failures?: number
  failedSince?: number
  /** Until when the agent is left alone; it stays until a probe was answered. How often in a row it was set. */
  openUntil?: number
  opens?: number
  /** The agent asked for it by `Retry-After`. */
  asked?: boolean
  /** Since when calls were failing when that was told as `agent.unreachable`. */
  told?: number
  /** The version that it spoke instead of the one it was registered with (`etag` names that), and until when to begin with it. */
  spoken?: { version: ProtocolVersion; etag: string; until: number }
  /** The last failure in words. */
  fault?: string
  /** Since when the look has been waiting that waits longest, and when it was last put off. */
  oldest?: number
  oldestSeen?: number
}

export const limitOf = ({
  maxConcurrentCalls = limits.callsOfAgent,
}: {
  maxConcurrentCalls?: number
}): number => maxConcurrentCalls

/** `half_open`: one call may try it. */
export type BreakerState = 'closed' | 'open' | 'half_open'

export const stateOf = ({ openUntil }: Calls, now: number): BreakerState =>
  openUntil === undefined ? 'closed' : openUntil > now ? 'open' : 'half_open'

/** Slots that a call under way holds, or that nobody gave back yet. */
export const takenSlots = (calls: Calls, limit: number, now: number): number[] =>
  slotsOf(limit).filter(slot => (calls[`s${slot}`] ?? 0) >= now)

export const freeSlots = (calls: Calls, limit: number, now: number): number[] =>
  slotsOf(limit).filter(slot => (calls[`s${slot}`] ?? 0) < now)

const slotsOf = (limit: number): number[] => Array.from({ length: limit }, (_, slot) => slot)

/**
 * What a call's end says of its agent: it answered, whatever it was; it did not; or it asks to be left alone, for so long.
 * Without a time it asked that of one subscription's credentials: whether it takes no calls of others is yet to be seen.
 */
export type Sign =
  | { kind: 'answered' }
  | { kind: 'failed'; fault: string }
  | { kind: 'asked'; ms?: number; fault: string }

/** How a call ended, and whether it was made with a subscription's own credentials. */
export type Heard = ({ ok: true } | Failure) & { own?: boolean }

/**
 * Reads the sign in an answer. A refusal is an answer; only who cannot serve anybody is left alone.
 * @returns undefined if the agent had no part in it
 */
export function signOf(answer: Heard): Sign | undefined {
  if (!answer.ok && answer.elsewhere === true) return undefined
  if (answer.ok || (answer.trouble !== 'unreachable' && answer.trouble !== 'rate_limited'))
    return { kind: 'answered' }
  const { detail: fault, retryAfterMs } = answer
  if (retryAfterMs === undefined || retryAfterMs === 0) return { kind: 'failed', fault }
  return { kind: 'asked', fault, ...(answer.own !== true && { ms: Math.min(retryAfterMs, mostAskedMs) }) }
}

/** True when an agent that failed again is to be left alone. */
export const trips = ({ failures = 0, failedSince = 0 }: Calls, now: number): boolean =>
  failures >= openAfter.failures && now - failedSince >= openAfter.milliseconds

/**
 * Since when an agent has been failing, if that is to be told now: once, and not of one that asked to be left alone,
 * for it does answer.
 */
export const unreachableSince = (
  { failedSince, told }: Calls,
  { kind }: Sign,
  now: number,
): number | undefined =>
  kind === 'failed' && told === undefined && failedSince !== undefined && now - failedSince >= unreachableMs
    ? failedSince
    : undefined

/**
 * For how long it is left alone: doubled each time, spread so that many do not come back at once.
 * @param opens how often in a row it was left alone before
 * @param share from 0 to 1, drawn
 */
export const openForMs = (opens: number, share: number): number =>
  Math.round(Math.min(openMs.first * 2 ** opens, openMs.most) * (0.8 + 0.4 * share))

/** How long a look waits that found every slot taken: from a second, doubled each time, up to a minute; spread. */
export const queueMs = (turns: number, share: number): number =>
  Math.round(Math.min(second * 2 ** Math.min(turns, 6), minute) * (0.5 + share))

/** How long a look waits for an agent that is left alone: until then, and a while more, so that not all come at once. */
export const reopenMs = (left: number, turns: number, share: number): number =>
  Math.max(left, 0) + queueMs(turns + 1, share)

/** A look that said nothing for so long is not waiting any more. */
export const waitingMs = 10 * minute
