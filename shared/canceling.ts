// Cancels a task at its agent, because a budget ran out or a client asked. What the agent answers stands for a look's answer.
import { cancelTask, getTask, type Looked } from './a2a/client.ts'
import type { Endpoint } from './a2a/endpoint.ts'
import { isTerminal } from './a2a/task.ts'
import { codes } from './a2a/trouble.ts'
import { idsOf } from './asking.ts'
import type { Cancel, Trouble, Watch } from './model.ts'
import { mostTries, type Outcome, type Said } from './pursuing.ts'
import type { Relay } from './relay.ts'
import { writeStep } from './steps.ts'
import { addTransition } from './store/tails.ts'

/** Troubles after which cancelling is tried again by a later look; any other answer is the agent's last word to these credentials. */
const passing: ReadonlySet<Trouble> = new Set(['unreachable', 'rate_limited', 'unauthorized'])

/** The task as it is then, or why it cannot be had, and what asking to cancel it came to if that was tried. */
export type Canceled = Looked & { said?: Said }

/** Codes that say more than their trouble does. An agent that knows no such method is not asked for in vain again. */
const reasons: ReadonlyMap<number | undefined, string> = new Map([
  [codes.taskNotCancelable, 'not_cancelable'],
  [codes.unsupportedOperation, 'not_supported'],
  [codes.methodNotFound, 'not_supported'],
])

/** Whether others need not be tried. */
export const isSettledBy = ({ said }: Canceled): boolean =>
  said === undefined || said.kind === 'done' || said.kind === 'refused'

/**
 * Looks at the task, and asks the agent to cancel it unless it has ended: its end is seen, whatever comes of the wish. An
 * agent that answers nothing usable about the task is asked to cancel it as well. One that refuses, or cannot, is asked
 * for the task anew: it may have worked, whatever was answered. A repeat is harmless: what is canceled stays so (A2A 1.0
 * section 3.1.5).
 */
export async function cancelAt(
  relay: Relay,
  endpoint: Endpoint,
  watch: Watch,
  wish: Cancel,
): Promise<Canceled> {
  const look = () => getTask(relay.net, endpoint, watch.taskId, relay.now())
  const seen = await look()
  if (seen.ok ? isTerminal(seen.task.state) : passing.has(seen.trouble)) return seen
  const answer = await cancelTask(relay.net, endpoint, watch.taskId, relay.now())
  const came = answer.ok ? { state: answer.task.state } : { trouble: answer.trouble, detail: answer.detail }
  relay.log({ step: 'task.cancel_sent', ...idsOf(watch), by: wish.by, why: wish.why, ...came })
  if (answer.ok) return { ...answer, said: { kind: 'done' } }
  const { trouble, retryAfterMs } = answer
  const failed: Said = { kind: 'failed', reason: trouble, sent: true, retryAfterMs }
  const isLast = (wish.tries ?? 0) + 1 >= mostTries
  if (passing.has(trouble) && !isLast) return { ...seen, said: failed }
  const now = await look()
  if (now.ok && now.task.state === 'canceled') return { ...now, said: { kind: 'done' } }
  if (!now.ok || passing.has(trouble)) return { ...now, said: failed }
  const reason = reasons.get(answer.code)
  return { ...now, said: reason ? { kind: 'refused', reason } : { kind: 'denied', reason: trouble } }
}

/**
 * Notes what came of a wish in the timeline, by the time it was asked for: a look that repeats this after a crash adds the
 * same text. Of one that is to be asked for again nothing is noted yet.
 */
export async function noteOutcome(
  relay: Relay,
  watch: Watch,
  { wish, again, refused }: Outcome,
): Promise<void> {
  if (again !== undefined) return
  const { by, why, at, key } = wish
  const source = by === 'client' ? 'cancel' : 'policy'
  const said = key === undefined ? why : `${why} (${key})`
  const note = refused === undefined ? said : `${said} (refused: ${refused})`
  await addTransition(relay.table, watch.key, { at, source, rev: watch.rev, note })
}

/** That the agent would not cancel is told, unless the task has ended meanwhile: then its end is. */
export function refusal(
  known: Pick<Watch, 'rev' | 'state'>,
  outcome: Outcome | undefined,
  now: number,
): string[] {
  if (outcome?.refused === undefined || isTerminal(known.state)) return []
  const { by, why } = outcome.wish
  return [writeStep(known, 'task.cancel_refused', now, { data: { by, why, reason: outcome.refused } })]
}
