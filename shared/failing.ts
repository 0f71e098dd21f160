// What follows from a look that gave no task: it is recorded, and looked again, slower each time. Asks no agent itself.

import { isTerminal } from './a2a/task.ts'
import type { Failure } from './a2a/trouble.ts'
import { type Alarm, metAgain } from './alarms.ts'
import { type Ask, idsOf, type Looked } from './asking.ts'
import type { Tries } from './calling.ts'
import { noteOutcome, refusal } from './canceling.ts'
import { drawShare } from './clock.ts'
import type { Agent, Lasting, Subscription, Trouble, Watch } from './model.ts'
import { aheadTries, leaseMs, troubleMs } from './policy.ts'
import type { Audience } from './publish.ts'
import type { Outcome } from './pursuing.ts'
import { alarmAnew, raise } from './raising.ts'
import { type Came, cameOf, cameTo, hopeOf, isRefusal, isUnseen, keep, ownOf } from './refusals.ts'
import type { Relay } from './relay.ts'
import { tell } from './saving.ts'
import { saveTrouble } from './store/looks.ts'
import { dropWatch, endWatch, freeWatch, leaveWatch } from './store/watches.ts'
import { cancelSoon, deadlineOf, nextTimer, putOff, sooner } from './timing.ts'
import { timesNow } from './tree.ts'
import { standingOf, wishesAfter, wishing } from './wishes.ts'

/** Faults that asking again soon does not mend. */
const lastingTroubles: ReadonlySet<Trouble> = new Set([
  'not_found',
  'forbidden',
  'unauthorized',
  'credentials_expired',
  'wrong_task',
  'unreadable',
  'too_large',
  'unsupported_version',
])

/** A look that gave no task. */
type Failed = Failure & Tries & { outcome?: Outcome | undefined }

/** A look that failed, and what it adds up to with those before it. */
type Fault = {
  trouble: Trouble
  /** Looks in a row that failed, for whatever reason. */
  failures: number
  /** Missing while the trouble is one that passes. */
  lasting: Lasting | undefined
  /** How often in a row it was met, if it is one that may come to be told. */
  met: Lasting | undefined
  /** A token endpoint failed, which may serve again by itself. */
  elsewhere: boolean
  /** What the credentials of each who is on the task came to. */
  came: Came[]
  afterMs: number
  /** What came of asking to cancel the task, if that was asked. */
  outcome: Outcome | undefined
}

function faultOf(
  relay: Relay,
  watch: Watch,
  came: Came[],
  { retryAfterMs, outcome, tries, ...answer }: Failed,
): Fault {
  const { trouble } = hopeOf(came, tries) ?? answer
  const elsewhere = tries.some(one => !one.answer.ok && one.answer.elsewhere === true)
  const failures = (watch.failures ?? 0) + 1
  const isLasting = lastingTroubles.has(trouble)
  const met = isLasting || trouble === 'failed' ? metAgain(watch.lasting, trouble, relay.now()) : undefined
  const lasting = isLasting ? met : undefined
  // "At once" says nothing of when it will be better.
  const askedMs = answer.trouble === trouble ? retryAfterMs : undefined
  const afterMs = askedMs || troubleMs(lasting?.row ?? failures, drawShare(relay))
  return { trouble, failures, lasting, met, elsewhere, came, afterMs, outcome }
}

/** Settles a look that failed. */
export async function inTrouble(
  relay: Relay,
  watch: Watch,
  agent: Agent,
  audience: Audience,
  answer: Failed,
  ask: Ask,
): Promise<Looked> {
  const { unbound } = ask
  const { live } = audience
  const fault = faultOf(relay, watch, cameTo(watch, agent, live, answer.tries, relay.now()), answer)
  const { trouble, failures, lasting, elsewhere, came, afterMs, outcome } = fault
  relay.log({ step: 'look.failed', ...idsOf(watch), trouble, detail: answer.detail, failures })
  const refused = unbound !== undefined && isRefusedTo(unbound, answer)
  // A token endpoint may serve again, and credentials be replaced: what was pushed is not given up for that.
  const about = {
    kind: 'trouble',
    ...{ trouble, afterMs, refused },
    lasting: lasting !== undefined && !elsewhere && !refused,
  } as const
  if (live.length === 0) {
    // What is told of refused credentials is told of the task.
    if (refused) await restWatch(relay, watch)
    else await dropWatch(relay.table, watch, relay.now())
    return { ...about, watched: false }
  }
  // Whoever is on an ended task was told its end: this look was made for one that is not, who has its push to go on.
  if (isTerminal(watch.state)) {
    await freeWatch(relay.table, watch)
    return { ...about, watched: false }
  }
  if (isGone(lasting, relay.now()) && isNobodys(watch, live)) {
    const leaving = live.filter(sub => isUnseen(cameOf(came, ownOf(sub))?.trouble ?? trouble))
    for (const { ref } of leaving) await leaveWatch(relay.table, watch.key, ref, relay.now())
    if (leaving.length === live.length) {
      await freeWatch(relay.table, watch)
      return unbound === undefined ? { kind: 'dropped', why: trouble } : { ...about, watched: false }
    }
  }
  if (outcome !== undefined) await noteOutcome(relay, watch, outcome)
  await note(relay, watch, agent, audience, fault, ask)
  if (outcome?.again !== undefined && outcome.rests !== true)
    await cancelSoon(relay, watch, outcome.again.notBefore)
  // One chain of repeats, whatever the number of pushes; past the longest delay the timer alone goes on.
  const goesOn =
    lasting === undefined
      ? failures < 2 * aheadTries
      : lasting.times < aheadTries && lasting.row < 4 * aheadTries
  if ((watch.again <= relay.now() || ask.own === true) && (goesOn || agent.road === 'poll'))
    await putOff(relay, watch, { v: 1, kind: 'watch', watch: watch.key, looked: watch.looked }, afterMs)
  // The chain goes on for those who are on the watch; one that is not bound has only its push.
  return { ...about, watched: unbound === undefined }
}

/** Ends the watch of a task that nobody is on, but keeps it. */
async function restWatch({ table, now }: Relay, watch: Watch): Promise<void> {
  await freeWatch(table, watch)
  await endWatch(table, watch.key, now())
}

const isRefusedTo = (sub: Subscription, { tries }: Tries): boolean =>
  tries.some(({ own, answer }) => own === ownOf(sub) && !answer.ok && isRefusal(answer.trouble))

/** So long an agent may take to show a task that it pushed once, to whoever waits for all of its tasks. */
const nobodysMs = 6 * 60 * 60_000

const isGone = (lasting: Lasting | undefined, now: number): boolean =>
  (lasting?.trouble === 'not_found' || lasting?.trouble === 'forbidden') && now - lasting.since > nobodysMs

/** Pushed once and never seen: an agent-wide subscription does not wait for it for ever. */
const isNobodys = ({ rev }: Watch, live: readonly Subscription[]): boolean =>
  rev === 0 && live.every(sub => sub.scope === 'agent')

/** Saves what is known of the trouble and tells what it has come to. */
async function note(
  relay: Relay,
  watch: Watch,
  agent: Agent,
  audience: Audience,
  { trouble, failures, lasting, met, elsewhere, came, outcome }: Fault,
  ask: Ask,
): Promise<void> {
  const now = relay.now()
  const troubleSince = watch.troubleSince ?? now
  const fresh = { ...watch, troubleSince }
  const { steps, reached, ...marks } = await raise(relay, fresh, agent, audience.live, { lasting, met, came })
  const wishes = wishesAfter(watch, audience.live, outcome)
  const after = wishing(watch, wishes)
  const times = await timesNow(relay, after, audience.live, now)
  const deadline = deadlineOf(times.next, standingOf(after, audience.live), now)
  const tried = keep(agent, came)
  // Who joins hears of what stands, whatever keeps this look from seeing it again.
  const anew = alarmAnew({ ...watch, ...marks, tried }, agent, audience)
  const owed = [...steps, ...anew.steps, ...times.steps, ...refusal(watch, outcome, now)]
  const fault = {
    ...{ trouble, troubleSince, failures, lasting: met, tried, ...marks, ...wishes, ...times.saves },
    ...(outcome?.refused !== undefined && { refusedAt: now }),
    ...(anew.alarms !== undefined && { alarms: anew.alarms }),
    due: nextDue(
      watch,
      agent,
      { now, deadline },
      soonMs(elsewhere ? undefined : lasting, reached),
      ask.fired === true,
    ),
  }
  const saved = await saveTrouble(relay.table, { ...watch, lease: now + leaseMs }, fault, owed)
  if (saved !== undefined && owed.length > 0) await tell(relay, saved, audience)
}

const minute = 60_000

/** A trouble that may still pass is looked at again before long; once it was told the timer goes on as ever. */
function soonMs(lasting: Lasting | undefined, alarm: Alarm | undefined): number | undefined {
  if (lasting === undefined) return 15 * minute
  return alarm === undefined ? 5 * minute : undefined
}

/** No budget ends unseen. */
function nextDue(
  watch: Watch,
  agent: Agent,
  at: { now: number; deadline: number | undefined },
  afterMs: number | undefined,
  fired: boolean,
): number | undefined {
  if (afterMs === undefined)
    return fired
      ? nextTimer(watch, agent, { ...at, changed: watch.changed }, true)
      : sooner(watch, at.deadline)
  const soon = Math.min(at.now + afterMs, at.deadline ?? Number.POSITIVE_INFINITY)
  return fired ? soon : sooner(watch, soon)
}
