// What a look saw is saved under its lease, published, and only then marked as told. Asks no agent.
import { isTerminal } from './a2a/task.ts'
import { type Ask, idsOf, type Looked, shown } from './asking.ts'
import type { Canceled } from './canceling.ts'
import type { Agent, Watch } from './model.ts'
import { compare, isAhead, isUnpublished, windowMs } from './policy.ts'
import { type Audience, concerns, publish } from './publish.ts'
import { record } from './recording.ts'
import type { Relay } from './relay.ts'
import { readStep, writeStep } from './steps.ts'
import { endSubscription } from './store/subscriptions.ts'
import { inContext, pointAt } from './store/trees.ts'
import { leaveWatch, publishedWatch, saveLook } from './store/watches.ts'
import { cancelSoon, nextTimer, pollAgain } from './timing.ts'
import { timesNow } from './tree.ts'

/** Saves an answer; what somebody is to hear of is told in the same go. */
export async function save(
  relay: Relay,
  watch: Watch,
  agent: Agent,
  audience: Audience,
  { task, bytes, refused }: Canceled & { ok: true },
  ask: Ask,
): Promise<Looked> {
  const now = relay.now()
  const { change, digest, ring } = compare(watch, task, now)
  // Whoever was told that the task is lost hears of its state again.
  const back = change === 'none' && watch.alarm !== undefined && watch.alarm !== 'agent' && watch.rev > 0
  const isNew = change === 'new' || back
  const rev = isNew ? watch.rev + 1 : watch.rev
  // What is known stays: an ended task is not unended by a replica.
  const state = isNew ? task.state : watch.state
  const told = isNew && concerns(audience, task.state)
  const pushed = ask.cause !== undefined
  const recorded = isNew && (await record(relay, watch, audience, { task, bytes, rev, now, pushed }))
  const changed = isNew ? now : watch.changed
  const after = { ...watch, rev, changed, ...(state !== undefined && { state }) }
  const times = await timesNow(relay, after, audience.live, now)
  const { saves, next } = times
  const known = { rev, ...(state !== undefined && { state }) }
  // One that has ended meanwhile needs no canceling, and its end is told.
  const unended = refused !== undefined && !isTerminal(state)
  const steps = unended
    ? [...times.steps, writeStep(known, 'task.cancel_refused', now, { data: refused })]
    : times.steps
  const heard = freshOf(watch, audience)
  const joined = audience.live.filter(sub => heard.includes(sub.ref))
  const publishes =
    told ||
    (state !== undefined && concerns({ ...audience, live: joined }, state)) ||
    isTerminal(state) ||
    isUnpublished({ ...watch, fresh: [] }) ||
    steps.length > 0
  // A step back is looked at again once it can no longer be a replica's.
  const at = { now, changed: change === 'back' ? now : changed, deadline: next }
  const due = nextTimer(watch, agent, at, ask.fired === true)
  const { contextId } = task
  if (contextId !== undefined && contextId !== watch.contextId)
    await pointAt(
      relay.table,
      { tenant: watch.tenant, listing: inContext(contextId), id: watch.key },
      watch.key,
      now,
    )
  const seen = {
    ...(state !== undefined && { state }),
    digest: isNew ? digest : (watch.digest ?? digest),
    ring,
    rev,
    changed,
    woken: publishes ? watch.woken : rev,
    looked: watch.lookAt,
    lease: publishes ? watch.lease : 0,
    ...(contextId !== undefined && { contextId }),
    ...(isNew && task.timestamp !== undefined && { stamp: task.timestamp.slice(0, 40) }),
    ...((isNew ? task.tooLarge : watch.tooLarge) === true && { tooLarge: true }),
    ...(change === 'back' && { backSince: watch.backSince ?? now }),
    ...(due !== undefined && { due }),
    ...recorded,
    ...saves,
  }
  // Who joined and does not want to hear of this state is told nothing, so that needs no write of its own.
  const saved = await saveLook(relay.table, watch, seen, { steps, told: publishes ? [] : heard })
  if (saved === undefined) return { kind: 'waits', ms: windowMs }
  const level = change === 'none' ? 'debug' : 'info'
  relay.log({ step: 'watch.saved', level, ...idsOf(saved), rev, change, state })
  if (publishes) await tell(relay, saved, audience, next)
  if (saved.cancel !== undefined && !isTerminal(saved.state)) await cancelSoon(relay, saved)
  if (agent.road === 'poll' && !isTerminal(saved.state)) await pollAgain(relay, saved, now - changed)
  return ask.cause !== undefined && ask.patient === true && isAhead(ask.cause.state, saved)
    ? { kind: 'ahead' }
    : shown(saved)
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
function freshOf(watch: Watch, audience: Audience): string[] {
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
