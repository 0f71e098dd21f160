// Lets calls to an agent in, so many at a time, and leaves it alone while it does not answer. Whoever is refused puts his work off; calls nobody itself.
import {
  type Calls,
  openForMs,
  probeMs,
  queueMs,
  reopenMs,
  type Sign,
  signOf,
  stateOf,
  trips,
  unreachableSince,
  waitingMs,
} from './breaker.ts'
import { drawShare } from './clock.ts'
import type { Waited } from './messages.ts'
import { tellOperations } from './operations.ts'
import { type Callee, learn, learnFrom, leavePermit, type Permit, seenOf, takePermit } from './permits.ts'
import type { Relay } from './relay.ts'
import {
  closeBreaker,
  countFailure,
  forgetFailures,
  forgetWaiting,
  getCalls,
  noteWaiting,
  openBreaker,
  takeProbe,
} from './store/calls.ts'

type World = Pick<Relay, 'table' | 'queues' | 'now' | 'random' | 'log' | 'permits'>

/** The probe of an agent that was left alone, named by the time until which it may take, and what was known then. */
type Probe = { until: number; calls: Calls }

/** The right to call an agent. */
export type Turn = { permit: Permit } | { probe: Probe }

/** `waited` goes with the message that is put off; `why` is for the log, and for sweeps, which wait for no turn. */
export type Entered =
  | { ok: true; turn: Turn }
  | { ok: false; afterMs: number; waited: Waited; why: 'full' | 'left_alone' }

/** Asks to be let in. @param waited what the message says that asks again */
export async function enterAgent(relay: World, agent: Callee, waited?: Waited): Promise<Entered> {
  const got = await takePermit(relay, agent)
  if (got.ok) return letIn(relay, agent, { permit: got.permit }, waited)
  return enterOpen(relay, agent, waited)
}

/** An agent that is left alone lets one call in to try it, once its time is over. */
async function enterOpen(relay: World, agent: Callee, waited?: Waited): Promise<Entered> {
  const now = relay.now()
  const { calls } = seenOf(relay, agent)
  if (calls.openUntil === undefined || stateOf(calls, now) === 'open') return refuse(relay, agent, waited)
  const until = now + probeMs
  const taken = await takeProbe(relay.table, agent, calls.openUntil, until)
  const found = (taken.ok ? taken.item : taken.old) ?? calls
  learn(relay, agent, found)
  return taken.ok
    ? letIn(relay, agent, { probe: { until, calls: found } }, waited)
    : refuse(relay, agent, waited)
}

async function letIn(relay: World, agent: Callee, turn: Turn, waited?: Waited): Promise<Entered> {
  await endWait(relay, agent, waited)
  return { ok: true, turn }
}

/**
 * Notes that a look waits no more: it was let in, or needs no turn after all. What was seen before it began to wait
 * cannot say whether it waited longest.
 */
export async function endWait(relay: World, agent: Callee, waited: Waited | undefined): Promise<void> {
  if (waited === undefined) return
  const { calls, at } = seenOf(relay, agent)
  if (calls.oldest !== waited.since && at > waited.since) return
  const forgot = await forgetWaiting(relay.table, agent, waited.since)
  learnFrom(relay, agent, forgot)
}

async function refuse(relay: World, agent: Callee, before?: Waited): Promise<Entered> {
  const now = relay.now()
  const { since, turns } = before ?? { since: now, turns: 0 }
  const stale = now - waitingMs
  const { calls, at } = seenOf(relay, agent)
  const { oldest = now + 1, oldestSeen = 0 } = calls
  if (since < oldest || (since === oldest && oldestSeen !== now) || oldestSeen < stale) {
    // Others who are refused just now need not note the same.
    learn(relay, agent, { ...calls, oldest: since, oldestSeen: now }, at)
    await noteWaiting(relay.table, agent, { since, now, stale })
  }
  const { openUntil } = calls
  const afterMs =
    openUntil === undefined
      ? queueMs(turns, drawShare(relay))
      : reopenMs(openUntil - now, turns, drawShare(relay))
  const why = openUntil === undefined ? 'full' : 'left_alone'
  return { ok: false, afterMs, waited: { since, turns: turns + 1 }, why }
}

type Answer = Parameters<typeof signOf>[0]

/** Ends a turn and learns from its answer. @param answer missing when the agent was not called after all */
export async function leaveAgent(relay: World, agent: Callee, turn: Turn, answer?: Answer): Promise<void> {
  const sign = answer && signOf(answer)
  if ('probe' in turn) return endProbe(relay, agent, turn.probe, sign)
  if (sign?.kind === 'failed') await countOne(relay, agent, sign.fault)
  else if (sign?.kind === 'asked') await open(relay, agent, sign, seenOf(relay, agent).calls)
  else if (sign !== undefined && seenOf(relay, agent).calls.failures !== undefined) {
    const forgot = await forgetFailures(relay.table, agent)
    learnFrom(relay, agent, forgot)
  }
  await leavePermit(relay, agent, turn.permit)
}

async function countOne(relay: World, agent: Callee, fault: string): Promise<void> {
  const now = relay.now()
  const counted = await countFailure(relay.table, agent, { now, fault })
  const calls = (counted.ok && counted.item) || {}
  learn(relay, agent, calls)
  if (calls.openUntil === undefined && trips(calls, now))
    await open(relay, agent, { kind: 'failed', fault }, { ...calls, opens: 0 })
}

/** Of probes that overlap, because one took too long, the latest has a say. */
async function endProbe(relay: World, agent: Callee, { until, calls }: Probe, sign?: Sign): Promise<void> {
  const { opens = 0, asked = false, fault = '' } = calls
  if (sign === undefined) {
    const now = relay.now()
    const given = { until: now, now, opens, asked, fault, probe: until }
    const left = await openBreaker(relay.table, agent, given)
    return learnFrom(relay, agent, left)
  }
  if (sign.kind !== 'answered') return open(relay, agent, sign, calls, until)
  const { told } = calls
  // Told before it is so: a crash between tells it twice under one id. A probe without a say tells nothing.
  if (told !== undefined && (await getCalls(relay.table, agent)).openUntil === until)
    await tellOperations(relay, agent.tenant, about(agent), { type: 'agent.recovered', since: told })
  const closed = await closeBreaker(relay.table, agent, until)
  learnFrom(relay, agent, closed)
  if (closed.ok) relay.log({ step: 'agent.answers_again', ...idsOf(agent), since: calls.failedSince })
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
  const until = now + (asked ? sign.ms : openForMs(opens, drawShare(relay)))
  const told = unreachableSince(calls, sign, now)
  if (told !== undefined) {
    const data = { reason: fault, failingSince: told }
    await tellOperations(relay, agent.tenant, about(agent), { type: 'agent.unreachable', since: told, data })
  }
  const opening = { until, opens: opens + 1, asked, fault, now, probe, told }
  const opened = await openBreaker(relay.table, agent, opening)
  learnFrom(relay, agent, opened)
  if (opened.ok) relay.log({ step: 'agent.left_alone', level: 'error', ...idsOf(agent), until, asked, fault })
}

const about = ({ agent }: Callee) => ({ agent })
const idsOf = ({ tenant, agent }: Callee) => ({ tenant, agent })
