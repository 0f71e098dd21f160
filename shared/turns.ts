// Lets calls to an agent in, so many at a time, and leaves it alone while it does not answer. Whoever is refused puts his work off; calls nobody itself.
import {
  type Calls,
  freeSlots,
  givesBack,
  openForMs,
  probeMs,
  queueMs,
  reopenMs,
  type Sign,
  signOf,
  slotMs,
  stateOf,
  trips,
  unreachableSince,
  waitingMs,
} from './breaker.ts'
import { limits } from './limits.ts'
import type { Waited } from './messages.ts'
import type { Agent } from './model.ts'
import { tellOperations } from './operations.ts'
import type { Relay } from './relay.ts'
import {
  closeBreaker,
  countFailure,
  forgetFailures,
  forgetWaiting,
  getCalls,
  giveSlot,
  noteWaiting,
  openBreaker,
  takeProbe,
  takeSlot,
} from './store/calls.ts'

type World = Pick<Relay, 'table' | 'queues' | 'now' | 'random' | 'log'>
type Callee = Pick<Agent, 'tenant' | 'agent' | 'maxConcurrentCalls'>

/** The right to call an agent: one of its slots, or the probe of one that was left alone. `until` names it, too. */
export type Turn = { slot: number | undefined; until: number; calls: Calls }

/** `waited` goes with the message that is put off. */
export type Entered = { ok: true; turn: Turn } | { ok: false; afterMs: number; waited: Waited }

/** How often another slot is tried when others were quicker. */
const tries = 3

export const limitOf = ({ maxConcurrentCalls = limits.callsOfAgent }: Callee): number => maxConcurrentCalls

/** A number from 0 to 1, drawn: it spreads what would otherwise come at once. */
export const share = (relay: Pick<World, 'random'>): number => (relay.random(1)[0] ?? 0) / 256

const drawn = <T>(relay: World, from: readonly T[]): T | undefined =>
  from[Math.floor(share(relay) * from.length)]

/** Asks to be let in. @param waited what the message says that asks again */
export async function enterAgent(relay: World, agent: Callee, waited?: Waited): Promise<Entered> {
  const limit = limitOf(agent)
  let calls: Calls = {}
  for (let tried = 0; tried < tries; tried++) {
    const now = relay.now()
    const slot = drawn(relay, freeSlots(calls, limit, now))
    if (slot === undefined) break
    const until = now + slotMs
    const taken = await takeSlot(relay.table, agent, slot, { now, until })
    calls = (taken.ok ? taken.item : taken.old) ?? {}
    if (taken.ok) return letIn(relay, agent, { slot, until, calls }, waited)
    if (calls.openUntil !== undefined) return enterOpen(relay, agent, calls, waited)
  }
  return refuse(relay, agent, calls, waited)
}

/** An agent that is left alone lets one call in to try it, once its time is over. */
async function enterOpen(relay: World, agent: Callee, calls: Calls, waited?: Waited): Promise<Entered> {
  const now = relay.now()
  if (calls.openUntil === undefined || stateOf(calls, now) === 'open')
    return refuse(relay, agent, calls, waited)
  const until = now + probeMs
  const probe = await takeProbe(relay.table, agent, calls.openUntil, until)
  if (!probe.ok) return refuse(relay, agent, probe.old ?? calls, waited)
  return letIn(relay, agent, { slot: undefined, until, calls: probe.item ?? calls }, waited)
}

async function letIn(relay: World, agent: Callee, turn: Turn, waited?: Waited): Promise<Entered> {
  if (waited !== undefined && turn.calls.oldest === waited.since)
    await forgetWaiting(relay.table, agent, waited.since)
  return { ok: true, turn }
}

async function refuse(relay: World, agent: Callee, calls: Calls, before?: Waited): Promise<Entered> {
  const now = relay.now()
  const { since, turns } = before ?? { since: now, turns: 0 }
  const stale = now - waitingMs
  if (calls.oldest === undefined || since <= calls.oldest || (calls.oldestSeen ?? 0) < stale)
    await noteWaiting(relay.table, agent, { since, now, stale })
  const { openUntil } = calls
  const afterMs =
    openUntil === undefined ? queueMs(turns, share(relay)) : reopenMs(openUntil - now, turns, share(relay))
  const why = openUntil === undefined ? 'full' : 'left_alone'
  relay.log({ step: 'look.put_off', level: 'debug', ...idsOf(agent), why, afterMs, turns })
  return { ok: false, afterMs, waited: { since, turns: turns + 1 } }
}

type Answer = Parameters<typeof signOf>[0]

/** Ends a turn and learns from its answer. @param answer missing when the agent was not called after all */
export async function leaveAgent(relay: World, agent: Callee, turn: Turn, answer?: Answer): Promise<void> {
  const sign = answer && signOf(answer)
  if (turn.slot === undefined) return endProbe(relay, agent, turn, sign)
  const now = relay.now()
  // Near its end somebody whose clock is ahead may have taken it already.
  const own = givesBack(turn.calls, limitOf(agent), turn.until - slotMs) && now < turn.until - 1000
  const slot = own ? turn.slot : undefined
  if (sign?.kind === 'failed') return countOne(relay, agent, slot, sign.fault)
  if (sign?.kind === 'answered' && turn.calls.failures !== undefined) {
    const forgot = await forgetFailures(relay.table, agent, slot)
    if (forgot.ok) return
  }
  if (slot !== undefined) await giveSlot(relay.table, agent, slot)
  if (sign?.kind === 'asked') await open(relay, agent, sign, turn.calls)
}

async function countOne(relay: World, agent: Callee, slot: number | undefined, fault: string): Promise<void> {
  const now = relay.now()
  const counted = await countFailure(relay.table, agent, { now, fault, slot })
  const calls = (counted.ok && counted.item) || {}
  if (calls.openUntil === undefined && trips(calls, now))
    await open(relay, agent, { kind: 'failed', fault }, { ...calls, opens: 0 })
}

/** Of probes that overlap, because one took too long, the latest has a say. */
async function endProbe(relay: World, agent: Callee, { until, calls }: Turn, sign?: Sign): Promise<void> {
  const { opens = 0, asked = false, fault = '' } = calls
  if (sign === undefined) {
    const now = relay.now()
    await openBreaker(relay.table, agent, { until: now, now, opens, asked, fault, probe: until })
    return
  }
  if (sign.kind !== 'answered') return open(relay, agent, sign, calls, until)
  const { told } = calls
  // Told before it is so: a crash between tells it twice under one id. A probe without a say tells nothing.
  if (told !== undefined && (await getCalls(relay.table, agent)).openUntil === until)
    await tellOperations(relay, agent.tenant, about(agent), { type: 'agent.recovered', since: told })
  if ((await closeBreaker(relay.table, agent, until)).ok)
    relay.log({ step: 'agent.answers_again', ...idsOf(agent), since: calls.failedSince })
}

/** @param calls as they stood when the call ended */
async function open(
  relay: World,
  agent: Callee,
  sign: Exclude<Sign, { kind: 'answered' }>,
  calls: Calls,
  probe?: number,
): Promise<void> {
  const now = relay.now()
  const { fault } = sign
  const asked = sign.kind === 'asked'
  const { opens = 0 } = calls
  const until = now + (asked ? sign.ms : openForMs(opens, share(relay)))
  const told = unreachableSince(calls, sign, now)
  if (told !== undefined) {
    const data = { reason: fault, failingSince: String(told) }
    await tellOperations(relay, agent.tenant, about(agent), { type: 'agent.unreachable', since: told, data })
  }
  const opening = { until, opens: opens + 1, asked, fault, now, probe, told }
  const opened = await openBreaker(relay.table, agent, opening)
  if (opened.ok) relay.log({ step: 'agent.left_alone', level: 'error', ...idsOf(agent), until, asked, fault })
}

const about = ({ agent }: Callee) => ({ agent })
const idsOf = ({ tenant, agent }: Callee) => ({ tenant, agent })
