// Cancels a task at its agent, because a budget ran out or a client asked. What the agent answers stands for a look's answer.
import { cancelTask, getTask, type Looked } from './a2a/client.ts'
import type { Endpoint } from './a2a/endpoint.ts'
import { codes } from './a2a/trouble.ts'
import { idsOf } from './asking.ts'
import type { Cancel, Trouble, Watch } from './model.ts'
import type { Relay } from './relay.ts'
import { addTransition } from './store/tails.ts'

/** Troubles after which cancelling is tried again by the next look; any other answer is the agent's last word. */
const passing: ReadonlySet<Trouble> = new Set(['unreachable', 'rate_limited', 'unauthorized'])

/** What came of it: the task as it is, and why the agent would not cancel it. */
export type Canceled = Looked & { refused?: Refused }

/** `reason`: `not_cancelable`, `not_supported`, or the trouble that it came to. */
export type Refused = { by: Cancel['by']; why: string; reason: string }

/** Codes that say more than their trouble does. An agent that knows no such method is not asked for in vain again. */
const reasons: ReadonlyMap<number | undefined, string> = new Map([
  [codes.taskNotCancelable, 'not_cancelable'],
  [codes.unsupportedOperation, 'not_supported'],
  [codes.methodNotFound, 'not_supported'],
])

/**
 * Asks the agent to cancel. An agent that refuses, or cannot, is asked for the task instead: saving that ends the
 * cancellation. A repeat is harmless: what is canceled stays so (A2A 1.0 section 3.1.5).
 */
export async function cancelAt(
  relay: Relay,
  endpoint: Endpoint,
  watch: Watch,
  { by, why, at, key }: Cancel,
): Promise<Canceled> {
  const answer = await cancelTask(relay.net, endpoint, watch.taskId, relay.now())
  const outcome = answer.ok
    ? { state: answer.task.state }
    : { trouble: answer.trouble, detail: answer.detail }
  relay.log({ step: 'task.cancel_sent', ...idsOf(watch), by, why, ...outcome })
  if (!answer.ok && passing.has(answer.trouble)) return answer
  // By the time it was asked for: a look that repeats this after a crash adds the same text, which is told once.
  const source = by === 'client' ? 'cancel' : 'policy'
  const said = key === undefined ? why : `${why} (${key})`
  const reason = answer.ok ? undefined : (reasons.get(answer.code) ?? answer.trouble)
  const note = reason === undefined ? said : `${said} (refused: ${reason})`
  await addTransition(relay.table, watch.key, { at, source, rev: watch.rev, note })
  if (reason === undefined) return answer
  const looked = await getTask(relay.net, endpoint, watch.taskId, relay.now())
  return { ...looked, refused: { by, why, reason } }
}
