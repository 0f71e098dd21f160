// Decides who may call a target now, when it is paused and for how long. Pure: time and chance are arguments.
import { longestWaitMs } from './channels/channel.ts'
import { limits } from './limits.ts'
import type { Gate, Target } from './telling.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** Failures in a row after which a target is paused: its wakes wait, and one of them probes it now and then. */
export const pausesAfter = 10
/** After failing for so long without a success a target is disabled. */
export const givesUpMs = 5 * 24 * hour
/**
 * Failures further apart than this are not in a row: retries and probes of a target that is away come closer, so nobody
 * called it meanwhile, and it may have been well. The hour is for queues and turns.
 */
export const forgetsMs = longestWaitMs + hour
/** How long an attempt holds its slot at most: a webhook has 15 s, its reads and writes the rest. */
export const slotMs = 25 * second
/** How long one probe has a paused target for itself. */
export const probeMs = 40 * second
/** So long after a pause wakes may still come to wait: lease of a delivery, lag of the index, clocks apart. */
export const stragglersMs = 90 * second

/** How long a target is paused: half a minute, doubled by each probe that failed, at most an hour; a tenth is chance. */
export const pauseMs = (pauses: number, share: number): number =>
  Math.round(Math.min((minute / 2) * 2 ** pauses, hour) * (1 + share / 10))

/** How long a wake waits that found all slots taken: longer each time, and spread, so that no two come back together. */
export const turnMs = (turns: number, share: number): number =>
  Math.round(Math.min(2 * second * 2 ** turns, 5 * minute) * (0.5 + share))

/** What a target allows. */
export type Limits = Pick<Target, 'generation' | 'maxConcurrency' | 'ratePerSecond'>

/** How a wake gets in, or why it does not. */
export type Way =
  /** By this slot; `pace` is the time that was seen to be free next, where a rate is set. */
  | { kind: 'slot'; slot: number; pace: number | undefined }
  /** As the one probe of a pause that ended at the time seen. */
  | { kind: 'probe'; seen: number }
  /** The target was put anew: its gate begins anew too. */
  | { kind: 'renew' }
  | { kind: 'paused' }
  | { kind: 'full'; waitMs: number }

const slotsOf = ({ maxConcurrency = limits.attemptsAtTarget }: Limits): number => maxConcurrency

/** A quarter of a second's worth may come at once. */
const burstOf = (rate: number): number => Math.ceil(rate / 4)

/** Time from one attempt to the next: those that come at once leave the others of that second the more time. */
export const paceMs = (rate: number): number => Math.ceil(second / (rate - burstOf(rate) + 1))

const burstMs = (rate: number): number => (burstOf(rate) - 1) * paceMs(rate)

/** True for a gate of a target before it was put anew: it holds no more, but wakes may wait at it. */
export const isBehind = (gate: Gate | undefined, { generation }: Pick<Target, 'generation'>): boolean =>
  gate !== undefined && gate.generation < generation

/**
 * How a wake gets in by what was last seen of the gate; nothing seen yet is taken for a usual day.
 * @param share chance, at least 0, below 1
 * @param wake its public id: it may have been sent to probe
 */
export function wayIn(
  gate: Gate | undefined,
  limits: Limits,
  now: number,
  share: number,
  wake?: string,
): Way {
  const all = slotsOf(limits)
  if (isBehind(gate, limits)) return { kind: 'renew' }
  // The target was put anew since it was read: the wake comes again and reads it.
  if (gate !== undefined && gate.generation > limits.generation) return { kind: 'full', waitMs: second }
  if (gate?.pausedUntil !== undefined) {
    const handed = wake !== undefined && gate.handed === wake
    return gate.pausedUntil > now && !handed ? { kind: 'paused' } : { kind: 'probe', seen: gate.pausedUntil }
  }
  const taken = takenSlots(gate, now)
  const free = Array.from({ length: all }, (_, slot) => slot).filter(slot => !taken.has(slot))
  const slot = free[Math.floor(share * free.length)]
  if (slot === undefined) return { kind: 'full', waitMs: 0 }
  if (limits.ratePerSecond === undefined) return { kind: 'slot', slot, pace: undefined }
  const pace = gate?.free ?? 0
  const early = pace - burstMs(limits.ratePerSecond) - now
  return early > 0 ? { kind: 'full', waitMs: early } : { kind: 'slot', slot, pace }
}

/** The slots that are held now. */
function takenSlots(gate: Gate | undefined, now: number): Set<number> {
  const held = Object.entries(gate?.slots ?? {}).filter(([, until]) => until > now)
  return new Set(held.map(([slot]) => Number(slot)))
}

/** True when so many slots are taken that one is given back at once; else it runs out by itself, which costs no write. */
export const isCrowded = (gate: Gate, limits: Limits, now: number): boolean =>
  2 * takenSlots(gate, now).size > slotsOf(limits)

/** What a failure does to the target. */
export type Consequence = { kind: 'none' } | { kind: 'pause'; ms: number } | { kind: 'giveUp' }

/**
 * What a failed attempt does to its target.
 * @param gate as it stands with this failure
 * @param failed whether it was the probe of a pause, whether the target is set up wrongly, and for how long the target
 * itself asked to be left alone
 */
export function consequenceOf(
  gate: Gate,
  failed: { probe: boolean; wrong: boolean; wishMs: number },
  now: number,
  share: number,
): Consequence {
  const { failures = 0, failingSince = now, pauses = 0 } = gate
  if (failures >= pausesAfter && now - failingSince >= givesUpMs) return { kind: 'giveUp' }
  if (failed.probe || failed.wrong || failures >= pausesAfter)
    return { kind: 'pause', ms: Math.max(pauseMs(pauses, share), failed.wishMs) }
  return failed.wishMs > 0 ? { kind: 'pause', ms: failed.wishMs } : { kind: 'none' }
}

/** True when its owner is to hear of a pause: it is not only busy. */
export const isOutage = (gate: Gate): boolean => (gate.failures ?? 0) >= pausesAfter || gate.wrong === true

/** One wake on a target's waiting list. `waiters` names those that the newest among them speaks for. */
export type Waiter = { waiters: string; at: number; id: string }

/** Splits a waiting list by those that the newest speaks for, the newest of each first. */
export function groupsOf<T extends Waiter>(waiting: T[]): T[][] {
  const groups = Map.groupBy(waiting, ({ waiters }) => waiters)
  return [...groups.values()].map(group => group.toSorted(newestFirst))
}

const newestFirst = (one: Waiter, other: Waiter): number => other.at - one.at || (one.id > other.id ? -1 : 1)
