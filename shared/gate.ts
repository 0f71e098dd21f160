// Lets wakes in to their target, and learns from what came of it: counts failures, pauses, resumes and gives up. What follows is decided in pausing.
import type { Outcome } from './channels/channel.ts'
import { drawShare } from './clock.ts'
import { tellOperations } from './operations.ts'
import {
  consequenceOf,
  forgetsMs,
  isCrowded,
  isOutage,
  paceMs,
  probeMs,
  slotMs,
  turnMs,
  wayIn,
} from './pausing.ts'
import { longestDelayMs, sendDeliver } from './queue.ts'
import type { Relay } from './relay.ts'
import {
  countFailure,
  endPause,
  forgetFailures,
  giveProbe,
  giveSlot,
  pauseGate,
  renewGate,
  takeProbe,
  takeSlot,
} from './store/gates.ts'
import { targetGroup } from './store/keys.ts'
import { disableTarget, getTarget } from './store/targets.ts'
import type { Facts, Gate, Spoke, Target } from './telling.ts'

/** A wake that was let in, by a slot or as a probe, until when. */
export type Inside = {
  kind: 'inside'
  by: { slot: number } | { probe: number }
  until: number
  gate: Gate
}

export type Entered = Inside | { kind: 'paused' } | { kind: 'full'; waitMs: number }

/** How often others may be quicker before a wake stands back. */
const mostTries = 4
/** How long after its time a message about a target is looked for in the table. */
export const backstopMs = 60_000

/** What it takes to get in. */
type World = Pick<Relay, 'table' | 'now' | 'random'>

/**
 * Lets a wake in to its target: one write on a usual day.
 * @param turns how often it found no room before
 * @param wake its public id
 */
export async function enter(relay: World, target: Target, turns: number, wake?: string): Promise<Entered> {
  let seen: Gate | undefined
  for (let tries = 0; tries < mostTries; tries++) {
    const now = relay.now()
    const way = wayIn(seen, target, now, drawShare(relay), wake)
    if (way.kind === 'paused') return way
    if (way.kind === 'full') return { ...way, waitMs: Math.max(way.waitMs, turnMs(turns, drawShare(relay))) }
    if (way.kind === 'renew') {
      seen = (await renewGate(relay.table, target, target.generation, now)).gate
      continue
    }
    const until = now + (way.kind === 'slot' ? slotMs : probeMs)
    const taken =
      way.kind === 'slot'
        ? await takeSlot(relay.table, target, slotOf(target, way, now), { now, until })
        : await takeProbe(
            relay.table,
            target,
            { generation: target.generation, seen: way.seen },
            {
              now,
              until,
              due: until + backstopMs,
            },
          )
    if (taken.ok) {
      const by = way.kind === 'slot' ? { slot: way.slot } : { probe: until }
      return { kind: 'inside', by, until, gate: taken.gate }
    }
    seen = taken.gate
  }
  return { kind: 'full', waitMs: turnMs(turns, drawShare(relay)) }
}

function slotOf(
  { generation, ratePerSecond }: Target,
  { slot, pace }: { slot: number; pace: number | undefined },
  now: number,
) {
  const paced = ratePerSecond !== undefined && pace !== undefined
  return {
    generation,
    slot,
    pace: paced ? { seen: pace, next: Math.max(pace, now) + paceMs(ratePerSecond) } : undefined,
  }
}

/** Leaves without having called. */
export async function leaveUnused(relay: Relay, target: Target, { by, until }: Inside): Promise<void> {
  if ('slot' in by) await giveSlot(relay.table, target, by.slot, until)
  else {
    await giveProbe(relay.table, target, by.probe, relay.now())
    // The next of those who wait probes instead.
    await lookAfter(relay, target)
  }
}

/**
 * Leaves after an attempt; the target is paused, resumed or given up by what it came to.
 * @param spoke for whom the wake spoke, if it was delivered
 * @returns `outdated` if the address that says that it is gone is its target's no more
 */
export async function leave(
  relay: Relay,
  target: Target,
  inside: Inside,
  outcome: Outcome,
  spoke: Spoke,
): Promise<'outdated' | undefined> {
  if (outcome.kind === 'disable')
    return (await giveUp(relay, target, outcome.reason)) ? undefined : 'outdated'
  if (outcome.kind === 'delivered') await succeeded(relay, target, inside, spoke)
  else await failed(relay, target, inside, outcome)
  return undefined
}

async function succeeded(
  relay: Relay,
  target: Target,
  { by, gate, until }: Inside,
  spoke: Spoke,
): Promise<void> {
  const now = relay.now()
  if ('probe' in by) return resumed(relay, target, gate, by.probe, spoke)
  if ((gate.failures ?? 0) > 0) await forgetFailures(relay.table, target, target.generation, by.slot)
  else if (isCrowded(gate, target, now)) await giveSlot(relay.table, target, by.slot, until)
}

async function failed(
  relay: Relay,
  target: Target,
  { by }: Inside,
  outcome: Extract<Outcome, { reason: string }>,
): Promise<void> {
  const now = relay.now()
  const { generation } = target
  const wrong = outcome.kind === 'config'
  const slot = 'slot' in by ? by.slot : undefined
  const { reason } = outcome
  const since = now - forgetsMs
  const counted = await countFailure(relay.table, target, generation, { now, reason, wrong, slot }, since)
  if (!counted.ok) return
  const wishMs = outcome.kind === 'retry' ? (outcome.afterMs ?? 0) : 0
  const probe = 'probe' in by ? by.probe : undefined
  const consequence = consequenceOf(
    counted.gate,
    { probe: probe !== undefined, wrong, wishMs },
    now,
    drawShare(relay),
  )
  if (consequence.kind === 'none') return
  if (consequence.kind === 'giveUp') {
    await giveUp(relay, target, reason)
    return
  }
  const until = now + consequence.ms
  const outage = isOutage(counted.gate)
  // A target that asked for a pause first is paused already when it becomes one.
  if (outage && counted.gate.told === undefined)
    await tell(relay, target, 'target.paused', counted.gate, { reason })
  const pause = {
    until,
    pauses: (probe === undefined ? 0 : (counted.gate.pauses ?? 0)) + (probe !== undefined || outage ? 1 : 0),
    probe,
    asked: wishMs > 0,
    ...(outage && { told: outageOf(counted.gate) }),
    due: until + (consequence.ms <= longestDelayMs ? backstopMs : 0),
  }
  if (!(await pauseGate(relay.table, target, generation, pause))) return
  relay.log({ step: 'target.paused', ...idsOf(target), until, reason })
  if (consequence.ms <= longestDelayMs) await lookAfter(relay, target, consequence.ms)
}

async function resumed(relay: Relay, target: Target, gate: Gate, probe: number, spoke: Spoke): Promise<void> {
  const now = relay.now()
  // One that was told has come to its end, whatever the probes met since.
  if (isOutage(gate) || gate.told !== undefined) await tell(relay, target, 'target.recovered', gate, {})
  if (!(await endPause(relay.table, target, probe, { now, due: now + backstopMs }, spoke))) return
  relay.log({ step: 'target.resumed', ...idsOf(target), failures: gate.failures })
  await lookAfter(relay, target)
}

/** Told first, done second. @returns false if the target was put anew meanwhile: of its new address nothing is known */
async function giveUp(relay: Relay, target: Target, reason: string): Promise<boolean> {
  const stands = await getTarget(relay.table, target.tenant, target.target)
  if (stands?.generation !== target.generation) return false
  const happened = { type: 'target.disabled', since: target.generation, data: { reason } } as const
  await tellOperations(relay, target.tenant, { target: target.target }, happened)
  const at = { reason, now: relay.now() }
  if (!(await disableTarget(relay.table, target.tenant, target.target, target.generation, at))) return false
  relay.log({ step: 'target.disabled', ...idsOf(target), reason })
  await lookAfter(relay, target)
  return true
}

/** Tells the tenant of an outage that begins or ends; both are named by when it began. */
const tell = (
  relay: Relay,
  { tenant, target, generation }: Target,
  type: 'target.paused' | 'target.recovered',
  gate: Gate,
  data: Facts,
): Promise<void> =>
  tellOperations(relay, tenant, { target }, { type, since: `${generation} ${outageOf(gate)}`, data })

const outageOf = ({ told, failingSince = 0 }: Gate): number => told ?? failingSince

/** Has somebody look after those who wait for a target. */
export const lookAfter = (
  relay: Relay,
  { tenant, target }: Pick<Target, 'tenant' | 'target'>,
  delayMs = 0,
): Promise<void> =>
  sendDeliver(relay.queues, targetGroup(tenant, target), { v: 1, kind: 'target', tenant, target }, delayMs)

const idsOf = ({ tenant, target }: Pick<Target, 'tenant' | 'target'>) => ({ tenant, target })
