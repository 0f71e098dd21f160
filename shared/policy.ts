// Decides: is a look due, what changed, whom does it concern, when is the next one. Pure: time is an argument.
import {
  eventType,
  isInterrupted,
  isNews,
  isTerminal,
  type Task,
  type TaskState,
  taskStates,
} from './a2a/task.ts'
import { canonical, idOf } from './hash.ts'
import type { Subscription, Watch } from './model.ts'
import type { Wake } from './telling.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** At most one look per task and window. It also covers clocks that are up to half a second apart. */
export const windowMs = second
/** Longer than the function that holds a lease can run: whoever takes it over has it alone. */
export const leaseMs = 32 * second
/** How often a look is repeated because the agent does not show yet what a push named. */
export const aheadTries = 5
/** For how long answers that were seen before are taken for those of a lagging replica. */
const replicaMs = minute
/** When a notice is looked for again. */
export const noticeTimerMs = minute
/** How long a subscription may wait for its first push. */
export const bindMs = 24 * hour
const ringSize = 4
/** Characters of an agent's timestamp that are kept. */
export const longestStamp = 40

/** What a look was asked for by: the time a push was accepted and the state it named. */
export type Cause = { at: number; state?: TaskState | undefined }

/** True while the push names lasting news that the agent does not show: it may be a replica that lags. */
export const isAhead = (named: TaskState | undefined, watch: Watch): boolean =>
  isNews(named) && !isTerminal(watch.state) && named !== watch.state

/**
 * True when a push needs no look of its own: one that completed started at least a window after it. A look that
 * merely started would not do: it may have died since.
 */
export const isSettled = (watch: Watch, cause: Cause): boolean => watch.looked >= cause.at + windowMs

/**
 * What a message stands for: others ride along on the mark of a trailing look, so that look stands for whatever was
 * pushed until a window before it.
 * @param own whether the watch's mark is the message's own
 */
export const covered = (watch: Watch, cause: Cause, own: boolean): Cause =>
  own ? { ...cause, at: Math.max(cause.at, watch.again - windowMs) } : cause

/** True when somebody has to be told: of a revision that was not published, of a step, or of all since coming late. */
export const isUnpublished = (watch: Watch): boolean =>
  watch.rev > watch.woken || (watch.rev > 0 && watch.fresh.length > 0) || watch.owed.length > 0

/** True when the task ended, everybody was told and no timer is left. */
export const isOver = (watch: Watch): boolean =>
  isTerminal(watch.state) && !isUnpublished(watch) && watch.due === undefined

/** How long a look has to wait now: until the window is over or the look under way is. 0: it may start. */
export function waitMs(watch: Watch, now: number): number {
  if (now < watch.lookAt + windowMs) return watch.lookAt + windowMs - now
  return now < watch.lease ? windowMs : 0
}

/**
 * True when a trailing look is on its way that starts late enough for this push. News never rides along: its
 * record stays pending until a look published it.
 * @param unbound the subscription that the look is to bind, by ref: only a look for a push of its own does that
 */
export const ridesAlong = (watch: Watch, cause: Cause, now: number, unbound?: string): boolean =>
  !isNews(cause.state) &&
  watch.again >= now &&
  watch.again >= cause.at + windowMs &&
  (unbound === undefined || watch.againFor === unbound)

/**
 * How long to put off a look that has to wait: news as long as it must, everything else a window more, so that all
 * that comes until then rides along.
 */
export const trailingMs = (wait: number, cause: Cause): number =>
  isNews(cause.state) ? wait : wait + windowMs

/**
 * How much longer the look waits that is to bind a subscription: nothing while the first other one is under way, then
 * more each time. Such a look for news rides on no other, so that of many pushes that nothing comes of each would come
 * each window.
 * @param stood how often it had to wait already
 */
export const standMs = (stood: number): number => windowMs * (2 ** Math.min(stood, 5) - 1)

/**
 * How long the first look for a push may wait: one that names no news, to a subscription that does not want to hear of
 * its state, waits until all that comes within its window needs no look of its own.
 */
export const leadMs = (sub: Subscription, named: TaskState | undefined): number =>
  isNews(named) || sub.taskId === undefined || (named !== undefined && wants(sub, named)) ? 0 : 2 * windowMs

/** Start of a look: now, but later than the one before, so that it fences. */
export const startAfter = (watch: Watch, now: number): number => Math.max(now, watch.lookAt + 1)

/**
 * Compares the agent's answer with what is known. A change is what a client could see: state, message, artifacts.
 * An answer that was seen before and left is an older replica's, for a minute; with the agent's own timestamps
 * a genuine return is told apart.
 */
export function compare(
  watch: Watch,
  task: Task,
  now: number,
): { change: 'none' | 'new' | 'back'; digest: string; ring: string[]; restamp?: string; anew?: true } {
  const status = record(task.raw.status)
  const asked = isInterrupted(task.state) && record(status.message).messageId === undefined
  const stamp = (task.timestamp ?? '').slice(0, longestStamp)
  const parts = [
    task.state,
    canonical(status.message ?? null),
    // Of one that was too large its artifacts are not known.
    task.tooLarge === true ? 'too_large' : canonical(task.raw.artifacts ?? null),
  ]
  // A question that has no id is told from one before by its time.
  const digest = idOf(...parts, asked ? stamp : '')
  const exact = idOf(digest, task.timestamp ?? '')
  // It may be an older replica's that answers now: the other time still stands to be answered again, but not for ever, or
  // the next one would not count as new.
  const { restamp, anew } = watch
  const older =
    restamp !== undefined && isBefore(task.timestamp, restamp) && restampMs(watch, now) !== undefined
  const stands = older ? { restamp } : {}
  const doubt = anew === true ? { anew } : {}
  if (isTerminal(watch.state) || digest === watch.digest)
    return {
      ...{ change: 'none', digest: watch.digest ?? digest, ring: watch.ring, ...stands },
      ...(now - watch.changed < replicaMs && doubt),
    }
  const lagging = watch.backSince === undefined || now - watch.backSince < replicaMs
  // An end can be no older answer than a state that goes on, whatever the clocks of the agent's hosts say.
  const ended = isTerminal(task.state)
  if (!ended && lagging && (watch.ring.includes(exact) || isBefore(task.timestamp, watch.stamp)))
    return { change: 'back', digest, ring: watch.ring, ...stands, ...doubt }
  // Agents that date each answer "now" ask nothing new by it: such a time counts once it was answered twice, and the next
  // one only if it is too old by then to be a cache's.
  const again = asked && watch.digest === idOf(...parts, watch.stamp ?? '')
  if (again && (restamp !== stamp || (anew === true && now - Date.parse(stamp) < replicaMs)))
    return {
      ...{ change: 'none', digest: watch.digest ?? digest, ring: watch.ring, restamp: stamp, ...stands },
      ...doubt,
    }
  const ring = [...watch.ring.filter(one => one !== exact), exact].slice(-ringSize)
  return { change: 'new', digest, ring, ...(again && { anew: true }) }
}

/**
 * When to look again at a question that may be asked anew: soon, doubled each time, until replicas that lag have caught up
 * with what was asked while others did.
 * @returns undefined once that time is over: then it is an agent that dates each answer "now"
 */
export function restampMs({ restampSince }: Watch, now: number): number | undefined {
  const [passed, left] = [now - (restampSince ?? now), (restampSince ?? now) + 2 * replicaMs - now]
  return left > 0 ? Math.max(2 * windowMs, Math.min(passed, left)) : undefined
}

/** True when the agent itself dates one answer before the other. Times that are unset (Go's zero, the epoch) say nothing. */
function isBefore(one: string | undefined, other: string | undefined): boolean {
  const [first, second] = [Date.parse(one ?? ''), Date.parse(other ?? '')]
  return first > 0 && second > 0 && first < second
}

/** True when a subscription wants to hear of a state. */
export const wants = (sub: Subscription, state: TaskState): boolean => sub.states.includes(state)

/** True when the wake tells a task's state. What a step tells is told by no revision. */
const tellsState = ({ type, state }: Pick<Wake, 'type' | 'state'>): boolean =>
  state !== undefined && type === eventType(state)

/**
 * True when a wake need not be sent any more: a newer revision, which its subscription wants too, was published, and
 * tells all that this one would. It may have passed since: then the next that is wanted tells that.
 */
export const isSuperseded = (
  watch: Watch,
  sub: Subscription,
  wake: Pick<Wake, 'type' | 'state' | 'rev'>,
): boolean =>
  tellsState(wake) && published(watch).some(({ state, rev }) => rev > (wake.rev ?? 0) && wants(sub, state))

/** The newest published revision of each state that is news, and that of the present state. */
function published({ state, rev, woken, news = {} }: Watch): { state: TaskState; rev: number }[] {
  const present = state === undefined ? [] : [{ state, rev }]
  const known = taskStates.flatMap(one => (news[one] === undefined ? [] : [{ state: one, rev: news[one] }]))
  return [...present, ...known].filter(one => one.rev <= woken)
}

/**
 * For whom a wake speaks while its target is away. With an inbox a client's newest wake does for all of its, since each
 * is a hint to read on; without one a task's newest state does for that subscription; anything else speaks for itself.
 */
export function waitersOf(sub: Subscription | undefined, subject: string, wake: Wake): string {
  // What is about no task stands in no inbox.
  if (sub?.client !== undefined && wake.about === undefined) return idOf('waiters', sub.tenant, sub.client)
  return sub && tellsState(wake) ? idOf('waiters', sub.ref, subject) : wake.id
}

/**
 * When to look next at a task that owes us news, though no push came: after half the silence.
 * @param silence ms since its last change
 * @param mostSeconds longest wait, the agent's `floorSeconds`
 */
export const floorMs = (silence: number, mostSeconds = 6 * 60 * 60): number =>
  Math.min(Math.max(silence / 2, minute), Math.max(mostSeconds * second, minute))

/** When to ask an agent that cannot push: 2 s after a change, rising to a minute, in the long run to a quarter of an hour. */
export function pollMs(silence: number): number {
  if (silence < 2 * minute) return Math.max(2 * second, silence / 2)
  return Math.min(Math.max(minute, silence / 60), 15 * minute)
}

/**
 * How long to wait after a failed look, unless the agent said how long: doubled each time, and spread, so that the tasks
 * of one agent do not all come back at once.
 * @param share from 0 to 1, drawn
 */
export const troubleMs = (failures: number, share: number): number =>
  Math.round(Math.min(2 * second * 2 ** failures, 15 * minute) * (0.5 + 0.5 * share))

/** How long tick holds an entry that it queued: 5 minutes, doubled at each try that changed nothing, at most 6 hours. */
export const holdMs = (tries: number): number => Math.min(5 * minute * 2 ** tries, 6 * hour)

/**
 * Names what a target is told of a watch: the same revision for the same subscription is the same wake.
 * @param what a revision, or the text of a step
 */
export const wakeIdOf = (watch: Watch, what: number | string, subscription: string, target: string): string =>
  idOf('wake', watch.key, watch.created, 'state', what, subscription, target)

/** Names one revision, or the text of a step, in one client's inbox. */
export const entryIdOf = (watch: Watch, what: number | string, client: string): string =>
  idOf('entry', watch.key, watch.created, what, client)

const record = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? { ...value } : {}
