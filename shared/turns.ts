// Lets calls to an agent in, so many at a time, and leaves it alone while it does not answer. Whoever is refused puts his work off; calls nobody itself.
import {
  type Calls,
  type Heard,
  openForMs,
  probeMs,
  queueMs,
  reopenMs,
  type Sign,
  signOf,
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

/** The right to call an agent; `despite` while it is left alone by others. */
export type Turn = { permit: Permit; despite?: true } | { probe: Probe }

/** `waited` goes with the message that is put off; `why` is for the log, and for sweeps, which wait for no turn. */
export type Entered =
  | { ok: true; turn: Turn }
  | { ok: false; afterMs: number; waited: Waited; why: 'full' | 'left_alone' }

/**
 * Asks to be let in.
 * @param waited what the message says that asks again
 * @param hasOthers whether there are other credentials than the agent's own, which are not to be shown if it is let in
 * `despite` that: only asked while those are told to wait
 */
export async function enterAgent(
  relay: World,
  agent: Callee,
  waited?: Waited,
  hasOthers: () => Promise<boolean> | boolean = () => false,
): Promise<Entered> {
  const got = await takePermit(relay, agent)
  if (got.ok) return letIn(relay, agent, { permit: got.permit }, waited)
  const { openUntil, asked } = seenOf(relay, agent).calls
  if (openUntil === undefined) return refuse(relay, agent, waited, 'full')
  // Who asked to be left alone asked that of its own credentials.
  if (asked === true && openUntil > relay.now() && (await hasOthers())) {
    const despite = await takePermit(relay, { ...agent, despite: true })
    return despite.ok
      ? letIn(relay, agent, { permit: despite.permit, despite: true }, waited)
      : refuse(relay, agent, waited, 'full')
  }
  return enterOpen(relay, agent, openUntil, waited)
}

/** An agent that is left alone lets one call in to try it, once its time is over. */
async function enterOpen(relay: World, agent: Callee, openUntil: number, waited?: Waited): Promise<Entered> {
  const now = relay.now()
  if (openUntil > now) return refuse(relay, agent, waited, 'left_alone')
  const { calls } = seenOf(relay, agent)
  const until = now + probeMs
  const taken = await takeProbe(relay.table, agent, openUntil, until)
  const found = (taken.ok ? taken.item : taken.old) ?? calls
  learn(relay, agent, found)
  return taken.ok
    ? letIn(relay, agent, { probe: { until, calls: found } }, waited)
    : refuse(relay, agent, waited, 'left_alone')
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

async function refuse(
  relay: World,
  agent: Callee,
  before: Waited | undefined,
  why: 'full' | 'left_alone',
): Promise<Entered> {
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
  const afterMs =
    why === 'full'
      ? queueMs(turns, drawShare(relay))
      : reopenMs((calls.openUntil ?? now) - now, turns, drawShare(relay))
  return { ok: false, afterMs, waited: { since, turns: turns + 1 }, why }
}

/** Ends a turn and learns from its answer. @param answer missing when the agent was not called after all */
export async function leaveAgent(relay: World, agent: Callee, turn: Turn, answer?: Heard): Promise<void> {
  const sign = answer && signOf(answer)
  if ('probe' in turn) return endProbe(relay, agent, turn.probe, sign)
  // Nothing that these are told says when others may call again.
  if (turn.despite === true) return leavePermit(relay, { ...agent, despite: true }, turn.permit)
  if (sign?.kind === 'asked' && sign.ms !== undefined)
    await open(relay, agent, sign, seenOf(relay, agent).calls)
  else if (sign?.kind === 'failed' || sign?.kind === 'asked') await countOne(relay, agent, sign)
  else if (sign !== undefined && seenOf(relay, agent).calls.failures !== undefined) {
    const forgot = await forgetFailures(relay.table, agent)
    learnFrom(relay, agent, forgot)
  }
  await leavePermit(relay, agent, turn.permit)
}

async function countOne(relay: World, agent: Callee, sign: Unserved): Promise<void> {
  const now = relay.now()
  const counted = await countFailure(relay.table, agent, { now, fault: sign.fault })
  const calls = (counted.ok && counted.item) || {}
  learn(relay, agent, calls)
  if (calls.openUntil === undefined && trips(calls, now))
    await open(relay, agent, sign, { ...calls, opens: 0 })
}

type Unserved = Exclude<Sign, { kind: 'answered' }>

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
  sign: Unserved,
  calls: Calls,
  probe?: number,
): Promise<void> {
  const now = relay.now()
  const { fault } = sign
  const asked = sign.kind === 'asked'
  const { opens = 0 } = calls
  const until = now + ((asked ? sign.ms : undefined) ?? openForMs(opens, drawShare(relay)))
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
