// Cancels a task at its agent, because a budget ran out or a client asked. What the agent answers stands for a look's answer.
import { cancelTask, getTask, type Looked } from './a2a/client.ts'
import type { Endpoint } from './a2a/endpoint.ts'
import { isTerminal } from './a2a/task.ts'
import { codes } from './a2a/trouble.ts'
import { idsOf } from './asking.ts'
import type { Tries } from './calling.ts'
import { drawShare } from './clock.ts'
import type { Agent, Cancel, Subscription, Trouble, Watch } from './model.ts'
import { troubleMs } from './policy.ts'
import { credentialsOf, keptOf, ownersOf, ownOf, type Whose } from './refusals.ts'
import type { Relay } from './relay.ts'
import { writeStep } from './steps.ts'
import { addTransition } from './store/tails.ts'

/** Troubles after which cancelling is tried again by a later look; any other answer is the agent's last word. */
const passing: ReadonlySet<Trouble> = new Set(['unreachable', 'rate_limited', 'unauthorized'])

/** So often an agent that does not do it is asked to cancel a task: for a quarter of an hour at least. */
const mostTries = 10

/** The task as it is then, or why it cannot be had, and what came of asking to cancel it if that was asked. */
export type Canceled = Looked & { outcome?: Outcome | undefined }

/** What came of a wish: it is to be asked for again, the agent would not, or else it did. */
export type Outcome = {
  wish: Cancel
  /** The agent may do it for somebody else: it said nothing of the task itself, but refused, or failed. */
  denied?: boolean
  again?: Cancel
  /** `not_cancelable`, `not_supported`, or the trouble that it came to. */
  refused?: string
}

/** Codes that say more than their trouble does. An agent that knows no such method is not asked for in vain again. */
const reasons: ReadonlyMap<number | undefined, string> = new Map([
  [codes.taskNotCancelable, 'not_cancelable'],
  [codes.unsupportedOperation, 'not_supported'],
  [codes.methodNotFound, 'not_supported'],
])

/** Whether others need not be tried. */
export const isSettledBy = ({ outcome }: Canceled): boolean => outcome?.denied !== true

/**
 * Whose credentials a cancellation is asked with: those of the subscriptions whose budgets wish it go first, unless they were
 * tried and showed nobody the task; and last those with which it was asked for in vain already.
 */
export function askersFirst(
  { tried = [] }: Pick<Watch, 'tried'>,
  agent: Agent,
  { subscriptions = [], denied = [] }: Cancel,
  live: readonly Subscription[],
  turns: readonly Whose[],
): Whose[] {
  const askers = live.filter(sub => subscriptions.includes(sub.id) && keptOf(tried, agent, sub) === undefined)
  const place = (own: Whose) => denied.indexOf(credentialsOf(agent, own))
  return [...new Set([...askers.map(ownOf), ...turns])].sort((one, other) => place(one) - place(other))
}

/**
 * What came of a wish by all that a look tried: what the agent would not do for these it may do for others, who are asked
 * with next. Only once it was asked with everybody's it is refused, or counts as tried once more.
 */
export function outcomeOf(
  relay: Pick<Relay, 'now' | 'random'>,
  agent: Agent,
  live: readonly Subscription[],
  { outcome, tries }: Pick<Canceled, 'outcome'> & Tries<Canceled>,
): Outcome | undefined {
  if (outcome?.denied !== true) return outcome
  const { wish, again, refused } = outcome
  const owners = ownersOf(live).map(own => credentialsOf(agent, own))
  const now = tries.filter(({ answer }) => isDenied(answer)).map(({ own }) => credentialsOf(agent, own))
  const before = (wish.denied ?? []).filter(name => owners.includes(name) && !now.includes(name))
  const denied = [...before, ...now]
  if (owners.some(name => !denied.includes(name))) return { wish, again: { ...wish, denied } }
  const another = again ?? (tries.some(({ answer }) => mayPass(answer)) ? tryAgain(relay, wish) : undefined)
  return another === undefined
    ? { wish, ...(refused && { refused }) }
    : { wish, again: { ...another, denied } }
}

const isDenied = (answer: Canceled): boolean => answer.outcome?.denied === true || !answer.ok

const mayPass = (answer: Canceled): boolean =>
  answer.outcome?.again !== undefined || (!answer.ok && passing.has(answer.trouble))

/** The wish as it is asked for once more, later each time; undefined once that was done often enough. */
function tryAgain(relay: Pick<Relay, 'now' | 'random'>, wish: Cancel, askedMs = 0): Cancel | undefined {
  const tries = (wish.tries ?? 0) + 1
  if (tries >= mostTries) return undefined
  const waitMs = Math.max(askedMs, troubleMs(tries, drawShare(relay)))
  return { ...wish, tries, notBefore: relay.now() + Math.min(waitMs, longestWaitMs) }
}

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
  if (answer.ok) return { ...answer, outcome: { wish } }
  const reason = reasons.get(answer.code)
  const denied = reason === undefined
  const again = tryAgain(relay, wish, answer.retryAfterMs)
  if (passing.has(answer.trouble) && again !== undefined) return { ...seen, outcome: { wish, denied, again } }
  const now = await look()
  if (now.ok && now.task.state === 'canceled') return { ...now, outcome: { wish } }
  if (!now.ok && again !== undefined) return { ...now, outcome: { wish, denied, again } }
  return { ...now, outcome: { wish, denied, refused: reason ?? answer.trouble } }
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

/** The longest that an agent can put off a wish. */
const longestWaitMs = 60 * 60_000

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
