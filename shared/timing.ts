// When a watched task is looked at next: by its timer, by the queue's own delay, or by a message that was put off. Asks no agent.
import type { NoticeMessage, WatchMessage } from './messages.ts'
import type { Agent, Cancel, Watch } from './model.ts'
import { floorMs, pollMs, windowMs } from './policy.ts'
import { longestDelayMs, sendLook } from './queue.ts'
import type { Relay } from './relay.ts'
import { agentGroup } from './store/keys.ts'
import { markAgain } from './store/watches.ts'

/**
 * The timer moves earlier at once, later only when it fired; undefined leaves it.
 * @param at the time of the look, since when the task is silent, and when a budget ends
 */
export function nextTimer(
  watch: Watch,
  agent: Agent,
  at: { now: number; changed: number; deadline: number | undefined },
  fired: boolean,
): number | undefined {
  const silence = at.now - at.changed
  const after =
    agent.road === 'poll' ? 2 * pollMs(silence) + 5 * 60_000 : floorMs(silence, agent.floorSeconds)
  const next = Math.min(at.now + after, at.deadline ?? Number.POSITIVE_INFINITY)
  return fired ? next : sooner(watch, next)
}

/** A time that is before the timer's own, else undefined. */
export const sooner = (watch: Watch, at: number | undefined): number | undefined =>
  watch.due !== undefined && at !== undefined && at < watch.due ? at : undefined

/** The poll road rides on the queue's own delay; the timer is only its backstop. */
export const pollAgain = (relay: Relay, watch: Watch, silence: number): Promise<void> =>
  sendLook(
    relay.queues,
    agentGroup(watch.tenant, watch.agent),
    { v: 1, kind: 'watch', watch: watch.key, looked: watch.looked },
    pollMs(silence),
  )

/** Looks once more in a moment, so that two answers can be compared. */
export const lookAgain = (relay: Relay, watch: Watch, delayMs: number): Promise<void> =>
  putOff(relay, watch, { v: 1, kind: 'watch', watch: watch.key, looked: watch.looked }, delayMs)

/**
 * A task that is to be canceled is so by the next look, as soon as there may be one. What was tried in vain is when its
 * time has come, by a look that no push rides on: the others do not wait for it.
 */
export async function cancelSoon(relay: Relay, watch: Watch, notBefore = 0): Promise<void> {
  const message = { v: 1, kind: 'watch', watch: watch.key } as const
  const waitMs = notBefore - relay.now()
  if (waitMs <= 0) return putOff(relay, watch, message, windowMs)
  if (waitMs > longestDelayMs) return
  await sendLook(relay.queues, agentGroup(watch.tenant, watch.agent), message, Math.max(waitMs, windowMs))
}

/**
 * When the timer is needed though nothing is silent: as the next budget ends, or as a cancellation is asked for again that
 * waits longer than any message can.
 */
export const deadlineOf = (
  next: number | undefined,
  wish: Cancel | undefined,
  now: number,
): number | undefined =>
  wish?.notBefore !== undefined && wish.notBefore - now > longestDelayMs
    ? Math.min(wish.notBefore, next ?? Number.POSITIVE_INFINITY)
    : next

/** Queues a message for later, then marks that a look will come: the other way round a crash would cost minutes. */
export async function putOff(
  relay: Relay,
  watch: Watch,
  message: NoticeMessage | WatchMessage,
  delayMs: number,
): Promise<void> {
  const wholeMs = Math.ceil(Math.min(delayMs, longestDelayMs) / 1000) * 1000
  const mark = relay.now() + wholeMs
  await sendLook(relay.queues, agentGroup(watch.tenant, watch.agent), { ...message, mark }, wholeMs)
  await markAgain(relay.table, watch.key, mark, message.kind === 'notice' ? message.sub : undefined)
}
