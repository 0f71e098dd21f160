// Says with whose credentials a task is to be canceled next, and what all that was tried for that comes to. Asks no agent itself.
import { isTerminal, type TaskState } from './a2a/task.ts'
import type { Failure } from './a2a/trouble.ts'
import { drawShare } from './clock.ts'
import type { Agent, Cancel, Subscription, Watch } from './model.ts'
import { floorMs, troubleMs } from './policy.ts'
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
  { watch, agent, live }: { watch: Watch; agent: Agent; live: readonly Subscription[] },
  wish: Cancel,
  { tries, state }: { tries: readonly Asked[]; state: TaskState | undefined },
): Outcome | undefined {
  const came = tries.flatMap(({ own, answer }) => saidOf(answer).map(said => ({ own, said })))
  const said = came.map(one => one.said)
  const isSent = said.some(one => one.kind === 'denied' || (one.kind === 'failed' && one.sent))
  if (said.some(({ kind }) => kind === 'done')) return { wish }
  if (state === 'canceled' && (isSent || wasAsked(wish))) return { wish }
  const last = said.find(one => one.kind === 'refused')
  if (last?.kind === 'refused') return { wish, refused: last.reason }
  const round = roundOf(agent, live, wish, came)
  // Those who were still to be asked with may have left.
  if (came.length === 0 && (isTerminal(state) || !round.isDenied)) return undefined
  const reason = said.find(one => one.kind === 'denied')?.reason ?? wish.reason
  const trouble = said.find(one => one.kind === 'failed')?.reason
  if (round.isDenied) return { wish, refused: reason ?? 'forbidden' }
  return afterRound(relay, watch, { ...wish, ...(reason && { reason }) }, { ...round, said, isSent, trouble })
}

/** What a wish comes to with a round that is not its end, or was one try too many. */
function afterRound(
  relay: Pick<Relay, 'now' | 'random'>,
  watch: Watch,
  wish: Cancel,
  { denied, failed, isOver, said, isSent, trouble }: Round & Words,
): Outcome {
  const { failed: _, sent: before, notBefore: __, ...rest } = wish
  const sent = before === true || isSent
  const next: Cancel = { ...rest, ...(denied.length > 0 && { denied }), ...(sent && { asked: true }) }
  if (!isOver)
    return { wish, again: { ...next, ...(failed.length > 0 && { failed }), ...(sent && { sent }) } }
  const now = relay.now()
  if (!sent && denied.length === 0) return { wish, again: { ...next, ...restOf(said, now) }, rests: true }
  // The looks in between are for those who were denied it: they are served, if anybody is.
  if (!sent && isAway(watch, wish))
    return { wish, again: { ...next, notBefore: now + floorMs(now - wish.at) } }
  const tries = (wish.tries ?? 0) + 1
  if (tries >= mostTries) return { wish, refused: wish.reason ?? trouble ?? 'unreachable' }
  return { wish, again: { ...next, asked: true, tries, notBefore: notBefore(relay, tries, said) } }
}

/** A round of asking, with everybody's credentials by name: those that may not have it done, and those that failed. */
type Round = {
  denied: string[]
  failed: string[]
  /** Nobody's are left to be tried; all were denied it. */
  isOver: boolean
  isDenied: boolean
}

/** What the agent said now: whether it was asked to cancel, and the first trouble. */
type Words = { said: Said[]; isSent: boolean; trouble: string | undefined }

function roundOf(
  agent: Agent,
  live: readonly Subscription[],
  wish: Cancel,
  came: readonly { own: Whose; said: Said }[],
): Round {
  const owners = ownersOf(live).map(own => credentialsOf(agent, own))
  const namesOf = (kind: Said['kind'], before: readonly string[] = []): string[] => {
    const now = came.filter(one => one.said.kind === kind).map(({ own }) => credentialsOf(agent, own))
    return [...new Set([...before, ...now])].filter(name => owners.includes(name))
  }
  const denied = namesOf('denied', wish.denied)
  const failed = namesOf('failed', wish.failed).filter(name => !denied.includes(name))
  return {
    ...{ denied, failed },
    isOver: owners.every(name => denied.includes(name) || failed.includes(name)),
    isDenied: denied.length > 0 && owners.every(name => denied.includes(name)),
  }
}

/** Whether the agent has shown the task to nobody since the wish was tried before. */
const isAway = ({ troubleSince }: Watch, { notBefore, at }: Cancel): boolean =>
  troubleSince !== undefined && troubleSince <= (notBefore ?? at)

/** What came of a wish that the agent was asked for before, if a look finds the task canceled: it did, whatever it answered then. */
export const foundCanceled = (wish: Cancel | undefined, state: TaskState | undefined): Outcome | undefined =>
  wish !== undefined && state === 'canceled' && wasAsked(wish) ? { wish } : undefined

const wasAsked = ({ asked, sent }: Cancel): boolean => asked === true || sent === true

/** What a call came to; nothing if the credentials could not be shown now, or the task has ended. */
function saidOf(answer: Asked['answer']): Said[] {
  if (answer.said !== undefined) return [answer.said]
  return answer.ok || answer.busy === true
    ? []
    : [{ kind: 'failed', reason: answer.trouble, sent: false, retryAfterMs: answer.retryAfterMs }]
}

/** Later each time, and no sooner than any of them was asked to wait. */
const notBefore = (relay: Pick<Relay, 'now' | 'random'>, tries: number, said: readonly Said[]): number =>
  relay.now() + Math.max(waitMs(said), Math.min(troubleMs(tries, drawShare(relay)), longestWaitMs))

/** Who could not even ask does not before the time that the agent said. */
const restOf = (said: readonly Said[], now: number): Pick<Cancel, 'notBefore'> =>
  waitMs(said) > 0 ? { notBefore: now + waitMs(said) } : {}

/** How long the agent asked to be left alone. */
const waitMs = (said: readonly Said[]): number => {
  const asked = said.map(one => (one.kind === 'failed' ? (one.retryAfterMs ?? 0) : 0))
  return Math.min(Math.max(0, ...asked), longestWaitMs)
}
