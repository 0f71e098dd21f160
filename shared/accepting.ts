// Accepts a genuine push: the record first, which marks it as seen and is the work that is pending; then the message. Only receive uses it.
import { isNews, type PushReading } from './a2a/task.ts'
import { rates } from './limits.ts'
import type { Known } from './memory.ts'
import { leadMs, noticeTimerMs, windowMs } from './policy.ts'
import { sendLook } from './queue.ts'
import type { Rates } from './rates.ts'
import type { Relay } from './relay.ts'
import { agentGroup } from './store/keys.ts'
import { acceptNotice, timeNotice } from './store/notices.ts'
import { parentOf } from './store/trees.ts'
import { traceIdOf } from './trace.ts'
import type { Proof } from './verify.ts'

export type Accepted = 'accepted' | 'duplicate' | 'unavailable'

/** A push that was proven, and names a task. */
export type Genuine = { proof: Proof & { ok: true }; push: PushReading & { taskId: string } }

/** Until when the last delayed look that was queued covers what comes, by subscription and task. */
export type Rides = Map<string, number>

/** Ids that may stand in logs. */
export const idsOf = ({ sub }: Known) => ({
  tenant: sub.tenant,
  agent: sub.agent,
  subscription: sub.id,
  ...(sub.traceparent !== undefined && { trace: traceIdOf(sub.traceparent) }),
  ...(sub.parentTask !== undefined && { parent: parentOf(sub) }),
})

/** The queues, for messages in the subscription's trace. */
const queuesFor = ({ queues }: Relay, { traceparent }: Known['sub']): Relay['queues'] =>
  traceparent === undefined ? queues : { ...queues, trace: traceparent }

/**
 * Accepts a push unless one like it was accepted. With the table away the queue alone has to do: a copy may then cost
 * one look more. With both away the sender shall come again. One whose look may wait needs no message while a delayed
 * look is on its way that starts late enough for it.
 */
export async function accept(
  relay: Relay,
  now: number,
  known: Known,
  { proof, push }: Genuine,
  rides: Rides,
): Promise<Accepted> {
  const { sub } = known
  const { taskId, state } = push
  const key = proof.replay
  const group = agentGroup(sub.tenant, sub.agent)
  const named = { ...idsOf(known), task: taskId, notice: key, state, by: proof.by, digest: proof.digest }
  // A timer costs writes: only where the loss would hurt and nothing else would notice.
  const timer = isNews(state) || sub.taskId === undefined
  const body = { sub: sub.ref, taskId, at: now, ...(state !== undefined && { state }) }
  let stored = true
  try {
    const { seenUntil, digest, sha256 } = proof
    const signed = digest !== undefined && sha256 !== undefined && { digest, sha256 }
    const notice = { ...body, key, group, seenUntil, ...signed }
    const isNew = await acceptNotice(relay.table, notice, timer ? now + noticeTimerMs : undefined)
    if (!isNew) return 'duplicate'
    relay.log({ step: 'notice.stored', ...named })
  } catch (error) {
    stored = false
    relay.log({ step: 'notice.not_stored', level: 'error', ...named, error })
  }
  const lead = leadMs(sub, state)
  if (stored && lead > 0 && isCovered(rides, known, taskId, now)) {
    relay.log({ step: 'notice.rides', level: 'debug', ...named })
    return 'accepted'
  }
  try {
    const pointer = stored ? { notice: key, timer } : {}
    const at = lead > 0 ? now + windowMs : now
    const message = { v: 1, kind: 'notice', ...body, at, ...pointer } as const
    await sendLook(queuesFor(relay, sub), group, message, lead)
    if (lead > 0) cover(rides, known, taskId, now)
    relay.log({ step: 'notice.queued', level: timer ? 'info' : 'debug', ...named })
    return 'accepted'
  } catch (error) {
    relay.log({ step: 'notice.not_queued', level: 'error', ...named, error })
    if (!stored) return 'unavailable'
    if (!timer) await keepTimed(relay, now, named)
    return 'accepted'
  }
}

/** How the lines about one notice name it. */
type Named = { notice: string; task: string }

/** The message could not be sent: the record gets a timer, and if that fails too, the task's own floor brings the look. */
async function keepTimed(relay: Relay, now: number, named: Named): Promise<void> {
  try {
    await timeNotice(relay.table, named.notice, now + noticeTimerMs)
  } catch (error) {
    relay.log({ step: 'notice.not_timed', level: 'error', ...named, error })
  }
}

/** Queues a look for a push that nobody read. It leaves no record: without its body a copy could not be known. */
export async function lookUnread(
  relay: Relay,
  now: number,
  known: Known,
  taskId: string,
): Promise<'accepted' | 'unavailable'> {
  const { sub } = known
  try {
    const group = agentGroup(sub.tenant, sub.agent)
    await sendLook(queuesFor(relay, sub), group, { v: 1, kind: 'notice', sub: sub.ref, taskId, at: now })
    return 'accepted'
  } catch (error) {
    relay.log({ step: 'notice.not_queued', level: 'error', ...idsOf(known), task: taskId, error })
    return 'unavailable'
  }
}

/** Whether authentic pushes come faster than they could tell anything. News of one task is counted apart from its noise. */
export function isFlood(
  counted: Rates,
  now: number,
  { sub }: { sub: Pick<Known['sub'], 'ref' | 'agent' | 'tenant'> },
  { push }: Genuine,
): boolean {
  const task = `${sub.ref} ${isNews(push.state) ? 'news' : 'noise'} ${push.taskId}`
  return ![
    counted.take(`task ${task}`, rates.task, now),
    counted.take(`hook ${sub.ref}`, rates.hook, now),
    counted.take(`agent ${sub.tenant} ${sub.agent}`, rates.agent, now),
    counted.take(`tenant ${sub.tenant}`, rates.tenant, now),
  ].every(Boolean)
}

/** Tasks whose delayed looks are remembered. */
const ridesKept = 10_000

const rideOf = ({ sub }: Known, taskId: string): string => `${sub.ref} ${taskId}`

const isCovered = (rides: Rides, known: Known, taskId: string, now: number): boolean =>
  now < (rides.get(rideOf(known, taskId)) ?? 0)

/** A look that was queued two windows ahead, and stands for what comes within the first of them, covers that. */
function cover(rides: Rides, known: Known, taskId: string, now: number): void {
  if (rides.size >= ridesKept) rides.clear()
  rides.set(rideOf(known, taskId), now + windowMs)
}

/**
 * Takes a push of a flood: no record, and one delayed look a window, which starts late enough to see whatever all the
 * pushes until then could tell.
 */
export async function ride(
  relay: Relay,
  now: number,
  known: Known,
  { push }: Genuine,
  rides: Rides,
): Promise<Accepted> {
  const { sub } = known
  const { taskId, state } = push
  if (isCovered(rides, known, taskId, now)) return 'accepted'
  try {
    const group = agentGroup(sub.tenant, sub.agent)
    const at = now + windowMs
    await sendLook(
      queuesFor(relay, sub),
      group,
      { v: 1, kind: 'notice', sub: sub.ref, taskId, at, ...(state !== undefined && { state }) },
      2 * windowMs,
    )
  } catch (error) {
    relay.log({ step: 'notice.not_queued', level: 'error', ...idsOf(known), task: taskId, error })
    return 'unavailable'
  }
  cover(rides, known, taskId, now)
  relay.log({ step: 'push.flood', ...idsOf(known), task: taskId })
  return 'accepted'
}
