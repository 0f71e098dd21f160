// What follows from a look that gave no task: it is recorded, and looked again, slower each time. Asks no agent itself.
import type { Failure } from './a2a/trouble.ts'
import { type Alarm, alarmOf } from './alarms.ts'
import { type Ask, idsOf, type Looked } from './asking.ts'
import { timesOf } from './budgets.ts'
import { ownerOf } from './calling.ts'
import type { Agent, Trouble, Watch } from './model.ts'
import { tellOperations } from './operations.ts'
import { aheadTries, troubleMs } from './policy.ts'
import type { Audience } from './publish.ts'
import type { Relay } from './relay.ts'
import { tell } from './saving.ts'
import { writeStep } from './steps.ts'
import { countWrong } from './store/health.ts'
import { dropWatch, leaveWatch, saveTrouble } from './store/watches.ts'
import { nextTimer, putOff, sooner } from './timing.ts'
import { share } from './turns.ts'

/** Faults that asking again soon does not mend. */
const lastingTroubles: ReadonlySet<Trouble> = new Set([
  'not_found',
  'forbidden',
  'unauthorized',
  'credentials_expired',
  'wrong_task',
  'unreadable',
  'unsupported_version',
])

/** Settles a look that failed. */
export async function inTrouble(
  relay: Relay,
  watch: Watch,
  agent: Agent,
  audience: Audience,
  answer: Failure,
  ask: Ask,
): Promise<Looked> {
  const now = relay.now()
  const { trouble, detail } = answer
  const failures = (watch.failures ?? 0) + 1
  const afterMs = answer.retryAfterMs ?? troubleMs(failures, share(relay))
  const lasting = lastingTroubles.has(trouble)
  relay.log({ step: 'look.failed', ...idsOf(watch), trouble, detail, failures })
  if (trouble === 'wrong_task') await noteWrong(relay, watch)
  if (watch.subs.length === 0) {
    await dropWatch(relay.table, watch.key, watch.lookAt)
    return { kind: 'trouble', trouble, lasting, watched: false, afterMs }
  }
  if (
    lasting &&
    watch.rev === 0 &&
    failures > aheadTries &&
    audience.live.every(sub => sub.scope === 'agent')
  ) {
    // Pushed once and never seen: an agent-wide subscription does not wait for it for ever.
    for (const ref of watch.subs) await leaveWatch(relay.table, watch.key, ref, now)
    return { kind: 'dropped', why: trouble }
  }
  const alarm = alarmOf(watch, trouble, failures, now)
  const { name, steps } = await raise(relay, watch, agent, audience, alarm)
  const times = timesOf(watch, audience.live, now)
  const fault = {
    trouble,
    troubleSince: watch.troubleSince ?? now,
    failures,
    due: nextDue(
      watch,
      agent,
      { now, deadline: times.next },
      lasting && alarm === undefined,
      ask.fired === true,
    ),
    alarm: name,
    ...times.saves,
  }
  const owed = [...steps, ...times.steps]
  const saved = await saveTrouble(relay.table, watch, fault, owed)
  if (saved !== undefined && owed.length > 0) await tell(relay, saved, audience)
  // One chain of repeats, whatever the number of pushes; past the longest delay the timer alone goes on.
  if (
    (watch.again <= now || ask.own === true) &&
    (failures < (lasting ? aheadTries : 2 * aheadTries) || agent.road === 'poll')
  )
    await putOff(relay, watch, { v: 1, kind: 'watch', watch: watch.key, looked: watch.looked }, afterMs)
  // The chain goes on for those who are on the watch; one that is not bound has only its push.
  return { kind: 'trouble', trouble, lasting, watched: ask.unbound === undefined, afterMs }
}

/** What an agent says of another task may be another customer's: it is dropped unread, and its owner is to look into it. */
async function noteWrong(relay: Relay, watch: Watch): Promise<void> {
  relay.log({ step: 'agent.answered_wrong', level: 'error', ...idsOf(watch) })
  await countWrong(relay.table, watch.tenant, watch.agent, relay.now())
}

/** A trouble that may still pass is looked at again within five minutes; after that the timer goes on as ever. No budget ends unseen. */
function nextDue(
  watch: Watch,
  agent: Agent,
  at: { now: number; deadline: number | undefined },
  passing: boolean,
  fired: boolean,
): number | undefined {
  const soon = Math.min(at.now + 5 * 60_000, at.deadline ?? Number.POSITIVE_INFINITY)
  if (passing) return fired ? soon : sooner(watch, soon)
  return fired ? nextTimer(watch, agent, { ...at, changed: watch.changed }, true) : sooner(watch, at.deadline)
}

/**
 * What is to be told of the trouble, once: to everybody on the watch, to the one subscription whose credentials ran
 * out, or to the tenant if they are the agent's own.
 */
async function raise(
  relay: Relay,
  watch: Watch,
  agent: Agent,
  { live }: Audience,
  alarm: Alarm | undefined,
): Promise<{ name: string | undefined; steps: string[] }> {
  const credentials = alarm === 'subscription.credentials_expired'
  const own = credentials ? ownerOf(live) : undefined
  const name = credentials && own === undefined ? 'agent' : alarm
  if (alarm === undefined || name === watch.alarm) return { name, steps: [] }
  if (name === 'agent') {
    const about = { agent: watch.agent }
    const type = 'subscription.credentials_expired'
    await tellOperations(relay, watch.tenant, about, { type, since: agent.etag })
    return { name, steps: [] }
  }
  const more = own === undefined ? {} : { sub: own.ref }
  return { name, steps: [writeStep(watch, alarm, watch.troubleSince ?? relay.now(), more)] }
}
