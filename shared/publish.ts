// Tells the subscribers of a watch what it shows: inbox entry first, then wakes, so that every wake is only a hint to read. Runs under the watch's lease.
import { eventType, type TaskState } from './a2a/task.ts'
import type { Subscription, Watch } from './model.ts'
import { entryIdOf, wakeIdOf, wants } from './policy.ts'
import { sendDeliver } from './queue.ts'
import { type Relay, within } from './relay.ts'
import { entryNameOf, readStep } from './steps.ts'
import { appendEntry } from './store/inbox.ts'
import { targetGroup } from './store/keys.ts'
import { endsNow, getSubscription, isLive } from './store/subscriptions.ts'
import type { Facts } from './telling.ts'

/** Whom a watch concerns: those with a live subscription, and the refs of those whose subscription is over. */
export type Audience = { live: Subscription[]; gone: string[] }

/** One thing to be told; `name` is what the ids of its wakes are made of: a revision, or the text of a step. */
type News = {
  name: number | string
  /** What the ids of its entries are made of, if not the same. */
  entry?: number | string
  rev: number
  state?: TaskState
  tooLarge?: boolean
  at: number
  /** Of a step; a revision's type is its state's. */
  type?: string
  data?: Facts
}

/**
 * Reads who is subscribed.
 * @param known one that was read just now. Older than the lease it may be, but not by more than a look takes anyway
 */
export async function audienceOf(relay: Relay, watch: Watch, known?: Subscription): Promise<Audience> {
  const read = async (ref: string) => (ref === known?.ref ? known : getSubscription(relay.table, ref))
  const found = await Promise.all(watch.subs.map(read))
  // One that ran out since the last look is told what this one finds, and that it has ended.
  const now = relay.now()
  const live = found.filter(sub => sub !== undefined).filter(sub => isLive(sub, now) || endsNow(sub, now))
  const alive = new Set(live.map(sub => sub.ref))
  return { live, gone: watch.subs.filter(ref => !alive.has(ref)) }
}

/** True when somebody is to be told of this state. */
export const concerns = (audience: Audience, state: TaskState): boolean =>
  audience.live.some(sub => wants(sub, state) && (sub.client !== undefined || sub.targets.length > 0))

/**
 * Publishes the present revision to those who were not told it, then every step that is owed, whatever states were asked
 * for. May run again after a crash: entries and wakes have the same ids then.
 */
export async function publish(relay: Relay, watch: Watch, audience: Audience): Promise<void> {
  const { state, rev, changed, tooLarge } = watch
  const everybody = rev > watch.woken
  if (state !== undefined && (everybody || watch.fresh.length > 0)) {
    const told = audience.live.filter(
      sub => (everybody || watch.fresh.includes(sub.ref)) && wants(sub, state),
    )
    const size = tooLarge === true ? { tooLarge } : {}
    await tellAll(relay, watch, told, { name: rev, rev, state, ...size, at: changed })
  }
  for (const text of watch.owed) {
    const { sub: only, ...step } = readStep(text)
    const told = audience.live.filter(({ ref }) => only === undefined || only === ref)
    await tellAll(relay, watch, told, { name: text, entry: entryNameOf(watch, text), ...step })
  }
}

async function tellAll(relay: Relay, watch: Watch, told: Subscription[], news: News): Promise<void> {
  for (const sub of told) {
    const inside = within(relay, { trace: sub.traceparent })
    const seq = await enter(inside, watch, news, sub)
    for (const target of sub.targets) await wake(inside, watch, news, { sub, target, seq })
  }
  relay.log({ step: 'watch.published', ...idsOf(watch, news), told: told.length })
}

async function enter(
  relay: Relay,
  watch: Watch,
  news: News,
  { id: subscription, ref: sub, client }: Subscription,
): Promise<number | undefined> {
  if (client === undefined) return undefined
  const { tenant, agent, taskId, contextId } = watch
  const { rev, state, tooLarge, at, data } = news
  const id = entryIdOf(watch, news.entry ?? news.name, client)
  const entry = {
    id,
    type: news.type ?? eventType(state ?? 'unknown'),
    agent,
    taskId,
    ...(contextId !== undefined && { contextId }),
    ...(state !== undefined && { state }),
    rev,
    ...(tooLarge !== undefined && { tooLarge }),
    at,
    subscription,
    ...(data !== undefined && { data }),
    from: { watch: watch.key, name: news.name, sub },
  }
  const seq = await appendEntry(relay.table, tenant, client, entry, relay.now)
  relay.log({ step: 'inbox.appended', ...idsOf(watch, news), subscription, entry: id, seq })
  return seq
}

async function wake(
  relay: Relay,
  watch: Watch,
  { name, entry: _, ...news }: News,
  { sub, target, seq }: { sub: Subscription; target: string; seq: number | undefined },
): Promise<void> {
  const id = wakeIdOf(watch, name, sub.ref, target)
  await sendDeliver(relay.queues, targetGroup(watch.tenant, target), {
    v: 1,
    kind: 'wake',
    subject: watch.key,
    id,
    of: { ...news, sub: sub.ref, target, ...(seq !== undefined && { seq }) },
  })
  relay.log({ step: 'wake.queued', ...idsOf(watch, news), subscription: sub.id, wake: id, target })
}

const idsOf = (
  { tenant, agent, taskId }: Watch,
  { rev, state, type }: Pick<News, 'rev' | 'state' | 'type'>,
) => ({ tenant, agent, task: taskId, rev, state, type })
