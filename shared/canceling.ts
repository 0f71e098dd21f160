// Cancels a task at its agent, because a budget ran out or a client asked. What the agent answers stands for a look's answer.
import { cancelTask, getTask, type Looked } from './a2a/client.ts'
import type { Endpoint } from './a2a/endpoint.ts'
import { isTerminal } from './a2a/task.ts'
import { codes, type Failure } from './a2a/trouble.ts'
import { idsOf } from './asking.ts'
import type { Cancel, Trouble, Watch } from './model.ts'
import { mostTries, type Outcome, type Said } from './pursuing.ts'
import type { Relay } from './relay.ts'
import { writeStep } from './steps.ts'
import { noteAsked } from './store/asked.ts'
import { addTransition } from './store/tails.ts'

/** Troubles with which nobody is served: cancelling is tried again by a later look. */
const passing: ReadonlySet<Trouble> = new Set(['unreachable', 'rate_limited', 'unauthorized'])

/** Troubles with an answer that may have been a yes. Any that is in neither is the agent's word to these credentials. */
const unread: ReadonlySet<Trouble> = new Set(['unreadable', 'too_large', 'wrong_task'])

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
 * agent that answers nothing usable about the task is asked to cancel it as well. Then it is asked for the task anew, for
 * its answer may hold less than the task, or say no though it worked. One that says yes and works on is asked again later:
 * a repeat is harmless, what is canceled stays so (A2A 1.0 section 3.1.5).
 */
export async function cancelAt(
  relay: Relay,
  endpoint: Endpoint,
  watch: Watch,
  wish: Cancel,
): Promise<Canceled> {
  const look = () => getTask(relay.net, endpoint, watch.taskId, relay.now())
  const seen = await look()
  if (seen.ok ? isTerminal(seen.task.state) : isUnasked(seen)) return seen
  // A look that dies hereafter leaves the next one to know whose doing it was.
  await noteAsked(relay.table, watch, wish)
  const answer = await cancelTask(relay.net, endpoint, watch.taskId, relay.now())
  const came = answer.ok ? { state: answer.task.state } : { trouble: answer.trouble, detail: answer.detail }
  relay.log({ step: 'task.cancel_sent', ...idsOf(watch), by: wish.by, why: wish.why, ...came })
  const isLast = (wish.tries ?? 0) + 1 >= mostTries
  if (!answer.ok && isOpen(answer) && !isLast) return { ...seen, said: saidOf(answer) }
  const after = await look()
  if (after.ok && after.task.state === 'canceled') return { ...after, said: { kind: 'done' } }
  // A replica may lag behind, but an end is an end.
  if (answer.ok && isTerminal(answer.task.state) && !(after.ok && isTerminal(after.task.state)))
    return { ...answer, said: { kind: 'done' } }
  return { ...after, said: after.ok || answer.ok ? saidOf(answer) : failedBy(answer) }
}

/** Whether asking to cancel would come to the same: nobody is served, or not in this version. */
const isUnasked = ({ trouble }: Failure): boolean => passing.has(trouble) || trouble === 'unsupported_version'

const isOpen = ({ trouble }: Failure): boolean => passing.has(trouble) || unread.has(trouble)

const failedBy = ({ trouble, retryAfterMs }: Failure): Said => ({
  ...{ kind: 'failed', reason: trouble, sent: true, retryAfterMs },
})

/** What the answer to the request to cancel says while the task is not canceled. */
function saidOf(answer: Looked): Said {
  if (answer.ok) return { kind: 'failed', reason: 'not_canceled', sent: true }
  if (isOpen(answer)) return failedBy(answer)
  const reason = reasons.get(answer.code)
  return reason ? { kind: 'refused', reason } : { kind: 'denied', reason: answer.trouble }
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
