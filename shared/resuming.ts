// Looks after the wakes that wait for a target: probes it by one of them, and when it is back tells each client once, not the whole backlog.
import { allEnded } from './abreast.ts'
import { backstopMs, lookAfter } from './gate.ts'
import { writeWakeId } from './names.ts'
import { groupsOf, probeMs, stragglersMs } from './pausing.ts'
import { sendDeliver } from './queue.ts'
import type { Relay } from './relay.ts'
import { firstNeeded } from './speaking.ts'
import {
  getGate,
  giveProbe,
  handProbe,
  renewGate,
  restGate,
  retireGate,
  type TargetName,
  timeGate,
} from './store/gates.ts'
import { targetGroup } from './store/keys.ts'
import { callBack, type Retry, retriesOf } from './store/retries.ts'
import { getTarget } from './store/targets.ts'
import {
  asFailed,
  asSpoken,
  endWaiting,
  markSpeaker,
  releaseWaiting,
  type Waiting,
  waitingFor,
} from './store/waiting.ts'
import type { Gate, Spoke, Target } from './telling.ts'

/** Read and ended in one go; more wait for the next. */
const mostRead = 20_000
const mostCalled = 2000
const longestMs = 15_000
const abreast = 16

/** Looks after a target's waiting list. May run at any time, any number of times. */
export async function resumeTarget(relay: Relay, name: TargetName): Promise<void> {
  const { table } = relay
  const target = await getTarget(table, name.tenant, name.target)
  const gate = await gateOf(relay, name, target)
  if (gate === undefined) return
  const now = relay.now()
  if (target?.status === 'active' && gate.pausedUntil !== undefined && gate.pausedUntil > now) {
    if (gate.due !== undefined) await timeGate(table, name, gate.due, gate.pausedUntil + backstopMs)
    return
  }
  const listed = await waitingFor(table, name, mostRead)
  const failed = target?.status === 'active' ? await failedBefore(relay, name, gate) : none
  if (listed.waiting.length + failed.retries.length === 0) return rest(relay, name, target, gate)
  // Set before the work: whoever is released may pause the target again meanwhile.
  await timeGate(table, name, gate.due, now + backstopMs)
  const until = now + longestMs
  const waiting = [...listed.waiting, ...(await calledBack(relay, name, failed.retries, until))]
  const all = listed.all && failed.all
  if (target?.status !== 'active') {
    const done = await endAll(relay, waiting, until, one =>
      target === undefined ? { status: 'dropped' } : asFailed(name.tenant, one),
    )
    if (!(all && done)) await lookAfter(relay, name)
    return
  }
  if (gate.pausedUntil !== undefined) {
    const over = { generation: gate.generation, seen: gate.pausedUntil }
    return probe(relay, name, over, waiting, all, until)
  }
  const unspoken = await endSpoken(relay, waiting, gate.spoke, until)
  if (unspoken === undefined) return lookAfter(relay, name)
  await drain(relay, name, unspoken, all, until)
}

/**
 * Ends those for whom the probe spoke that ended the pause: it told them already what their own hint would.
 * @returns those who wait still; undefined when time ran out
 */
async function endSpoken(
  relay: Relay,
  waiting: Waiting[],
  spoke: Spoke | undefined,
  until: number,
): Promise<Waiting[] | undefined> {
  if (spoke === undefined) return waiting
  const { waiters, at, before } = spoke
  const ended = new Set<Waiting>()
  const older = waiting.filter(one => one.waiters === waiters && one.at <= at)
  const done = await eachOf(relay, older, until, async one => {
    if (await endWaiting(relay.table, one, { status: 'superseded' }, relay.now(), before)) ended.add(one)
  })
  return done ? waiting.filter(one => !ended.has(one)) : undefined
}

const none: Awaited<ReturnType<typeof retriesOf>> = { retries: [], all: true }

/** Wakes that failed before the pause and come again by their own schedule, hours later it may be. */
const failedBefore = (relay: Relay, name: TargetName, { pausedUntil, resumedAt }: Gate) =>
  retriesOf(relay.table, name, pausedUntil ?? resumedAt ?? 0, mostCalled)

/** They wait for the target from now on like the others, so that each client hears once. */
async function calledBack(
  relay: Relay,
  name: TargetName,
  retries: Retry[],
  until: number,
): Promise<Waiting[]> {
  const called: Waiting[] = []
  await eachOf(relay, retries, until, async retry => {
    const waits = await callBack(relay.table, name, retry, relay.now())
    if (waits !== undefined) called.push(waits)
  })
  return called
}

/** The gate, begun anew if the target was put anew since. */
async function gateOf(relay: Relay, name: TargetName, target: Target | undefined): Promise<Gate | undefined> {
  const gate = await getGate(relay.table, name)
  if (gate === undefined || target === undefined || gate.generation >= target.generation) return gate
  const renewed = await renewGate(relay.table, name, target.generation, relay.now())
  return renewed.gate
}

/** Nobody waits. The timer goes once nobody can still come who was turned away before. */
async function rest(relay: Relay, name: TargetName, target: Target | undefined, gate: Gate): Promise<void> {
  if (gate.due === undefined) return
  const since = Math.max(gate.resumedAt ?? 0, gate.pausedUntil ?? 0)
  const left = since + stragglersMs - relay.now()
  if (left > 0) await timeGate(relay.table, name, gate.due, relay.now() + left)
  else {
    await restGate(relay.table, name, gate.due)
    if (target === undefined) await retireGate(relay.table, name, gate.generation, relay.now())
  }
}

/** The newest of each client's wakes that is needed goes out, the older ones end: every wake is a hint to read the same inbox. */
async function drain(
  relay: Relay,
  name: TargetName,
  waiting: Waiting[],
  all: boolean,
  until: number,
): Promise<void> {
  const groups = groupsOf(waiting)
  // With more to come a newer one may be among them, unless there is nothing left to end.
  const told = all || groups.length === waiting.length
  let [superseded, released, whole] = [0, 0, true]
  const done = await eachOf(relay, groups, until, async group => {
    const { first, rest, done: found } = await firstNeeded(relay, name, group, until)
    // Marked before the others end: whoever ends it unsent hands on to them.
    const speaks = first && (rest.length === 0 || (await markSpeaker(relay.table, first)))
    const ended = speaks && (await endAll(relay, rest, until, one => asSpoken(name, one)))
    if (!(first === undefined ? found : ended)) whole = false
    if (first === undefined || !ended) return
    superseded += rest.length
    if (!told) return
    released += 1
    await release(relay, name, first)
  })
  relay.log({ step: 'target.drained', ...name, superseded, released })
  if (!(all && done && whole)) await lookAfter(relay, name)
}

/** One that is needed goes out, the newest of its client's, which speaks for the others if it is delivered; those that are not use up no probe. */
async function probe(
  relay: Relay,
  name: TargetName,
  over: { generation: number; seen: number },
  waiting: Waiting[],
  all: boolean,
  until: number,
): Promise<void> {
  const { first, done } = await firstNeeded(relay, name, groupsOf(waiting).flat(), until)
  if (first === undefined) {
    if (!(all && done)) await lookAfter(relay, name)
    return
  }
  // Whoever probes meanwhile, or was sent by another look, is enough: an older one would go out beside it.
  const handed = { wake: writeWakeId(first.subject, first.id), until: relay.now() + probeMs }
  if (!(await handProbe(relay.table, name, over, handed))) return
  if (await release(relay, name, first)) return
  await giveProbe(relay.table, name, handed.until, relay.now())
  await lookAfter(relay, name)
}

/** @returns false if it waits no more */
async function release(relay: Relay, name: TargetName, one: Waiting): Promise<boolean> {
  // Taken off first, queued second: a crash between leaves its timer.
  if (!(await releaseWaiting(relay.table, name, one, relay.now() + 5 * backstopMs))) return false
  const group = targetGroup(name.tenant, name.target)
  await sendDeliver(relay.queues, group, { v: 1, kind: 'wake', subject: one.subject, id: one.id })
  return true
}

const endAll = (
  relay: Relay,
  waiting: Waiting[],
  until: number,
  ending: (one: Waiting) => Parameters<typeof endWaiting>[2],
): Promise<boolean> =>
  eachOf(relay, waiting, until, async one => {
    await endWaiting(relay.table, one, ending(one), relay.now())
  })

/** Some at a time, the first of them in any case; false when time ran out. */
async function eachOf<T>(
  relay: Relay,
  waiting: T[],
  until: number,
  act: (one: T) => Promise<void>,
): Promise<boolean> {
  for (let first = 0; first < waiting.length; first += abreast) {
    if (first > 0 && relay.now() > until) return false
    await allEnded(waiting.slice(first, first + abreast).map(act))
  }
  return true
}
