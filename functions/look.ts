// The door of the look queue: asks the agent what a task is now, saves it, and tells those who wait. Decides nothing itself.

import { idsOf, type Looked } from '../shared/asking.ts'
import { contradicts, isDisputable, mayDispute } from '../shared/disputes.ts'
import { createKeySets } from '../shared/keysets.ts'
import { LookMessage, NoticeMessage, type Waited, type WatchMessage } from '../shared/messages.ts'
import type { Subscription, Watch } from '../shared/model.ts'
import { aheadTries, floorMs, isOver, ridesAlong, standMs, trailingMs, windowMs } from '../shared/policy.ts'
import { tellRefused } from '../shared/raising.ts'
import { refreshKeys } from '../shared/refreshing.ts'
import { type Relay, within } from '../shared/relay.ts'
import { watchOf } from '../shared/store/keys.ts'
import { keyStore } from '../shared/store/keysets.ts'
import { getNotice, settleNotice } from '../shared/store/notices.ts'
import { getSubscription, isLive } from '../shared/store/subscriptions.ts'
import { parentOf } from '../shared/store/trees.ts'
import { getWatch, openWatch, watchedBy } from '../shared/store/watches.ts'
import { settleSubscription } from '../shared/sweep.ts'
import { putOff } from '../shared/timing.ts'
import { traceIdOf } from '../shared/trace.ts'
import { endWait } from '../shared/turns.ts'
import { lookAt } from '../shared/watching.ts'
import { eachRecord, type Handled, type Mention, onLambda, type QueueHandler } from './lambda.ts'

export const door = (relay: Relay): QueueHandler => {
  const { net, now, log, table } = relay
  const keySets = createKeySets({ net, store: keyStore(table), now, log })
  const handle = async (body: unknown, mention: Mention): Promise<Handled> => {
    const message = LookMessage.parse(body)
    if (message.kind === 'notice') return lookForNotice(relay, message, mention)
    if (message.kind === 'pending') return lookForPending(relay, message.notice, mention)
    if (message.kind === 'subscription') return settleSubscription(relay, message.sub)
    if (message.kind === 'keys') return refreshKeys(relay, keySets, message)
    return lookForWatch(within(relay, message), message, mention)
  }
  return eachRecord(relay, handle, subjectOf)
}

/** Pushes of one task come in bursts: the look for the first that is in a batch may show what the others named. */
function subjectOf(body: unknown): string | undefined {
  const { data } = NoticeMessage.safeParse(body)
  return data && `${data.sub} ${data.taskId}`
}

export const handler = onLambda('look', door)

async function lookForPending(relay: Relay, key: string, mention: Mention): Promise<Handled> {
  const notice = await getNotice(relay.table, key)
  if (notice === undefined) return 'done'
  const { sub, taskId, state, at } = notice
  const message = { v: 1, kind: 'notice', notice: key, timer: true, sub, taskId, state, at } as const
  return lookForNotice(relay, message, mention)
}

async function lookForNotice(world: Relay, message: NoticeMessage, mention: Mention): Promise<Handled> {
  mention({ ...traced(message.trace), sub: message.sub, task: message.taskId })
  const sub = await getSubscription(world.table, message.sub)
  const relay = within(world, { trace: sub?.traceparent ?? message.trace, parent: sub && parentOf(sub) })
  mention({ ...traced(sub?.traceparent), ...agentOf(sub), parent: sub && parentOf(sub) })
  if (!isLive(sub, world.now())) return settle(relay, message, 'subscription_over', sub)
  if (sub.scope === 'task' && sub.taskId !== undefined && sub.taskId !== message.taskId)
    return settle(relay, message, 'unexpected_task', sub)
  const unbound = isUnbound(sub)
  const watch = await watchFor(relay, sub, message.taskId, !unbound)
  if (watch === undefined) return settle(relay, message, 'watch_full', sub)
  // While nothing comes of the pushes of a subscription that is not bound they share the looks of one of them.
  if (unbound && rides(watch, message, relay.now(), sub)) return leaveQueue(relay, watch, message.waited)
  const looked = await lookAt(within(relay, { parent: watch.parent }), watch, {
    cause: { at: message.at, state: message.state },
    own: isOwn(watch, message),
    waited: message.waited,
    patient: (message.tries ?? 0) < aheadTries,
    sub,
    ...(unbound && { unbound: sub }),
  })
  return afterNotice(relay, { watch, sub }, message, looked)
}

/** The watch of a task, opened if there is none. A bound or agent-wide subscription is on it from now on. */
async function watchFor(
  relay: Relay,
  sub: Subscription,
  taskId: string,
  joins: boolean,
): Promise<Watch | undefined> {
  const { tenant, agent, principal, ref } = sub
  const watch = await getWatch(relay.table, watchOf(tenant, agent, principal, taskId))
  if (watch !== undefined && (!joins || watch.subs.includes(ref))) return watch
  const now = relay.now()
  const at = { now, due: now + floorMs(0) }
  return openWatch(relay.table, watchedBy(sub, taskId), at, joins ? ref : undefined)
}

async function afterNotice(
  relay: Relay,
  { watch, sub }: { watch: Watch; sub: Subscription },
  message: NoticeMessage,
  looked: Looked,
): Promise<Handled> {
  const unbound = isUnbound(sub)
  const tries = message.tries ?? 0
  // Who was let in begins to wait anew.
  const { waited: _, stood: __, ...letIn } = message
  const isRider = rides(watch, message, relay.now(), sub)
  switch (looked.kind) {
    case 'shown':
      if (contradicts(message.state, looked.state) && (await isDisputable(relay, watch.key, message)))
        return 'done'
      return settle(relay, message, 'shown', sub)
    case 'waits':
      if (isRider) return leaveQueue(relay, watch, message.waited)
      if (unbound) return stand(relay, watch, message, looked.ms)
      return later(relay, watch, message, trailingMs(looked.ms, message))
    case 'busy':
      if (isRider) return leaveQueue(relay, watch, looked.waited)
      return later(relay, watch, { ...message, waited: looked.waited }, looked.afterMs)
    case 'ahead':
      return later(relay, watch, { ...letIn, tries: tries + 1, at: relay.now() }, windowMs * 2 ** tries)
    case 'dropped':
      return settle(relay, message, looked.why, sub)
    case 'trouble':
      // Once may be a hiccup.
      if (looked.refused && tries === 1) await tellRefused(relay, watch, sub)
      if (looked.lasting && tries >= aheadTries) return settle(relay, message, looked.trouble, sub)
      // A watched task is looked at again by its own chain and timer; a push of an unknown one has only itself.
      if (looked.watched) {
        const stands = !looked.lasting || (await mayDispute(relay, message))
        return stands ? 'done' : settle(relay, message, looked.trouble, sub)
      }
      if (tries >= aheadTries) return 'done'
      // Nobody else remembers how often it was tried.
      return later(
        relay,
        watch,
        { ...letIn, tries: tries + 1 },
        Math.max(looked.afterMs, windowMs * 2 ** tries),
      )
  }
}

/** Whether another message's look will do for this one. */
const rides = (watch: Watch, message: NoticeMessage, now: number, sub: Subscription): boolean =>
  !isOwn(watch, message) && ridesAlong(watch, message, now, isUnbound(sub) ? sub.ref : undefined)

const isUnbound = ({ scope, taskId }: Subscription): boolean => scope === 'task' && taskId === undefined

/** What is to bind its subscription waits for a look of its own, later each time. */
function stand(relay: Relay, watch: Watch, message: NoticeMessage, waitMs: number): Promise<Handled> {
  const { stood = 0 } = message
  return later(relay, watch, { ...message, stood: stood + 1 }, trailingMs(waitMs, message) + standMs(stood))
}

async function lookForWatch(relay: Relay, message: WatchMessage, mention: Mention): Promise<Handled> {
  mention({ ...traced(message.trace), watch: message.watch })
  const watch = await getWatch(relay.table, message.watch)
  if (watch === undefined) return 'done'
  mention({ ...idsOf(watch), parent: watch.parent })
  const own = isOwn(watch, message)
  // A delayed look ends when another came between: that one goes on instead. Not while its mark stands, which others rode on.
  if (message.looked !== undefined && message.looked !== watch.looked && !own)
    return leaveQueue(relay, watch, message.waited)
  const asked = { fired: message.fired === true, own, waited: message.waited }
  const looked = await lookAt(within(relay, { parent: watch.parent }), watch, asked)
  if (looked.kind !== 'waits' && looked.kind !== 'busy') return 'done'
  const now = relay.now()
  const { waited } = looked.kind === 'busy' ? looked : message
  // A trailing look to come will do; one under way may have read its audience before this message was sent.
  if (isOver(watch) || (watch.again >= now && watch.lease < now && !own))
    return leaveQueue(relay, watch, waited)
  if (looked.kind === 'waits') return later(relay, watch, message, looked.ms)
  return later(relay, watch, { ...message, waited: looked.waited }, looked.afterMs)
}

/** Another look will do: this one does not wait for a turn at the agent any more. */
async function leaveQueue(relay: Relay, watch: Watch, waited: Waited | undefined): Promise<Handled> {
  await endWait(relay, watch, waited)
  return 'done'
}

/** True when the watch's mark of a trailing look is this message's own. */
const isOwn = (watch: Watch, { mark }: NoticeMessage | WatchMessage): boolean =>
  mark !== undefined && mark === watch.again

async function later(
  relay: Relay,
  watch: Watch,
  message: NoticeMessage | WatchMessage,
  delayMs: number,
): Promise<Handled> {
  await putOff(relay, watch, message, delayMs)
  return 'done'
}

async function settle(
  relay: Relay,
  message: NoticeMessage,
  outcome: string,
  sub: Subscription | undefined,
): Promise<Handled> {
  if (message.notice !== undefined && message.timer === true)
    await settleNotice(relay.table, message.notice, outcome)
  const level = outcome === 'shown' ? 'debug' : 'info'
  const named = { sub: message.sub, ...agentOf(sub), task: message.taskId }
  relay.log({ step: 'notice.settled', level, ...named, outcome })
  return 'done'
}

const agentOf = (sub: Subscription | undefined) =>
  sub === undefined ? {} : { tenant: sub.tenant, agent: sub.agent }

const traced = (trace: string | undefined) => (trace === undefined ? {} : { trace: traceIdOf(trace) })
