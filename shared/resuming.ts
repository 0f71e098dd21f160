// Looks after the wakes that wait for a target: probes it by one of them, and when it is back tells each client once, not the whole backlog.
import { allEnded } from './abreast.ts'
import { backstopMs, lookAfter } from './gate.ts'
import { newestOf, stragglersMs } from './pausing.ts'
import { sendDeliver } from './queue.ts'
import type { Relay } from './relay.ts'
import { getGate, removeGate, renewGate, restGate, type TargetName, timeGate } from './store/gates.ts'
import { targetGroup } from './store/keys.ts'
import { callBack, type Retry, retriesOf } from './store/retries.ts'
import { getTarget } from './store/targets.ts'
import { endWaiting, releaseWaiting, type Waiting, waitingFor } from './store/waiting.ts'
import type { Gate, Target } from './telling.ts'

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
  const waiting = [...listed.waiting, ...(await calledBack(relay, name, failed.retries))]
  const all = listed.all && failed.all
  if (target?.status !== 'active') {
    const done = await endAll(relay, name, waiting, target === undefined ? 'dropped' : 'failed')
    if (!(all && done)) await lookAfter(relay, name)
    return
  }
  if (gate.pausedUntil !== undefined) return release(relay, name, waiting.slice(0, 1))
  await drain(relay, name, waiting, all)
}

const none: Awaited<ReturnType<typeof retriesOf>> = { retries: [], all: true }

/** Wakes that failed before the pause and come again by their own schedule, hours later it may be. */
const failedBefore = (relay: Relay, name: TargetName, { pausedUntil, resumedAt }: Gate) =>
  retriesOf(relay.table, name, pausedUntil ?? resumedAt ?? 0, mostCalled)

/** They wait for the target from now on like the others, so that each client hears once. */
async function calledBack(relay: Relay, name: TargetName, retries: Retry[]): Promise<Waiting[]> {
  const called: Waiting[] = []
  await eachOf(relay, retries, async retry => {
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
    if (target === undefined) await removeGate(relay.table, name)
  }
}

/** The newest of each client's wakes goes out, the older ones end: every wake is a hint to read the same inbox. */
async function drain(relay: Relay, name: TargetName, waiting: Waiting[], all: boolean): Promise<void> {
  const { newest, older } = newestOf(waiting)
  const done = await endAll(relay, name, older, 'superseded')
  // With more to come a newer one may be among them, unless there is nothing left to end.
  const told = all || older.length === 0
  if (told && done) await release(relay, name, newest)
  relay.log({ step: 'target.drained', ...name, superseded: older.length, released: told ? newest.length : 0 })
  if (!(all && done)) await lookAfter(relay, name)
}

async function release(relay: Relay, name: TargetName, waiting: Waiting[]): Promise<void> {
  const group = targetGroup(name.tenant, name.target)
  await eachOf(relay, waiting, async one => {
    // Taken off first, queued second: a crash between leaves its timer.
    if (!(await releaseWaiting(relay.table, name, one, relay.now() + 5 * backstopMs))) return
    await sendDeliver(relay.queues, group, { v: 1, kind: 'wake', subject: one.subject, id: one.id })
  })
}

const endAll = (
  relay: Relay,
  { tenant }: TargetName,
  waiting: Waiting[],
  status: 'superseded' | 'failed' | 'dropped',
): Promise<boolean> =>
  eachOf(relay, waiting, async one => {
    await endWaiting(relay.table, tenant, one, status, relay.now())
  })

/** Some at a time; false when time ran out. */
async function eachOf<T>(relay: Relay, waiting: T[], act: (one: T) => Promise<void>): Promise<boolean> {
  const until = relay.now() + longestMs
  for (let first = 0; first < waiting.length; first += abreast) {
    if (relay.now() > until) return false
    await allEnded(waiting.slice(first, first + abreast).map(act))
  }
  return true
}
