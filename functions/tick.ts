// The door of the schedule: queues whatever is due, then holds it, and empties the dead-letter queues. Recovery, floors, polls, retries and deadlines are this one mechanism.
import { collectLetters, putBackById } from '../shared/letters.ts'
import { holdMs } from '../shared/policy.ts'
import { sendDeliver, sendLook } from '../shared/queue.ts'
import type { Relay } from '../shared/relay.ts'
import type { Timer } from '../shared/store/keys.ts'
import { type Due, dueIn, holdTimer } from '../shared/store/timers.ts'
import { onLambda, type ScheduleHandler } from './lambda.ts'

const pageSize = 100
/** Shards read at the same time. */
const abreast = 8
/** A tick ends before its function does, and before the next one begins. */
const longestMs = 40_000

export const door =
  (relay: Relay): ScheduleHandler =>
  async () => {
    const until = relay.now() + longestMs
    const { shards: all } = relay.table
    // Each tick begins elsewhere, so that under a backlog no shard is always the last.
    const begin = Math.floor(relay.now() / 60_000) % all
    let queued = 0
    let fault: unknown
    for (let first = 0; first < all && relay.now() <= until; first += abreast) {
      const shards = Array.from(
        { length: Math.min(abreast, all - first) },
        (_, i) => (begin + first + i) % all,
      )
      const swept = await Promise.allSettled(shards.map(shard => sweepShard(relay, shard, until)))
      for (const one of swept) {
        if (one.status === 'fulfilled') queued += one.value
        else fault ??= one.reason
      }
    }
    if (queued > 0) relay.log({ step: 'tick.queued', queued })
    await collectLetters(relay, until)
    // One shard that cannot be read keeps no other from being worked through, and is no success.
    if (fault !== undefined) throw fault
  }

export const handler = onLambda('tick', door)

/** Works through a shard page by page: held entries leave the front. Those that fail stay, so a page of them is the last. */
async function sweepShard(relay: Relay, shard: number, until: number): Promise<number> {
  let queued = 0
  for (;;) {
    const now = relay.now()
    const entries = await dueIn(relay.table, shard, now, pageSize)
    let held = 0
    for (const entry of entries) if (await queueAndHold(relay, entry)) held += 1
    queued += held
    if (entries.length < pageSize || held === 0 || relay.now() > until) return queued
  }
}

/** Queued first, held second: a crash between the two queues it twice, instead of hours later. One that fails stays due. */
async function queueAndHold(relay: Relay, { timer, ...entry }: Due): Promise<boolean> {
  try {
    if (timer.of === 'letter') {
      // It has no timer any more once it is back in its queue.
      await putBackById(relay, timer.tenant, timer.id)
      return true
    }
    await queue(relay, timer, entry.group)
    await holdTimer(relay.table, { timer, ...entry }, relay.now() + holdMs(entry.holds))
    return true
  } catch (error) {
    relay.log({ step: 'timer.failed', level: 'error', ...timer, error })
    return false
  }
}

function queue(relay: Relay, timer: Exclude<Timer, { of: 'letter' }>, group: string): Promise<void> {
  switch (timer.of) {
    case 'notice':
      return sendLook(relay.queues, group, { v: 1, kind: 'pending', notice: timer.key })
    case 'watch':
      return sendLook(relay.queues, group, { v: 1, kind: 'watch', watch: timer.watch, fired: true })
    case 'keys':
      return sendLook(relay.queues, group, { v: 1, kind: 'keys', tenant: timer.tenant, agent: timer.agent })
    case 'subscription':
      return sendLook(relay.queues, group, { v: 1, kind: 'subscription', sub: timer.ref })
    case 'target':
      return sendDeliver(relay.queues, group, {
        v: 1,
        kind: 'target',
        tenant: timer.tenant,
        target: timer.target,
      })
    case 'wake':
      return sendDeliver(relay.queues, group, { v: 1, kind: 'wake', subject: timer.subject, id: timer.id })
  }
}
