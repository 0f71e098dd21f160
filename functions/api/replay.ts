// Route that sends a client's past entries to a target again: each is the same wake that it was, or would have been.

import { Hono } from 'hono'
import * as z from 'zod'
import { allEnded } from '../../shared/abreast.ts'
import { invalidField } from '../../shared/errors.ts'
import type { Subscription, Watch } from '../../shared/model.ts'
import { writeWakeId } from '../../shared/names.ts'
import { isSuperseded, wakeIdOf } from '../../shared/policy.ts'
import { sendDeliver } from '../../shared/queue.ts'
import { type Relay, within } from '../../shared/relay.ts'
import { type Origin, readInbox } from '../../shared/store/inbox.ts'
import { targetGroup } from '../../shared/store/keys.ts'
import { getSubscription, isHeard } from '../../shared/store/subscriptions.ts'
import { getTarget } from '../../shared/store/targets.ts'
import { getWake } from '../../shared/store/wakes.ts'
import { getWatch } from '../../shared/store/watches.ts'
import type { InboxEntry, Wake } from '../../shared/telling.ts'
import { type Env, tenantOf } from './auth.ts'
import { Id, readBody } from './input.ts'
import { tryAgain } from './redrive.ts'

/** Entries that are read in one call. */
const entriesMost = 100

export const ReplayRequest = z.strictObject({
  client: Id,
  target: Id,
  /** The inbox's cursor after which to begin; from the oldest entry unless given. */
  after: z
    .string()
    .regex(/^\d{1,15}$/, 'Expected a cursor of the inbox')
    .default('0'),
  /** Leaves out entries of changes before that (ms since 1970). */
  since: z.number().int().min(0).default(0),
  /** Counts, and sends nothing. */
  dryRun: z.boolean().default(false),
})

type Entry = InboxEntry & { from?: Origin }

export function replay(relay: Relay): Hono<Env> {
  return new Hono<Env>().post('/inbox/replay', async c => {
    const tenant = tenantOf(c.get('caller'), 'write')
    const { client, target, after, since, dryRun } = await readBody(c, ReplayRequest)
    const called = await getTarget(relay.table, tenant, target)
    if (called === undefined) throw invalidField('/target', 'No such target')
    if (called.status !== 'active') throw invalidField('/target', `The target is ${called.status}`)
    const ask = { after: Number(after), limit: entriesMost, now: relay.now() }
    const feed = await readInbox(relay.table, tenant, client, ask)
    const meant = feed.entries.filter(({ at }) => at >= since)
    const told = await allEnded(meant.map(entry => tellAgain(relay, { client, target, dryRun }, entry)))
    const queued = told.filter(Boolean).length
    if (!dryRun) relay.log({ step: 'inbox.replayed', tenant, client, target, queued })
    return c.json({
      ...{ client, target, dryRun, queued },
      skipped: meant.length - queued,
      next: feed.more ? String(feed.next) : undefined,
    })
  })
}

/** Queues the wake of an entry; false if its subscription is over, newer news tells all that it would, or it is on its way. */
async function tellAgain(
  relay: Relay,
  { client, target, dryRun }: { client: string; target: string; dryRun: boolean },
  entry: Entry,
): Promise<boolean> {
  const { from } = entry
  const watch = from && (await getWatch(relay.table, from.watch))
  const found = from && watch && (await tellerOf(relay, watch, { from, client, target }))
  if (found === undefined || watch === undefined || isSuperseded(watch, found.sub, entry)) return false
  const { sub, id, old } = found
  if (dryRun) return old?.status !== 'pending'
  if (old !== undefined) return tryAgain(relay, old)
  await sendFirst(
    within(relay, { trace: sub.traceparent, parent: watch.parent }),
    { watch, sub, target, id },
    entry,
  )
  return true
}

/** Whose wake tells a target of an entry, its id, and the wake if there was one. */
type Teller = { sub: Subscription; id: string; old: Wake | undefined }

/**
 * A client may have heard by several subscriptions of what stands in its inbox once: that of the one whose wake went to
 * this target is the one to send again. Who left is spoken for by the others.
 */
async function tellerOf(
  { table, now }: Relay,
  watch: Watch,
  { from, client, target }: { from: Origin; client: string; target: string },
): Promise<Teller | undefined> {
  // A step is one subscription's own, a revision everybody's.
  const others = typeof from.name === 'number' ? watch.subs.filter(ref => ref !== from.sub) : []
  const subs = await Promise.all([from.sub, ...others].map(ref => getSubscription(table, ref)))
  const own = subs.filter(sub => sub !== undefined).filter(sub => sub.client === client)
  const heard = own.filter(sub => isHeard(sub, now()))
  const tellers = await Promise.all(
    heard.map(async (sub): Promise<Teller> => {
      const id = wakeIdOf(watch, from.name, sub.ref, target)
      return { sub, id, old: await getWake(table, watch.key, id) }
    }),
  )
  return tellers.find(({ old }) => old !== undefined) ?? tellers[0]
}

/** A target that was never told of an entry gets the wake that its subscription would have sent it. */
function sendFirst(
  relay: Relay,
  { watch, sub, target, id }: { watch: Watch; sub: Subscription; target: string; id: string },
  { type, rev, at, seq, state, tooLarge, data }: Entry,
): Promise<void> {
  const of = {
    ...{ target, at, rev, seq, type, sub: sub.ref },
    ...(state !== undefined && { state }),
    ...(tooLarge !== undefined && { tooLarge }),
    ...(data !== undefined && { data }),
  }
  const { tenant, agent, taskId: task } = watch
  relay.log({ step: 'wake.queued', tenant, agent, task, wake: writeWakeId(watch.key, id), target })
  return sendDeliver(relay.queues, targetGroup(watch.tenant, target), {
    ...{ v: 1, kind: 'wake', subject: watch.key, id, of },
  })
}
