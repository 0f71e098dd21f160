// What a look saw is saved under its lease, published, and only then marked as told. Asks no agent.

import type { Looked as Answered } from './a2a/client.ts'
import { isInterrupted, isTerminal, type Task, type TaskState } from './a2a/task.ts'
import type { Failure } from './a2a/trouble.ts'
import { type Ask, idsOf, type Looked, shown } from './asking.ts'
import type { Tries } from './calling.ts'
import { noteOutcome, refusal } from './canceling.ts'
import type { Agent, Watch } from './model.ts'
import { compare, isAhead, isUnpublished, leaseMs, longestStamp, restampMs, windowMs } from './policy.ts'
import { type Audience, concerns, publish } from './publish.ts'
import type { Outcome } from './pursuing.ts'
import { type ChangedWorks, compareWorks, record } from './recording.ts'
import { servedBy } from './refusals.ts'
import type { Relay } from './relay.ts'
import { restore } from './restoring.ts'
import { readStep } from './steps.ts'
import { publishedWatch, saveLook } from './store/looks.ts'
import { endSubscription } from './store/subscriptions.ts'
import { inContext, pointAt } from './store/trees.ts'
import { leaveWatch } from './store/watches.ts'
import { cancelSoon, deadlineOf, lookAgain, nextTimer, pollAgain } from './timing.ts'
import { timesNow } from './tree.ts'
import { standingOf, wishesAfter, wishing } from './wishes.ts'

/** What is known of a task once an answer was compared with what was known before. */
export type Known = {
  ok: true
  change: ReturnType<typeof compare>['change']
  /** Whether it is told as a revision of its own. */
  isNew: boolean
  rev: number
  state: TaskState | undefined
  changed: number
  digest: string
  ring: string[]
  /** The agent's new time of what is known otherwise: a question asked anew, if the next look finds it, too. */
  restamp?: string
  /** It was told by its time alone. */
  anew?: true
  /** Its artifacts, measured if it is told. */
  works?: ChangedWorks
}

/**
 * Saves an answer; what somebody is to hear of is told in the same go.
 * @param known what {@link judge} made of it
 */
export async function save(
  relay: Relay,
  watch: Watch,
  agent: Agent,
  audience: Audience,
  { task, bytes, outcome, tries }: Answered & Tries & { ok: true; outcome: Outcome | undefined },
  known: Known,
  ask: Ask,
): Promise<Looked> {
  const now = relay.now()
  const { change, rev, state, changed, works, restamp } = known
  // A wish that is not due yet stands on; one that this look saw to does not, unless it is to be tried again.
  const wishes = isTerminal(state) ? {} : wishesAfter(watch, audience.live, outcome)
  const pushed = ask.cause !== undefined
  const recorded = works && (await record(relay, watch, audience, { task, works, bytes, rev, now, pushed }))
  const after = { ...wishing(watch, wishes), rev, changed, ...(state !== undefined && { state }) }
  const times = await timesNow(relay, after, audience.live, now)
  const joined = { live: audience.live, fresh: watch.fresh }
  const { steps: back, ...told } = restore(watch, agent, joined, tries, known, now)
  const steps = [...times.steps, ...refusal(after, outcome, now), ...back]
  const publishes = steps.length > 0 || isToldNow(watch, audience, known)
  const deadline = deadlineOf(times.next, standingOf(after, audience.live), now)
  // A step back is looked at again once it can no longer be a replica's.
  const at = { now, changed: change === 'back' ? now : changed, deadline }
  const due = nextTimer(watch, agent, at, ask.fired === true)
  await noteContext(relay, watch, task.contextId)
  if (outcome !== undefined) await noteOutcome(relay, watch, outcome)
  const seen = {
    ...factsOf(watch, task, known, now),
    served: servedBy(audience.live, tries),
    woken: publishes ? watch.woken : rev,
    looked: watch.lookAt,
    // However long the agent took: whoever comes next finds what was begun and died older than its readers wait for it.
    lease: publishes ? now + leaseMs : 0,
    ...(due !== undefined && { due }),
    ...recorded,
    ...told,
    ...wishes,
    ...times.saves,
    ...(outcome?.refused !== undefined && { refusedAt: now }),
  }
  // Who joined and does not want to hear of this state is told nothing, so that needs no write of its own.
  const heard = publishes ? [] : freshOf(watch, audience)
  const againMs = restamp === undefined ? undefined : restampMs(watch, now)
  // Queued first: no timer would bring it soon.
  if (againMs !== undefined) await lookAgain(relay, { ...watch, looked: seen.looked }, againMs)
  const saved = await saveLook(relay.table, watch, seen, { steps, told: heard })
  if (saved === undefined) return { kind: 'waits', ms: windowMs }
  const level = change === 'none' ? 'debug' : 'info'
  relay.log({ step: 'watch.saved', level, ...idsOf(saved), rev, change, state })
  if (publishes) await tell(relay, saved, audience, await nextJudging(relay, saved, audience, times.next))
  // What waited before has its look on the way.
  const isWaiting = outcome === undefined && standingOf(watch, audience.live) !== undefined
  await lookOn(relay, saved, agent, audience, { isWaiting, again: againMs !== undefined })
  return ask.cause !== undefined && ask.patient === true && isAhead(ask.cause.state, saved)
    ? { kind: 'ahead' }
    : shown(saved)
}

/** Queues the looks that an open task needs soon: to cancel it, or because its agent does not push. */
async function lookOn(
  relay: Relay,
  saved: Watch,
  agent: Agent,
  audience: Audience,
  { isWaiting, again }: { isWaiting: boolean; again: boolean },
): Promise<void> {
  if (isTerminal(saved.state)) return
  const wish = isWaiting ? undefined : standingOf(saved, audience.live)
  if (wish !== undefined) await cancelSoon(relay, saved, wish.notBefore)
  if (agent.road === 'poll' && !again) await pollAgain(relay, saved, relay.now() - saved.changed)
}

/**
 * When an ended task is to be judged again. What joined below it before the end was saved may have come after the tasks
 * below were counted, and found it open still; what joins later finds it ended, and has it judged itself.
 */
async function nextJudging(relay: Relay, saved: Watch, { live }: Audience, next: number | undefined) {
  if (next !== undefined || !isTerminal(saved.state)) return next
  return (await timesNow(relay, saved, live, relay.now())).next
}

/**
 * Compares an answer with what is known. One that this breaks on is no good, like any that cannot be read: thrown on, it
 * would take the budgets of its task along, at each look anew.
 */
export function judge(watch: Watch, task: Task, now: number): Known | Failure {
  try {
    return knownAfter(watch, task, now)
  } catch (error) {
    return { ok: false, trouble: 'unreadable', detail: `The answer cannot be judged: ${error}`.slice(0, 300) }
  }
}

function knownAfter(watch: Watch, task: Task, now: number): Known {
  const { change, digest, ring, restamp, anew } = compare(watch, task, now)
  const isNew = change === 'new'
  return {
    ...{ ok: true, change, isNew, ring },
    ...(restamp !== undefined && { restamp }),
    ...(anew && { anew }),
    ...(isNew && { works: compareWorks(watch, task) }),
    rev: isNew ? watch.rev + 1 : watch.rev,
    // What is known stays: an ended task is not unended by a replica.
    state: isNew ? task.state : watch.state,
    changed: isNew ? now : watch.changed,
    digest: isNew ? digest : (watch.digest ?? digest),
  }
}

/** Whether somebody is to be told of the state now, or it is an end, which is marked as told by all. */
function isToldNow(watch: Watch, audience: Audience, { isNew, state }: Known): boolean {
  if (isTerminal(state) || isUnpublished({ ...watch, fresh: [] })) return true
  if (state === undefined) return false
  const joined = freshOf(watch, audience)
  const asked = isNew ? audience.live : audience.live.filter(sub => joined.includes(sub.ref))
  return concerns({ ...audience, live: asked }, state)
}

/** What a look saves of the task itself. */
function factsOf(
  watch: Watch,
  task: Task,
  { change, isNew, rev, state, changed, digest, ring, restamp, anew }: Known,
  now: number,
) {
  return {
    ...{ rev, changed, digest, ring },
    ...(state !== undefined && { state }),
    ...(isNew && state !== undefined && isInterrupted(state) && { news: { ...watch.news, [state]: rev } }),
    ...(task.contextId !== undefined && { contextId: task.contextId }),
    // With a time that the digest does not hold the two would be of different answers.
    ...(isNew &&
      restamp === undefined &&
      task.timestamp !== undefined && { stamp: task.timestamp.slice(0, longestStamp) }),
    ...(restamp !== undefined && { restamp, restampSince: watch.restampSince ?? now }),
    ...(anew && { anew }),
    ...((isNew ? task.tooLarge : watch.tooLarge) === true && { tooLarge: true }),
    ...(change === 'back' && { backSince: watch.backSince ?? now }),
  }
}

/** A task that is found to belong to a context is listed under it, before the watch says so. */
async function noteContext(relay: Relay, watch: Watch, contextId: string | undefined): Promise<void> {
  if (contextId === undefined || contextId === watch.contextId) return
  const listing = inContext(contextId)
  await pointAt(relay.table, { tenant: watch.tenant, listing, id: watch.key }, watch.key, relay.now())
}

/**
 * Publishes, then marks it; an ended task that everybody knows of loses its timer in that same write. Who joined after
 * the audience was read was not told, and does not count as told.
 * @param next when an ended task is to be judged again, because a budget covers tasks below it that are open
 */
export async function tell(relay: Relay, watch: Watch, audience: Audience, next?: number): Promise<void> {
  await publish(relay, watch, audience)
  await endExpired(relay, watch)
  await publishedWatch(relay.table, watch, {
    told: freshOf(watch, audience),
    steps: watch.owed,
    over: isTerminal(watch.state),
    now: relay.now(),
    next,
  })
}

/** Those who joined and are in the audience: it was read before, and who joined since was told nothing. */
export function freshOf(watch: Watch, audience: Audience): string[] {
  const heard = new Set(audience.live.map(({ ref }) => ref))
  return watch.fresh.filter(ref => heard.has(ref))
}

/** Whoever was told that the subscription ran out is off the task: that was the last look for it. */
async function endExpired(relay: Relay, watch: Watch): Promise<void> {
  const now = relay.now()
  for (const { type, sub } of watch.owed.map(readStep)) {
    if (type !== 'subscription.expired' || sub === undefined) continue
    await endSubscription(relay.table, sub, 'expired', now)
    await leaveWatch(relay.table, watch.key, sub, now)
    relay.log({ step: 'subscription.expired', ...idsOf(watch), sub })
  }
}
