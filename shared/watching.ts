// One look at one task: a turn at its agent, lease, GetTask, then what saving and failing make of the answer. Queues nothing itself.

import { getTask } from './a2a/client.ts'
import type { Endpoint } from './a2a/endpoint.ts'
import { isTerminal } from './a2a/task.ts'
import type { Failure } from './a2a/trouble.ts'
import { type Ask, idsOf, type Looked, shown } from './asking.ts'
import type { Times } from './budgets.ts'
import { heardOf, type Tries } from './calling.ts'
import { type Canceled, cancelAt, isSettledBy } from './canceling.ts'
import { inTrouble } from './failing.ts'
import { limits } from './limits.ts'
import type { Agent, Cancel, Subscription, Watch } from './model.ts'
import { hurried } from './net.ts'
import { judgeTimes } from './overdue.ts'
import { seenOf } from './permits.ts'
import {
  covered,
  floorMs,
  isAhead,
  isOver,
  isSettled,
  isUnpublished,
  leaseMs,
  startAfter,
  waitMs,
  windowMs,
} from './policy.ts'
import { type Audience, audienceOf } from './publish.ts'
import { askersFirst, foundCanceled, outcomeOf } from './pursuing.ts'
import { agentAlarmed, alarmAnew } from './raising.ts'
import { credentialsOf, readyOf, turnsOf, type Whose } from './refusals.ts'
import { type Relay, within } from './relay.ts'
import { judge, save, tell } from './saving.ts'
import { getAgent } from './store/agents.ts'
import { countWrong } from './store/health.ts'
import { saveTimes } from './store/looks.ts'
import { bindSubscription } from './store/subscriptions.ts'
import { parentOf } from './store/trees.ts'
import {
  dropWatch,
  endWatch,
  freeWatch,
  leaseWatch,
  leaveWatch,
  openWatch,
  timeWatch,
  watchedBy,
} from './store/watches.ts'
import { sooner } from './timing.ts'
import { remindAbove, timesNow } from './tree.ts'
import { endWait, enterAgent, leaveAgent, type Turn } from './turns.ts'
import { callInVersion } from './versions.ts'
import { standingOf, wishOf } from './wishes.ts'

/** Looks at a task unless that is needless now. */
export async function lookAt(relay: Relay, watch: Watch, ask: Ask): Promise<Looked> {
  const known = needless(watch, ask)
  if (known === undefined) return lookAnew(relay, watch, ask)
  await endWait(relay, watch, ask.waited)
  return known
}

/** What the look would come to, if it need not be made. */
function needless(watch: Watch, ask: Ask): Looked | undefined {
  const { cause } = ask
  const ahead = cause !== undefined && ask.patient === true && isAhead(cause.state, watch)
  // Only a look of its own binds an unbound subscription, however much is known already.
  const binds = ask.unbound !== undefined
  if (!binds && isOver(watch)) return shown(watch)
  if (
    !binds &&
    cause !== undefined &&
    !isUnpublished(watch) &&
    isSettled(watch, covered(watch, cause, ask.own === true))
  )
    return ahead ? { kind: 'ahead' } : shown(watch)
  return undefined
}

async function lookAnew(relay: Relay, watch: Watch, ask: Ask): Promise<Looked> {
  const now = relay.now()
  const wait = waitMs(watch, now)
  if (wait > 0) return { kind: 'waits', ms: wait }
  // It may be a second old: a look that had begun then would call the agent so, too. One that seems gone is read again.
  const agent = await getAgent(relay.table, watch.tenant, watch.agent, true)
  // Let in before it is leased: a look that has to wait costs no more than that.
  const entered =
    agent && asksAgent(watch, ask)
      ? await enterAgent(relay, agent, ask.waited, () => hasOthers(relay, watch, ask))
      : undefined
  if (entered?.ok === false) {
    const { afterMs, waited, why } = entered
    relay.log({ step: 'look.put_off', level: 'debug', ...idsOf(watch), why, afterMs, turns: waited.turns })
    if (ask.fired === true) await judgeTimes(relay, watch)
    // Budgets above do not wait for this agent either; they are judged at its first wait. One that is being looked at is tried again soon.
    const { turns = 0 } = ask.waited ?? {}
    const reminded = turns > 0 || !joinsTree(watch) || (await remindAbove(relay, watch))
    return reminded
      ? { kind: 'busy', afterMs, waited }
      : { kind: 'busy', afterMs: Math.min(afterMs, windowMs), waited: { ...waited, turns } }
  }
  const called = agent && entered && { agent, turn: entered.turn }
  const at = { now, start: startAfter(watch, now), until: now + leaseMs }
  const leased = await leaseWatch(relay.table, watch, at)
  if (leased === undefined) {
    if (called !== undefined) await leaveAgent(relay, called.agent, called.turn)
    return { kind: 'waits', ms: windowMs }
  }
  return lookUnderLease(relay, leased, ask, called)
}

/** An agent that may be called now. */
type Called = { agent: Agent; turn: Turn }

/** Whether somebody has other credentials than the agent's own. Whose push asks is known; the others are read. */
async function hasOthers(relay: Relay, watch: Watch, { sub, unbound }: Ask): Promise<boolean> {
  const known = [sub, unbound].filter(one => one !== undefined)
  if (known.some(one => one.credentials !== undefined)) return true
  const { live } = await audienceOf(relay, watch, sub)
  return live.some(one => one.credentials !== undefined)
}

/** What is untold comes first, and an ended task is asked for again only to bind a subscription to it. */
const asksAgent = (watch: Watch, ask: Ask): boolean =>
  !isUnpublished(watch) && (ask.unbound !== undefined || !isTerminal(watch.state))

async function lookUnderLease(
  world: Relay,
  watch: Watch,
  ask: Ask,
  called: Called | undefined,
): Promise<Looked> {
  const audience = await audienceOf(world, watch, ask.sub)
  const trace = world.trace ?? audience.live.find(sub => sub.traceparent !== undefined)?.traceparent
  const relay = within(world, { trace, parent: watch.parent })
  for (const ref of audience.gone) await leaveWatch(relay.table, watch.key, ref, relay.now())
  if (joinsTree(watch) && !(await remindAbove(relay, watch, namedBy(watch, audience)))) {
    if (called !== undefined) await leaveAgent(relay, called.agent, called.turn)
    await freeWatch(relay.table, watch)
    return { kind: 'waits', ms: windowMs }
  }
  const looked = await lookInside(relay, watch, audience, ask)
  if (looked === undefined && called !== undefined) return lookOutside(relay, watch, audience, ask, called)
  if (called !== undefined) await leaveAgent(relay, called.agent, called.turn)
  if (looked !== undefined) return looked
  await freeWatch(relay.table, watch)
  // It changed just before it was leased: the next look asks the agent.
  const gone = (await getAgent(relay.table, watch.tenant, watch.agent)) === undefined
  return gone ? { kind: 'dropped', why: 'agent_gone' } : { kind: 'waits', ms: windowMs }
}

/** Somebody joined a task that was delegated from another: budgets of tasks above it may have been taken for kept. */
const joinsTree = ({ parent, fresh }: Watch): boolean => parent !== undefined && fresh.length > 0

/** The tasks that it was delegated from, as those who joined name them. */
const namedBy = ({ fresh }: Watch, { live }: Audience): string[] =>
  live.flatMap(sub => (fresh.includes(sub.ref) ? (parentOf(sub) ?? []) : []))

/** What can be settled without the agent. */
async function lookInside(
  relay: Relay,
  watch: Watch,
  audience: Audience,
  ask: Ask,
): Promise<Looked | undefined> {
  const ended = ask.unbound === undefined && isTerminal(watch.state)
  if ((isUnpublished(watch) || ended) && audience.live.length > 0) {
    // What a crash left untold, or a late subscriber waits for, comes first; the task itself is looked at after the window.
    const times = await timesNow(relay, watch, audience.live, relay.now())
    // Those of an open task are judged by that look, which may find that it went on, or by the timer.
    const { steps, saves, next } = isTerminal(watch.state) ? times : { steps: [], saves: {}, next: undefined }
    if (!isTerminal(watch.state)) await hurryTimer(relay, watch, times)
    const { steps: anew, ...told } = alarmAnew(watch, await agentAlarmed(relay, watch), audience)
    const owed = [...steps, ...anew]
    const timed = owed.length > 0 ? await saveTimes(relay.table, watch, { ...saves, ...told }, owed) : watch
    if (timed !== undefined) await tell(relay, timed, audience, next)
    return ended ? shown(watch) : { kind: 'waits', ms: windowMs }
  }
  const isBinding = ask.unbound !== undefined
  if (audience.live.length > 0 || (isBinding && !isUnpublished(watch))) return undefined
  // Nobody is left to be told: the agent is asked for who is not bound yet once that is noted.
  await endWatch(relay.table, watch.key, relay.now())
  await freeWatch(relay.table, watch)
  return isBinding ? { kind: 'waits', ms: windowMs } : { kind: 'dropped', why: 'nobody_subscribed' }
}

/** Budgets of who joined may end before the timer is due, or have ended: they do not wait for a turn at the agent. */
async function hurryTimer(relay: Relay, watch: Watch, { steps, next }: Times): Promise<void> {
  const now = relay.now()
  const due = sooner(watch, steps.length > 0 ? now : next)
  if (due !== undefined) await timeWatch(relay.table, watch.key, due, now)
}

async function lookOutside(
  relay: Relay,
  watch: Watch,
  audience: Audience,
  ask: Ask,
  { agent, turn }: Called,
): Promise<Looked> {
  // Until it is bound the agent is called for it, too, but it is told nothing of the task.
  const joining = ask.unbound === undefined ? [] : [ask.unbound]
  const callers = [...audience.live, ...joining]
  const standing = isTerminal(watch.state) ? undefined : standingOf(watch, audience.live)
  const wish = standing && wishOf(watch, audience.live, relay.now())
  const despite = 'despite' in turn
  const answer = await askFor(relay, watch, { agent, despite }, callers, wish)
  await leaveAgent(relay, agent, turn, heardOf(answer))
  if (!answer.ok && answer.busy === true) {
    await freeWatch(relay.table, watch)
    const { since, turns } = ask.waited ?? { since: relay.now(), turns: 0 }
    return { kind: 'busy', afterMs: answer.retryAfterMs ?? windowMs, waited: { since, turns: turns + 1 } }
  }
  const state = answer.ok ? answer.task.state : undefined
  const round = { watch, agent, live: audience.live }
  const outcome =
    (wish && outcomeOf(relay, round, wish, { tries: answer.tries, state })) ?? foundCanceled(standing, state)
  if (answer.tries.some(one => isWrong(one.answer))) await noteWrong(relay, watch)
  if (!answer.ok) return inTrouble(relay, watch, agent, audience, { ...answer, outcome }, ask)
  relay.log({ step: 'task.looked', ...idsOf(watch), state: answer.task.state })
  const bound = ask.unbound === undefined ? watch : await bind(relay, watch, ask.unbound)
  if ('why' in bound) return { kind: 'dropped', why: bound.why }
  if (bound !== watch && joinsTree(bound) && !(await remindAbove(relay, bound))) {
    await freeWatch(relay.table, bound)
    return { kind: 'waits', ms: windowMs }
  }
  const joined = { ...audience, live: callers }
  const known = judge(bound, answer.task, relay.now())
  if (!known.ok) {
    const tries = answer.tries.map(one => (one.answer.ok ? { ...one, answer: known } : one))
    return inTrouble(relay, bound, agent, joined, { ...known, outcome, tries }, ask)
  }
  return save(relay, bound, agent, joined, { ...answer, outcome }, known, ask)
}

/**
 * No call of a look begins after this, and the longest takes 10 s: refusals, renewed tokens and versions may ask for many,
 * and whatever they come to is to be saved before the function's 30 s are over.
 */
const askingMs = 14_000

/**
 * Asks the agent for the task, or to cancel it, with the credentials of those whose turn it is. Those that it asked to wait
 * have none until then, unless a cancellation is asked for with everybody's.
 */
function askFor(
  world: Relay,
  watch: Watch,
  { agent, despite }: { agent: Agent; despite: boolean },
  callers: Subscription[],
  wish: Cancel | undefined,
): Promise<(Canceled | Failure) & Tries<Canceled>> {
  const relay = { ...world, net: hurried(world.net, askingMs, world.now) }
  const now = relay.now()
  const callee = { agent, calls: seenOf(relay, agent).calls }
  // While the agent's own are to wait they are not shown.
  const owners = turnsOf(watch, agent, callers).filter(own => own !== undefined || !despite)
  if (owners.length === 0) return Promise.resolve(toldToWait(windowMs))
  const look = (endpoint: Endpoint): Promise<Canceled> =>
    getTask(relay.net, endpoint, watch.taskId, relay.now())
  if (wish !== undefined) {
    const { denied = [] } = wish
    const ask = (endpoint: Endpoint, own: Whose) =>
      denied.includes(credentialsOf(agent, own)) ? look(endpoint) : cancelAt(relay, endpoint, watch, wish)
    const order = askersFirst(agent, wish, owners)
    return callInVersion(relay, callee, callers, ask, { order, willDo: isSettledBy })
  }
  const { order, waitMs } = readyOf(watch, agent, owners, now)
  if (order.length === 0) return Promise.resolve(toldToWait(waitMs))
  return callInVersion(relay, callee, callers, look, { order })
}

/** What the agent would say again, which is not asked for that. */
const toldToWait = (retryAfterMs: number): Failure & Tries<never> => ({
  ...{ ok: false, elsewhere: true, trouble: 'rate_limited', retryAfterMs, tries: [] },
  detail: 'The agent asked that these credentials wait.',
})

/** Whether the agent answered about another task, if only when it was asked to cancel this one. */
const isWrong = (answer: Canceled | Failure): boolean =>
  (!answer.ok && answer.trouble === 'wrong_task') ||
  ('said' in answer && answer.said?.kind === 'failed' && answer.said.reason === 'wrong_task')

/** What an agent says of another task may be another customer's: it is dropped unread, and its owner is to look into it. */
async function noteWrong(relay: Relay, watch: Watch): Promise<void> {
  relay.log({ step: 'agent.answered_wrong', level: 'error', ...idsOf(watch) })
  await countWrong(relay.table, watch.tenant, watch.agent, relay.now())
}

/**
 * Binds the subscription to the task that the agent just confirmed, and puts it on the watch. One that finds no place
 * there stays unbound: it is told when its time to be bound is over.
 * @returns why it is not on the watch, whose lease has ended then
 */
async function bind(relay: Relay, watch: Watch, sub: Subscription): Promise<Watch | { why: string }> {
  const now = relay.now()
  if (watch.subs.length >= limits.subscriptionsOfTask) {
    await freeWatch(relay.table, watch)
    return { why: 'task_full' }
  }
  const bound = await bindSubscription(relay.table, sub.ref, watch.taskId)
  if (bound === undefined) {
    await dropWatch(relay.table, watch, now)
    return { why: 'bound_elsewhere' }
  }
  relay.log({ step: 'subscription.bound', ...idsOf(watch), subscription: sub.id })
  const joined = await openWatch(
    relay.table,
    watchedBy(sub, watch.taskId),
    { now, due: now + floorMs(0) },
    sub.ref,
  )
  if (joined === undefined) {
    await freeWatch(relay.table, watch)
    return { why: 'task_full' }
  }
  // The lease stays the one that this look was begun under.
  return { ...joined, lookAt: watch.lookAt, lease: watch.lease }
}
