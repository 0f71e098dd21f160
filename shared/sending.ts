// Sends one wake to its target: what is said, and with which secrets it is signed. Keeps nothing and decides nothing.
import type { Outcome } from './channels/channel.ts'
import { sendWebhook } from './channels/webhook.ts'
import type { Relay } from './relay.ts'
import { openSecrets } from './targets.ts'
import type { Target, Wake } from './telling.ts'
import { nextSpan } from './trace.ts'

/** Sends a wake once, the same bytes at every attempt: a receiver may compare them. Never throws for what the target does. */
export async function sendWake(relay: Relay, target: Target, wake: Wake): Promise<Outcome> {
  const { tenant, agent, taskId, contextId, about, state, rev, tooLarge, seq, type, at } = wake
  const where = { tenant, target: target.target, wakeId: wake.id, seq, agent, taskId, contextId }
  return sendWebhook({
    net: relay.net,
    url: target.url,
    secrets: await openSecrets(relay, target),
    id: wake.id,
    body: JSON.stringify({
      type,
      timestamp: new Date(at).toISOString(),
      data: { ...wake.data, ...defined({ ...where, state, rev, tooLarge, about }) },
    }),
    nowMs: relay.now(),
    ...(relay.trace !== undefined && { traceparent: nextSpan(relay.trace, relay.random(8)) }),
  })
}

/** Without what there is not: `data` may name the task that an operational wake is about. */
const defined = (fields: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
