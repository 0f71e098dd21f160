// Cancels a task at its agent, because a budget ran out or a client asked. What the agent answers stands for a look's answer.
import { cancelTask, getTask, type Looked } from './a2a/client.ts'
import type { Endpoint } from './a2a/endpoint.ts'
import { isTerminal } from './a2a/task.ts'
import { codes } from './a2a/trouble.ts'
import { idsOf } from './asking.ts'
import { drawShare } from './clock.ts'
import type { Cancel, Trouble, Watch } from './model.ts'
import { troubleMs } from './policy.ts'
import type { Relay } from './relay.ts'
import { addTransition } from './store/tails.ts'

/** Troubles after which cancelling is tried again by a later look; any other answer is the agent's last word. */
const passing: ReadonlySet<Trouble> = new Set(['unreachable', 'rate_limited', 'unauthorized'])

/** So often an agent that answers for the task, but not to this, is asked to cancel it: for a quarter of an hour at least. */
const mostTries = 10

/** What came of it: the task as it is, why the agent would not cancel it, or that it is to be asked once more. */
export type Canceled = Looked & { refused?: Refused; again?: Cancel; tried?: Cancel }

/** `reason`: `not_cancelable`, `not_supported`, or the trouble that it came to. */
export type Refused = { by: Cancel['by']; why: string; reason: string }

/** Codes that say more than their trouble does. An agent that knows no such method is not asked for in vain again. */
const reasons: ReadonlyMap<number | undefined, string> = new Map([
  [codes.taskNotCancelable, 'not_cancelable'],
  [codes.unsupportedOperation, 'not_supported'],
  [codes.methodNotFound, 'not_supported'],
])

/**
 * Looks at the task, and asks the agent to cancel it unless it has ended: its end is seen, whatever comes of the wish. An
 * agent that answers nothing usable about the task is asked to cancel it as well. One that refuses, or cannot, is asked
 * for the task anew: saving that ends the cancellation. A repeat is harmless: what is canceled stays so (A2A 1.0 section
 * 3.1.5).
 */
export async function cancelAt(
  relay: Relay,
  endpoint: Endpoint,
  watch: Watch,
  cancel: Cancel,
): Promise<Canceled> {
  const look = () => getTask(relay.net, endpoint, watch.taskId, relay.now())
  const seen = await look()
  if (seen.ok ? isTerminal(seen.task.state) : passing.has(seen.trouble)) return seen
  const answer = await cancelTask(relay.net, endpoint, watch.taskId, relay.now())
  const outcome = answer.ok
    ? { state: answer.task.state }
    : { trouble: answer.trouble, detail: answer.detail }
  const { by, why, tries = 0 } = cancel
  relay.log({ step: 'task.cancel_sent', ...idsOf(watch), by, why, ...outcome })
  if (answer.ok) {
    await noteIn(relay, watch, cancel)
    return answer
  }
  if (passing.has(answer.trouble) && (!seen.ok || tries + 1 < mostTries)) {
    const waitMs = Math.max(answer.retryAfterMs ?? 0, troubleMs(tries + 1, drawShare(relay)))
    const again = { ...cancel, tries: tries + 1, notBefore: relay.now() + Math.min(waitMs, longestWaitMs) }
    return seen.ok ? { ...seen, again } : seen
  }
  const now = await look()
  // It may have worked, whatever was answered.
  const worked = now.ok && now.task.state === 'canceled'
  const reason = worked ? undefined : (reasons.get(answer.code) ?? answer.trouble)
  await noteIn(relay, watch, cancel, reason)
  return reason === undefined ? now : { ...now, refused: { by, why, reason } }
}

/** Notes it in the timeline by the time it was asked for: a look that repeats this after a crash adds the same text. */
async function noteIn(
  relay: Relay,
  watch: Watch,
  { by, why, at, key }: Cancel,
  reason?: string,
): Promise<void> {
  const source = by === 'client' ? 'cancel' : 'policy'
  const said = key === undefined ? why : `${why} (${key})`
  const note = reason === undefined ? said : `${said} (refused: ${reason})`
  await addTransition(relay.table, watch.key, { at, source, rev: watch.rev, note })
}

/** The longest that an agent can put off a wish. */
const longestWaitMs = 60 * 60_000
