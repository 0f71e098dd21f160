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
    for (let first = 0; first < all && relay.now() <= until; first += abreast) {
      const shards = Array.from(
        { length: Math.min(abreast, all - first) },
        (_, i) => (begin + first + i) % all,
      )
      const counts = await Promise.all(shards.map(shard => sweepShard(relay, shard, until)))
      queued += counts.reduce((sum, count) => sum + count, 0)
    }
    if (queued > 0) relay.log({ step: 'tick.queued', queued })
    await collectLetters(relay, until)
  }

export const handler = onLambda('tick', door)

/** Works through a shard page by page; held entries leave the front, so each page is a fresh one. */
async function sweepShard(relay: Relay, shard: number, until: number): Promise<number> {
  let queued = 0
  for (;;) {
    const now = relay.now()
    const entries = await dueIn(relay.table, shard, now, pageSize)
    for (const entry of entries) await queueAndHold(relay, entry)
    queued += entries.length
    if (entries.length < pageSize || relay.now() > until) return queued
  }
}

/** Queued first, held second: a crash between the two queues it twice, never not at all. One that fails stays due. */
async function queueAndHold(relay: Relay, entry: Due): Promise<void> {
  try {
    // It has no timer any more once it is back in its queue.
    if (entry.timer.of === 'letter') return await putBackById(relay, entry.timer.tenant, entry.timer.id)
    await queue(relay, entry.timer, entry.group)
    await holdTimer(relay.table, entry, relay.now() + holdMs(entry.holds))
  } catch (error) {
    relay.log({ step: 'timer.failed', level: 'error', ...entry.timer, error })
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
