// One look at one task: lease, GetTask, fenced save, publish. Says how it ended; queues nothing but wakes and its own next look.
import { getTask } from './a2a/client.ts'
import { isNews, isTerminal, type Task } from './a2a/task.ts'
import type { Failure } from './a2a/trouble.ts'
import { endpointFor } from './calling.ts'
import type { NoticeMessage, WatchMessage } from './messages.ts'
import type { Agent, Subscription, Trouble, Watch } from './model.ts'
import {
  aheadTries,
  type Cause,
  compare,
  covered,
  floorMs,
  isAhead,
  isOver,
  isSettled,
  isUnpublished,
  leaseMs,
  pollMs,
  startAfter,
  troubleMs,
  waitMs,
  windowMs,
} from './policy.ts'
import { type Audience, audienceOf, concerns, publish } from './publish.ts'
import { longestDelayMs, sendLook } from './queue.ts'
import type { Relay } from './relay.ts'
import { getAgent } from './store/agents.ts'
import { agentGroup } from './store/keys.ts'
import { putSnapshot } from './store/snapshots.ts'
import { bindSubscription } from './store/subscriptions.ts'
import {
  dropWatch,
  endWatch,
  leaseWatch,
  leaveWatch,
  markAgain,
  openWatch,
  publishedWatch,
  saveLook,
  saveTrouble,
} from './store/watches.ts'

/** Why a look is made. */
export type Ask = {
  /** The push that asks for it. */
  cause?: Cause
  /** Whether to ask again while the agent does not show what the push named. */
  patient?: boolean
  /** A subscription that this look binds if the agent knows the task. */
  unbound?: Subscription
  /** The watch's timer fired, so it is to be set anew. */
  fired?: boolean
  /** The watch's mark of a trailing look is this message's own. */
  own?: boolean
}

export type Looked =
  /** Everything the push could tell is known and told. */
  | { kind: 'shown' }
  /** Not now: a look is under way or was less than a window ago. */
  | { kind: 'waits'; ms: number }
  /** The agent does not show yet what the push named. */
  | { kind: 'ahead' }
  /** There is nothing to look at. */
  | { kind: 'dropped'; why: string }
  /** The agent gave no task. `lasting` faults do not go away by asking again soon. */
  | { kind: 'trouble'; trouble: Trouble; lasting: boolean; watched: boolean; afterMs: number }

const lastingTroubles: ReadonlySet<Trouble> = new Set([
  'not_found',
  'forbidden',
  'unauthorized',
  'wrong_task',
  'unreadable',
  'unsupported_version',
])

/** Looks at a task unless that is needless now. */
export async function lookAt(relay: Relay, watch: Watch, ask: Ask): Promise<Looked> {
  const { cause } = ask
  const ahead = cause !== undefined && ask.patient === true && isAhead(cause.state, watch)
  // Only a look of its own binds an unbound subscription, however much is known already.
  const binds = ask.unbound !== undefined
  if (!binds && isOver(watch)) return { kind: 'shown' }
  if (
    !binds &&
    cause !== undefined &&
    !isUnpublished(watch) &&
    isSettled(watch, covered(watch, cause, ask.own === true))
  )
    return { kind: ahead ? 'ahead' : 'shown' }
  const now = relay.now()
  const wait = waitMs(watch, now)
  if (wait > 0) return { kind: 'waits', ms: wait }
  const leased = await leaseWatch(relay.table, watch, {
    now,
    start: startAfter(watch, now),
    until: now + leaseMs,
  })
  if (leased === undefined) return { kind: 'waits', ms: windowMs }
  return lookUnderLease(relay, leased, ask)
}

async function lookUnderLease(relay: Relay, watch: Watch, ask: Ask): Promise<Looked> {
  const audience = await audienceOf(relay, watch)
  for (const ref of audience.gone) await leaveWatch(relay.table, watch.key, ref, relay.now())
  const ended = ask.unbound === undefined && isTerminal(watch.state)
  if ((isUnpublished(watch) || ended) && audience.live.length > 0) {
    // What a crash left untold, or a late subscriber waits for, comes first; the task itself is looked at after the window.
    await tell(relay, watch, audience)
    return ended ? { kind: 'shown' } : { kind: 'waits', ms: windowMs }
  }
  if (ask.unbound !== undefined) audience.live.push(ask.unbound)
  if (audience.live.length === 0) {
    await endWatch(relay.table, watch.key, relay.now())
    return { kind: 'dropped', why: 'nobody_subscribed' }
  }
  const agent = await getAgent(relay.table, watch.tenant, watch.agent)
  if (agent === undefined) return { kind: 'dropped', why: 'agent_gone' }
  const answer = await getTask(
    relay.net,
    await endpointFor(relay, agent, audience.live),
    watch.taskId,
    relay.now(),
  )
  if (!answer.ok) return inTrouble(relay, watch, agent, audience, answer, ask)
  relay.log({ step: 'task.looked', ...idsOf(watch), state: answer.task.state })
  if (ask.unbound === undefined) return save(relay, watch, agent, audience, answer.task, answer.bytes, ask)
  const bound = await bind(relay, watch, ask.unbound)
  if (bound === undefined) return { kind: 'dropped', why: 'bound_elsewhere' }
  return save(relay, bound, agent, audience, answer.task, answer.bytes, ask)
}

/** Binds the subscription to the task that the agent just confirmed, and puts it on the watch. */
async function bind(relay: Relay, watch: Watch, sub: Subscription): Promise<Watch | undefined> {
  const bound = await bindSubscription(relay.table, sub.ref, watch.taskId)
  if (bound === undefined) {
    await dropWatch(relay.table, watch.key, watch.lookAt)
    return undefined
  }
  const now = relay.now()
  relay.log({ step: 'subscription.bound', ...idsOf(watch), subscription: sub.id })
  const joined = await openWatch(relay.table, watch, { now, due: now + floorMs(0) }, sub.ref)
  // The lease stays the one that this look was begun under.
  return joined && { ...joined, lookAt: watch.lookAt, lease: watch.lease }
}

async function save(
  relay: Relay,
  watch: Watch,
  agent: Agent,
  audience: Audience,
  task: Task,
  bytes: number,
  ask: Ask,
): Promise<Looked> {
  const now = relay.now()
  const { change, digest, ring } = compare(watch, task, now)
  const isNew = change === 'new'
  const rev = isNew ? watch.rev + 1 : watch.rev
  // What is known stays: an ended task is not unended by a replica.
  const state = isNew ? task.state : watch.state
  const told = isNew && concerns(audience, task.state)
  if (told || (isNew && isNews(task.state))) {
    const body = JSON.stringify(task.raw)
    await putSnapshot(relay.table, watch.key, { body, bytes, start: watch.lookAt, rev })
    relay.log({ step: 'snapshot.saved', ...idsOf(watch), rev, bytes })
  }
  const changed = isNew ? now : watch.changed
  const publishes = told || watch.fresh.length > 0 || isTerminal(state) || isUnpublished(watch)
  // A step back is looked at again once it can no longer be a replica's.
  const due = nextTimer(watch, agent, now, change === 'back' ? now : changed, ask.fired === true)
  const saved = await saveLook(relay.table, watch, {
    ...(state !== undefined && { state }),
    digest: isNew ? digest : (watch.digest ?? digest),
    ring,
    rev,
    changed,
    woken: publishes ? watch.woken : rev,
    looked: watch.lookAt,
    lease: publishes ? watch.lease : 0,
    ...(task.contextId !== undefined && { contextId: task.contextId }),
    ...(isNew && task.timestamp !== undefined && { stamp: task.timestamp.slice(0, 40) }),
    ...(change === 'back' && { backSince: watch.backSince ?? now }),
    ...(due !== undefined && { due }),
  })
  if (saved === undefined) return { kind: 'waits', ms: windowMs }
  relay.log({ step: 'watch.saved', ...idsOf(saved), rev, change })
  if (publishes) await tell(relay, saved, audience)
  if (agent.road === 'poll' && !isTerminal(saved.state)) await pollAgain(relay, saved, now - changed)
  return ask.cause !== undefined && ask.patient === true && isAhead(ask.cause.state, saved)
    ? { kind: 'ahead' }
    : { kind: 'shown' }
}

/**
 * Publishes, then marks it; an ended task that everybody knows of loses its timer in that same write. Who joined after
 * the audience was read was not told, and does not count as told.
 */
async function tell(relay: Relay, watch: Watch, audience: Audience): Promise<void> {
  await publish(relay, watch, audience)
  const heard = new Set(audience.live.map(({ ref }) => ref))
  await publishedWatch(relay.table, watch, {
    told: watch.fresh.filter(ref => heard.has(ref)),
    over: isTerminal(watch.state),
    now: relay.now(),
  })
}

/** The timer moves earlier at once, later only when it fired; undefined leaves it. */
function nextTimer(
  watch: Watch,
  agent: Agent,
  now: number,
  changed: number,
  fired: boolean,
): number | undefined {
  const silence = now - changed
  const after =
    agent.road === 'poll' ? 2 * pollMs(silence) + 5 * 60_000 : floorMs(silence, agent.floorSeconds)
  const next = now + after
  return fired || (watch.due !== undefined && next < watch.due) ? next : undefined
}

/** The poll road rides on the queue's own delay; the timer is only its backstop. */
const pollAgain = (relay: Relay, watch: Watch, silence: number): Promise<void> =>
  sendLook(
    relay.queues,
    agentGroup(watch.tenant, watch.agent),
    { v: 1, kind: 'watch', watch: watch.key, looked: watch.looked },
    pollMs(silence),
  )

/** Queues a message for later, then marks that a look will come: the other way round a crash would lose it. */
export async function putOff(
  relay: Relay,
  watch: Watch,
  message: NoticeMessage | WatchMessage,
  delayMs: number,
): Promise<void> {
  const wholeMs = Math.ceil(Math.min(delayMs, longestDelayMs) / 1000) * 1000
  const mark = relay.now() + wholeMs
  await sendLook(relay.queues, agentGroup(watch.tenant, watch.agent), { ...message, mark }, wholeMs)
  await markAgain(relay.table, watch.key, mark)
}

async function inTrouble(
  relay: Relay,
  watch: Watch,
  agent: Agent,
  audience: Audience,
  answer: Failure,
  ask: Ask,
): Promise<Looked> {
  const now = relay.now()
  const { trouble, detail } = answer
  const failures = (watch.failures ?? 0) + 1
  const afterMs = answer.retryAfterMs ?? troubleMs(failures)
  const lasting = lastingTroubles.has(trouble)
  relay.log({ step: 'look.failed', ...idsOf(watch), trouble, detail, failures })
  if (watch.subs.length === 0) {
    await dropWatch(relay.table, watch.key, watch.lookAt)
    return { kind: 'trouble', trouble, lasting, watched: false, afterMs }
  }
  if (
    lasting &&
    watch.rev === 0 &&
    failures > aheadTries &&
    audience.live.every(sub => sub.scope === 'agent')
  ) {
    // Pushed once and never seen: an agent-wide subscription does not wait for it for ever.
    for (const ref of watch.subs) await leaveWatch(relay.table, watch.key, ref, now)
    return { kind: 'dropped', why: trouble }
  }
  const fired = ask.fired === true
  await saveTrouble(relay.table, watch, {
    trouble,
    since: watch.troubleSince ?? now,
    failures,
    due: fired ? nextTimer(watch, agent, now, watch.changed, true) : undefined,
  })
  // One chain of repeats, whatever the number of pushes; past the longest delay the timer alone goes on.
  if ((watch.again <= now || ask.own === true) && (failures < 2 * aheadTries || agent.road === 'poll'))
    await putOff(relay, watch, { v: 1, kind: 'watch', watch: watch.key, looked: watch.looked }, afterMs)
  // The chain goes on for those who are on the watch; one that is not bound has only its push.
  return { kind: 'trouble', trouble, lasting, watched: ask.unbound === undefined, afterMs }
}

const idsOf = ({ tenant, agent, taskId }: Watch) => ({ tenant, agent, task: taskId })
