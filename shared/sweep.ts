// What happens when a subscription is due: an unbound one ends, one that was left half made is finished, an agent-wide one looks for tasks that no push told of.
import { goThrough, type Swept } from './listing.ts'
import type { Agent, Subscription } from './model.ts'
import { tellOperations } from './operations.ts'
import type { Relay } from './relay.ts'
import { getAgent } from './store/agents.ts'
import { endSubscription, getSubscription, recordSweep } from './store/subscriptions.ts'
import { makeWhole } from './subscribing.ts'

const minute = 60_000
/** Between two sweeps of an agent that can list its tasks, and of one that cannot (it may learn to). */
export const sweepMs = 5 * minute
const sweepUnableMs = 6 * 60 * minute
/**
 * Until the next part of a list that was too long for one sweep: soon at first, while its pages show what others did not.
 * Until the next try, too, where the agent's calls were all taken: the looks that take them may come at the same time.
 */
const sweepOnMs = minute
const quickMs = 15 * minute

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
    agent === undefined
      ? { ended: 'unable', looks: 0, began: now, waitMs: 0 }
      : await goThrough(relay, sub, agent)
  const { ended, looks, page, began } = swept
  await recordSweep(relay.table, sub.ref, {
    sweepAt: now + Math.max(untilNext(swept, now), swept.waitMs),
    // What changes while a list is gone through in parts moves within it: the next list begins where this one did.
    sweptAt: ended === 'all' ? began : (sub.sweptAt ?? sub.createdAt),
    page,
    refused: agent && (await refusedAfter(relay, sub, agent, swept)),
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

function untilNext({ ended, page, began }: Swept, now: number): number {
  if (ended === 'unable') return sweepUnableMs
  if (ended === 'full') return sweepOnMs
  return ended === 'long' && page?.barren === 0 && now - began < quickMs ? sweepOnMs : sweepMs
}

/**
 * Counts sweeps in a row whose credentials were refused, and tells at the second: no task need be known that would tell
 * of it. Troubles that pass may lie between.
 */
async function refusedAfter(
  relay: Relay,
  sub: Subscription,
  agent: Agent,
  { first }: Swept,
): Promise<Subscription['sweepRefused']> {
  const isOwn = sub.credentials !== undefined
  const of = isOwn ? String(sub.credentialsAt ?? sub.createdAt) : agent.etag
  const before = sub.sweepRefused?.of === of ? sub.sweepRefused : undefined
  if (first === 'listed') return undefined
  if (first !== 'unauthorized' && first !== 'credentials_expired') return before
  const { since, times, told } = before ?? { since: relay.now(), times: 0, told: false }
  const tells = first === 'credentials_expired' || times > 0
  if (tells && !told)
    await tellOperations(relay, sub.tenant, isOwn ? { subscription: sub.id } : { agent: sub.agent }, {
      type: 'subscription.credentials_expired',
      // Tasks that meet the same tell it under the same name.
      since: `${of} ${new Date(since).toISOString().slice(0, 10)}`,
      ...(isOwn && { beside: sub }),
    })
  return { of, since, times: times + 1, told: told || tells }
}
