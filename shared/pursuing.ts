// Says with whose credentials a task is to be canceled next, and what all that was tried for that comes to. Asks no agent itself.
import type { TaskState } from './a2a/task.ts'
import type { Failure } from './a2a/trouble.ts'
import { drawShare } from './clock.ts'
import type { Agent, Cancel, Subscription } from './model.ts'
import { troubleMs } from './policy.ts'
import { credentialsOf, ownersOf, type Whose } from './refusals.ts'
import type { Relay } from './relay.ts'

/** What asking for it came to with one's credentials. */
export type Said =
  /** It is canceled. */
  | { kind: 'done' }
  /** The agent's last word on the task, whoever asks. */
  | { kind: 'refused'; reason: string }
  /** These credentials may not; others may. */
  | { kind: 'denied'; reason: string }
  /** It may pass; `sent` if the cancellation itself was asked for. */
  | { kind: 'failed'; reason: string; sent: boolean; retryAfterMs?: number | undefined }

/** What came of a wish with a look: it is to be asked for again, the agent would not, or else it did. */
export type Outcome = {
  wish: Cancel
  /** The wish as it stands then; `rests` if the looks that come anyway are soon enough for it. */
  again?: Cancel
  rests?: true
  /** `not_cancelable`, `not_supported`, or the trouble that it came to. */
  refused?: string
}

/** One call for it with one's credentials. */
type Asked = { own: Whose; answer: ({ ok: true } | Failure) & { said?: Said } }

/** So often an agent that does not do it is asked to cancel a task: for a quarter of an hour at least. */
export const mostTries = 10

/** The longest that an agent can put off a wish. */
const longestWaitMs = 60 * 60_000

/**
 * Whose credentials are tried while a cancellation is wished: of those that were not asked with since the last try those
 * of the subscriptions whose budgets wish it go first; then those that failed, and last those that may not.
 * @param turns whose turn it is to look at the task
 */
export function askersFirst(
  agent: Agent,
  { subscriptions = [], denied = [], failed = [] }: Cancel,
  turns: readonly Whose[],
): Whose[] {
  const place = (own: Whose): number => {
    const name = credentialsOf(agent, own)
    if (denied.includes(name)) return 3
    if (failed.includes(name)) return 2
    return own !== undefined && subscriptions.includes(own.id) ? 0 : 1
  }
  return [...turns].sort((one, other) => place(one) - place(other))
}

/**
 * What came of a wish by all that was tried: what the agent would not do for these it may do for others, who are asked with
 * next. Once it was asked with everybody's that is one try, which is repeated later with those that failed; it is
 * refused if none did, or once it was tried often enough. While nobody could even ask, the agent is away: that is no try.
 */
export function outcomeOf(
  relay: Pick<Relay, 'now' | 'random'>,
  agent: Agent,
  live: readonly Subscription[],
  wish: Cancel,
  tries: readonly Asked[],
): Outcome | undefined {
  const came = tries.flatMap(({ own, answer }) => saidOf(answer).map(said => ({ own, said })))
  const said = came.map(one => one.said)
  if (said.some(({ kind }) => kind === 'done')) return { wish }
  const last = said.find(one => one.kind === 'refused')
  if (last?.kind === 'refused') return { wish, refused: last.reason }
  if (came.length === 0) return undefined
  const owners = ownersOf(live).map(own => credentialsOf(agent, own))
  const namesOf = (kind: Said['kind'], before: readonly string[] = []): string[] => {
    const now = came.filter(one => one.said.kind === kind).map(({ own }) => credentialsOf(agent, own))
    return [...new Set([...before, ...now])].filter(name => owners.includes(name))
  }
  const denied = namesOf('denied', wish.denied)
  const failed = namesOf('failed', wish.failed).filter(name => !denied.includes(name))
  const sent = wish.sent === true || said.some(one => one.kind === 'failed' && one.sent)
  const reason = said.find(one => one.kind === 'denied')?.reason ?? wish.reason
  const { failed: _, sent: __, notBefore: ___, ...rest } = wish
  const next: Cancel = { ...rest, ...(denied.length > 0 && { denied }), ...(reason && { reason }) }
  if (owners.some(name => !denied.includes(name) && !failed.includes(name)))
    return { wish, again: { ...next, ...(failed.length > 0 && { failed }), ...(sent && { sent }) } }
  if (!sent && denied.length === 0) return { wish, again: next, rests: true }
  const count = (wish.tries ?? 0) + 1
  const trouble = said.find(one => one.kind === 'failed')?.reason
  if (failed.length === 0 || count >= mostTries) return { wish, refused: reason ?? trouble ?? 'unreachable' }
  return { wish, again: { ...next, asked: true, tries: count, notBefore: notBefore(relay, count, said) } }
}

/** What came of a wish that the agent was asked for before, if a look finds the task canceled: it did, whatever it answered then. */
export const foundCanceled = (wish: Cancel | undefined, state: TaskState | undefined): Outcome | undefined =>
  wish !== undefined && state === 'canceled' && (wish.asked === true || wish.sent === true)
    ? { wish }
    : undefined

/** What a call came to; nothing if the credentials could not be shown now, or the task has ended. */
function saidOf(answer: Asked['answer']): Said[] {
  if (answer.said !== undefined) return [answer.said]
  return answer.ok || answer.busy === true
    ? []
    : [{ kind: 'failed', reason: answer.trouble, sent: false, retryAfterMs: answer.retryAfterMs }]
}

/** Later each time, and no sooner than any of them was asked to wait. */
function notBefore(relay: Pick<Relay, 'now' | 'random'>, tries: number, said: readonly Said[]): number {
  const asked = said.map(one => (one.kind === 'failed' ? (one.retryAfterMs ?? 0) : 0))
  const waitMs = Math.max(...asked, troubleMs(tries, drawShare(relay)))
  return relay.now() + Math.min(waitMs, longestWaitMs)
}
