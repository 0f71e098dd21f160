// What happens when a subscription is due: an unbound one ends, one that was left half made is finished, an agent-wide one looks for tasks that no push told of.
import { listTasks } from './a2a/client.ts'
import { isTerminal } from './a2a/task.ts'
import type { Agent, Subscription, Trouble } from './model.ts'
import { tellOperations } from './operations.ts'
import { seenOf } from './permits.ts'
import { floorMs } from './policy.ts'
import { sendLook } from './queue.ts'
import type { Relay } from './relay.ts'
import { getAgent } from './store/agents.ts'
import { agentGroup, watchOf } from './store/keys.ts'
import { endSubscription, getSubscription, recordSweep } from './store/subscriptions.ts'
import { getWatch, openWatch, watchedBy } from './store/watches.ts'
import { makeWhole } from './subscribing.ts'
import { endWait, enterAgent, leaveAgent } from './turns.ts'
import { callInVersion } from './versions.ts'

const minute = 60_000
/** Between two sweeps of an agent that can list its tasks, and of one that cannot (it may learn to). */
export const sweepMs = 5 * minute
const sweepUnableMs = 6 * 60 * minute
/** Until the next part of a list that was too long for one sweep. */
const sweepOnMs = minute
/** The agent's clock may be behind ours, and its list behind its tasks. */
const overlapMs = 5 * minute
const pagesAtMost = 20

/** Settles a subscription whose timer fired. */
export async function settleSubscription(relay: Relay, ref: string): Promise<'done'> {
  const sub = await getSubscription(relay.table, ref)
  const now = relay.now()
  if (sub === undefined || sub.status !== 'active') return 'done'
  if (sub.scope === 'task' && sub.taskId !== undefined) {
    await makeWhole(relay, sub, sub.taskId)
    return 'done'
  }
  if (sub.expiresAt <= now) {
    await endSubscription(relay.table, ref, 'expired', now)
    return 'done'
  }
  if (sub.scope === 'agent') await sweep(relay, sub)
  else if (sub.bindBy !== undefined && sub.bindBy <= now) {
    await tellOperations(
      relay,
      sub.tenant,
      { subscription: sub.id },
      { type: 'subscription.expired', since: ref },
    )
    await endSubscription(relay.table, ref, 'expired', now)
    relay.log({ step: 'subscription.expired', tenant: sub.tenant, subscription: sub.id })
  }
  return 'done'
}

async function sweep(relay: Relay, sub: Subscription): Promise<void> {
  const now = relay.now()
  const agent = await getAgent(relay.table, sub.tenant, sub.agent)
  const swept: Swept =
    agent === undefined ? { ended: 'unable', looks: 0 } : await sweepTasks(relay, sub, agent)
  const { ended, looks, page } = swept
  // What changes while a list is gone through in parts moves within it: the next list begins where this one did.
  const began = sub.sweepPage?.began ?? now
  await recordSweep(relay.table, sub.ref, {
    sweepAt: now + (ended === 'unable' ? sweepUnableMs : ended === 'long' ? sweepOnMs : sweepMs),
    sweptAt: ended === 'all' ? began : (sub.sweptAt ?? sub.createdAt),
    page: page === undefined ? undefined : { token: page, began },
  })
  relay.log({
    step: 'agent.swept',
    tenant: sub.tenant,
    subscription: sub.id,
    agent: sub.agent,
    ended,
    looks,
  })
}

/** How far a sweep came: through, cut short by its length or a fault, or not at all since the agent cannot list. */
type Swept = {
  ended: 'all' | 'long' | 'part' | 'unable'
  looks: number
  /** The page that the next sweep goes on with; it begins anew if missing. */
  page?: string
}

/** Queues a look for every task that is not known in the state the agent lists. */
async function sweepTasks(relay: Relay, sub: Subscription, agent: Agent): Promise<Swept> {
  const since = (sub.sweptAt ?? sub.createdAt) - overlapMs
  let pageToken = sub.sweepPage?.token
  let looks = 0
  const cutShort = (ended: 'long' | 'part'): Swept => ({
    ...{ ended, looks },
    ...(pageToken !== undefined && { page: pageToken }),
  })
  for (let page = 0; page < pagesAtMost; page++) {
    const asked = {
      statusTimestampAfter: new Date(since).toISOString(),
      ...(pageToken !== undefined && { pageToken }),
    }
    const entered = await enterAgent(relay, agent)
    if (!entered.ok) {
      // A sweep waits for no turn: the next one goes on where this one ended.
      await endWait(relay, agent, entered.waited)
      return cutShort('part')
    }
    const listed = await callInVersion(relay, { agent, calls: seenOf(relay, agent).calls }, [sub], endpoint =>
      listTasks(relay.net, endpoint, asked, relay.now()),
    )
    await leaveAgent(relay, agent, entered.turn, listed)
    if (!listed.ok) {
      if (listed.trouble === 'unsupported_version') return { ended: 'unable', looks }
      // What does not pass may be the page's own fault, which an agent need not know for ever.
      return isPassing(listed.trouble) ? cutShort('part') : { ended: 'part', looks }
    }
    // Not every agent heeds the filter; a task that ended before, or nobody knows when, is nobody's news.
    const recent = listed.tasks.filter(
      ({ timestamp = '', state }) =>
        !(Date.parse(timestamp) < since) && !(timestamp === '' && isTerminal(state)),
    )
    for (const task of recent) if (await watchListed(relay, sub, task.id, task.state)) looks += 1
    pageToken = listed.next
    if (pageToken === undefined) return { ended: 'all', looks }
  }
  return cutShort('long')
}

const isPassing = (trouble: Trouble): boolean => trouble === 'unreachable' || trouble === 'rate_limited'

async function watchListed(relay: Relay, sub: Subscription, taskId: string, state: string): Promise<boolean> {
  const { tenant, agent, principal, ref } = sub
  const known = await getWatch(relay.table, watchOf(tenant, agent, principal, taskId))
  if (known?.state === state && known.subs.includes(ref)) return false
  const now = relay.now()
  const at = { now, due: now + floorMs(0) }
  const watch = await openWatch(relay.table, watchedBy(sub, taskId), at, ref)
  if (watch === undefined) return false
  await sendLook(relay.queues, agentGroup(tenant, agent), { v: 1, kind: 'watch', watch: watch.key })
  return true
}
