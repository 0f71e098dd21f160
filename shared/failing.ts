// What follows from a look that gave no task: it is recorded, and looked again, slower each time. Asks no agent itself.

import { isTerminal } from './a2a/task.ts'
import type { Failure } from './a2a/trouble.ts'
import { type Alarm, alarmOf, isUnusable, metAgain, type TaskAlarm } from './alarms.ts'
import { type Ask, idsOf, type Looked } from './asking.ts'
import { newestFirst } from './calling.ts'
import { noteOutcome, type Outcome, refusal } from './canceling.ts'
import { drawShare } from './clock.ts'
import type { Agent, Lasting, Subscription, Trouble, Watch } from './model.ts'
import { tellOperations } from './operations.ts'
import { aheadTries, troubleMs } from './policy.ts'
import type { Audience } from './publish.ts'
import { wasRefused } from './refusals.ts'
import type { Relay } from './relay.ts'
import { freshOf, tell } from './saving.ts'
import { readStep, writeStep } from './steps.ts'
import { countWrong } from './store/health.ts'
import { saveTrouble } from './store/looks.ts'
import { dropWatch, freeWatch, leaveWatch } from './store/watches.ts'
import { cancelSoon, nextTimer, putOff, sooner } from './timing.ts'
import { timesNow } from './tree.ts'
import { wishesAfter } from './wishes.ts'

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
type Failed = Failure & { outcome?: Outcome | undefined }

/** A look that failed, and what it adds up to with those before it. */
type Fault = {
  trouble: Trouble
  /** Looks in a row that failed, for whatever reason. */
  failures: number
  /** Missing while the trouble is one that passes. */
  lasting: Lasting | undefined
  /** How often in a row it was met, if it is one that may come to be told. */
  met: Lasting | undefined
  /** Not the agent failed, but its token endpoint, which may serve again by itself. */
  elsewhere: boolean
  afterMs: number
  /** What came of asking to cancel the task, if that was asked. */
  outcome: Outcome | undefined
}

function faultOf(relay: Relay, watch: Watch, { trouble, retryAfterMs, elsewhere, outcome }: Failed): Fault {
  const failures = (watch.failures ?? 0) + 1
  const isLasting = lastingTroubles.has(trouble)
  const met = isLasting || trouble === 'failed' ? metAgain(watch.lasting, trouble, relay.now()) : undefined
  const lasting = isLasting ? met : undefined
  // "At once" says nothing of when it will be better.
  const afterMs = retryAfterMs || troubleMs(lasting?.row ?? failures, drawShare(relay))
  return { trouble, failures, lasting, met, elsewhere: elsewhere === true, afterMs, outcome }
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
  const fault = faultOf(relay, watch, answer)
  const { trouble, failures, lasting, elsewhere, afterMs, outcome } = fault
  relay.log({ step: 'look.failed', ...idsOf(watch), trouble, detail: answer.detail, failures })
  if (trouble === 'wrong_task') await noteWrong(relay, watch)
  // A token endpoint may serve again, and credentials be replaced: what was pushed is not given up for that.
  const about = { kind: 'trouble', trouble, lasting: lasting !== undefined && !elsewhere, afterMs } as const
  if (audience.live.length === 0) {
    await dropWatch(relay.table, watch, relay.now())
    return { ...about, watched: false }
  }
  // Whoever is on an ended task was told its end: this look was made for one that is not, who has its push to go on.
  if (isTerminal(watch.state)) {
    await freeWatch(relay.table, watch)
    return { ...about, watched: false }
  }
  if (isGone(lasting, relay.now()) && isNobodys(watch, audience)) {
    for (const ref of watch.subs) await leaveWatch(relay.table, watch.key, ref, relay.now())
    await freeWatch(relay.table, watch)
    return ask.unbound === undefined ? { kind: 'dropped', why: trouble } : { ...about, watched: false }
  }
  if (outcome !== undefined) await noteOutcome(relay, watch, outcome)
  await note(relay, watch, agent, audience, fault, ask)
  if (outcome?.again !== undefined) await cancelSoon(relay, watch, outcome.again.notBefore)
  // One chain of repeats, whatever the number of pushes; past the longest delay the timer alone goes on.
  const goesOn =
    lasting === undefined
      ? failures < 2 * aheadTries
      : lasting.times < aheadTries && lasting.row < 4 * aheadTries
  if ((watch.again <= relay.now() || ask.own === true) && (goesOn || agent.road === 'poll'))
    await putOff(relay, watch, { v: 1, kind: 'watch', watch: watch.key, looked: watch.looked }, afterMs)
  // The chain goes on for those who are on the watch; one that is not bound has only its push.
  return { ...about, watched: ask.unbound === undefined }
}

/** So long an agent may take to show a task that it pushed once, to whoever waits for all of its tasks. */
const nobodysMs = 6 * 60 * 60_000

const isGone = (lasting: Lasting | undefined, now: number): boolean =>
  (lasting?.trouble === 'not_found' || lasting?.trouble === 'forbidden') && now - lasting.since > nobodysMs

/** Pushed once and never seen: an agent-wide subscription does not wait for it for ever. */
const isNobodys = ({ rev }: Watch, { live }: Audience): boolean =>
  rev === 0 && live.every(sub => sub.scope === 'agent')

/** Marks of what was told, and what is told now. */
type Raised = Pick<Watch, 'alarm' | 'raised' | 'expired'> & { steps: string[] }

/** Saves what is known of the trouble and tells what it has come to. */
async function note(
  relay: Relay,
  watch: Watch,
  agent: Agent,
  audience: Audience,
  { trouble, failures, lasting, met, elsewhere, outcome }: Fault,
  ask: Ask,
): Promise<void> {
  const now = relay.now()
  const alarm = lasting && alarmOf(watch, lasting, now)
  const troubleSince = watch.troubleSince ?? now
  const { steps, ...marks } =
    met !== undefined && alarm === undefined && isUnusable(met, troubleSince, now)
      ? { raised: await raiseUnusable(relay, watch, met), steps: [] }
      : await raise(relay, watch, agent, audience, lasting && { alarm, since: lasting.since })
  const wishes = wishesAfter(watch, audience.live, outcome)
  const { cancel: _, overdueCancel: __, ...before } = watch
  const times = await timesNow(relay, { ...before, ...wishes }, audience.live, now)
  // Who joins hears of what stands, whatever keeps this look from seeing it again.
  const anew = marks.alarm === undefined ? alarmAnew(watch, audience) : []
  const owed = [...steps, ...anew, ...times.steps, ...refusal(watch, outcome, now)]
  const fault = {
    ...{ trouble, troubleSince, failures, lasting: met, ...marks, ...wishes, ...times.saves },
    due: nextDue(
      watch,
      agent,
      { now, deadline: times.next },
      soonMs(elsewhere ? undefined : lasting, alarm),
      ask.fired === true,
    ),
  }
  const saved = await saveTrouble(relay.table, watch, fault, owed)
  if (saved !== undefined && owed.length > 0) await tell(relay, saved, audience)
}

/** What an agent says of another task may be another customer's: it is dropped unread, and its owner is to look into it. */
async function noteWrong(relay: Relay, watch: Watch): Promise<void> {
  relay.log({ step: 'agent.answered_wrong', level: 'error', ...idsOf(watch) })
  await countWrong(relay.table, watch.tenant, watch.agent, relay.now())
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

/** What is wrong with the agent itself is told to its tenant, by whichever task meets it: once a day and kind at most. */
async function raiseUnusable(
  relay: Relay,
  { tenant, agent, taskId, raised }: Watch,
  { trouble, since: failingSince }: Lasting,
): Promise<string> {
  if (raised !== unusableMark) {
    const since = `${trouble} ${dayOf(relay.now())}`
    const data = { reason: trouble, taskId, failingSince }
    await tellOperations(relay, tenant, { agent }, { type: 'agent.unusable', since, data })
  }
  return unusableMark
}

/** Mark of a watch whose agent was told to its tenant as of no use. */
const unusableMark = 'agent.unusable'

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

/** What was told of a trouble that stands is told to whoever joined since, and to nobody else. */
export function alarmAnew(watch: Watch, audience: Audience): string[] {
  const { alarm, lasting } = watch
  if (alarm === undefined || lasting === undefined) return []
  // After a crash it may be owed still, to everybody or to some of them.
  const owed = watch.owed.map(readStep).filter(({ type }) => type === alarm)
  if (owed.some(({ sub }) => sub === undefined)) return []
  const isOwed = (ref: string) => owed.some(({ sub }) => sub === ref)
  return freshOf(watch, audience)
    .filter(ref => !isOwed(ref))
    .map(sub => writeStep(watch, alarm, lasting.since, { sub }))
}

/** Both say that the task cannot be had any more: which of them may change with the replica that answers. */
const isLost = (alarm: TaskAlarm | undefined): boolean =>
  alarm === 'task.lost_access' || alarm === 'task.orphaned'

/**
 * What is to be told of the trouble, once: to everybody on the watch, to each subscription whose own credentials ran
 * out, and to the tenant if they are the agent's own.
 */
async function raise(
  relay: Relay,
  watch: Watch,
  agent: Agent,
  { live }: Audience,
  lasting: { alarm: Alarm | undefined; since: number } | undefined,
): Promise<Raised> {
  if (lasting?.alarm === undefined) return { steps: [] }
  const { alarm, since } = lasting
  if (alarm !== 'subscription.credentials_expired')
    return alarm === watch.alarm || (isLost(alarm) && isLost(watch.alarm))
      ? { steps: [] }
      : { alarm, steps: [writeStep(watch, alarm, since)] }
  const owners = newestFirst(live)
  const wasRefusedTo = (own: Subscription | undefined) => wasRefused(relay.table, { agent, own }, relay.now())
  const refused = owners.filter(wasRefusedTo)
  // Of many that were not tried yet the newest's were refused at least.
  const told = raiseExpired(watch, refused.length > 0 ? refused : owners.slice(0, 1), since)
  const isAgents = owners.length === 0 || (owners.length < live.length && wasRefusedTo(undefined))
  return isAgents ? { ...told, raised: await raiseAgents(relay, watch, agent, since) } : told
}

/** Each is told once of the credentials that it has: of others that are given later anew. */
function raiseExpired(watch: Watch, owners: Subscription[], since: number): Raised {
  const nameOf = ({ ref, credentialsAt = 0 }: Subscription) => `${ref} ${credentialsAt}`
  const known = watch.expired ?? []
  const steps = owners
    .filter(own => !known.includes(nameOf(own)))
    .map(({ ref, credentialsAt = 0 }) =>
      writeStep(watch, 'subscription.credentials_expired', Math.max(since, credentialsAt), { sub: ref }),
    )
  if (steps.length === 0) return { steps }
  return { steps, expired: [...new Set([...known, ...owners.map(nameOf)])] }
}

/** Many tasks meet it; those that meet it on another day tell it again, for it may have been mended in between. */
async function raiseAgents(relay: Relay, watch: Watch, agent: Agent, since: number): Promise<string> {
  const name = `agent ${agent.etag}`
  if (name !== watch.raised)
    await tellOperations(
      relay,
      watch.tenant,
      { agent: watch.agent },
      { type: 'subscription.credentials_expired', since: `${agent.etag} ${dayOf(since)}` },
    )
  return name
}
