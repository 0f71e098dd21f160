// Says what a trouble has come to, and to whom that is told: everybody on the task, whose credentials it is, or the tenant.
import { type Alarm, alarmOf, isUnusable, type TaskAlarm } from './alarms.ts'
import type { Agent, Lasting, Subscription, Watch } from './model.ts'
import { tellOperations } from './operations.ts'
import { type Audience, publish } from './publish.ts'
import {
  type Came,
  cameOf,
  credentialsOf,
  isRefusal,
  isTold,
  isUnseen,
  keptOf,
  ownersOf,
  ownOf,
} from './refusals.ts'
import type { Relay } from './relay.ts'
import { freshOf } from './saving.ts'
import { writeStep } from './steps.ts'
import { getAgent } from './store/agents.ts'
import { claimRefused } from './store/subscriptions.ts'

/** Marks of what was told, and what is told now. */
type Marks = Pick<Watch, 'alarms' | 'raised' | 'expired' | 'restored'> & { steps: string[] }

/** The same, with what the trouble has come to, if nobody's credentials may come to something better any more. */
export type Raised = Marks & { reached: Alarm | undefined }

/**
 * Judges a look that gave no task; the tenant is told in here, clients by the steps, once those are saved.
 * @param watch its `troubleSince` is that of this look if it is the first
 * @param met.lasting the trouble, if asking again does not mend it
 * @param met.met the same, or another that may come to be told
 * @param met.came what the credentials of each came to
 */
export async function raise(
  relay: Relay,
  watch: Watch & { troubleSince: number },
  agent: Agent,
  live: readonly Subscription[],
  { lasting, met, came }: { lasting: Lasting | undefined; met: Lasting | undefined; came: readonly Came[] },
): Promise<Raised> {
  const now = relay.now()
  const untried = ownersOf(live).length > came.length
  const alarm = lasting && alarmOf(watch, lasting, now)
  const since = lasting?.since ?? now
  const isUseless = met !== undefined && alarm === undefined && isUnusable(met, watch.troubleSince, now)
  // Whose credentials were not tried yet may see it.
  const told = raiseTask(watch, live, came, { alarm: untried && isLost(alarm) ? undefined : alarm, since })
  return {
    ...told,
    ...raiseExpired(watch, agent, live, came, { since, steps: told.steps }),
    ...(await raiseAgents(relay, watch, agent, came, since)),
    ...(isUseless && { raised: await raiseUnusable(relay, watch, met) }),
    reached: isPending(came, untried) ? undefined : alarm,
  }
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

/** The agent of a task of which an alarm stands: read anew, for it may just have been given other credentials. */
export const agentAlarmed = async (
  { table }: Pick<Relay, 'table'>,
  { tenant, agent, alarms }: Watch,
): Promise<Agent | undefined> => (alarms === undefined ? undefined : getAgent(table, tenant, agent))

/**
 * What was told of a trouble that stands is told to whoever joined since, and to nobody else: that the task is lost to
 * those only whose own credentials were tried and do not show it, for others' may. A look tells these once it is so.
 * @param agent as it is registered now: what its credentials of before came to says nothing of those that it has
 */
export function alarmAnew(
  watch: Watch,
  agent: Agent | undefined,
  audience: Audience,
): Pick<Marks, 'steps' | 'alarms'> {
  const { alarms = {}, lasting, tried = [] } = watch
  const told = Object.values(alarms)
  const type = lasting?.trouble === 'too_large' ? told.find(one => !isLost(one)) : undefined
  const alarm = type ?? told.find(isLost) ?? told[0]
  if (alarm === undefined || lasting === undefined) return { steps: [] }
  const fresh = freshOf(watch, audience)
  // Those that the agent's own credentials serve stand alike, as long as these are the same.
  const isSame = agent !== undefined && agent.updatedAt < (watch.troubleSince ?? 0)
  const areTold = isSame && audience.live.some(sub => ownOf(sub) === undefined && isLost(alarms[sub.ref]))
  const isSo = (sub: Subscription) =>
    !isLost(alarm) ||
    (ownOf(sub) === undefined && areTold) ||
    isUnseen((agent && keptOf(tried, agent, sub))?.trouble ?? 'unreachable')
  const late = audience.live.filter(sub => fresh.includes(sub.ref) && isSo(sub))
  return tellEach(watch, late, audience.live, { alarm, since: lasting.since })
}

/** Some credentials are yet to be tried, or to be refused a second time. */
const isPending = (came: readonly Came[], untried: boolean): boolean =>
  untried || came.some(one => isRefusal(one.trouble) && !isTold(one))

/** Both say that the task cannot be had any more: which of them may change with the replica that answers. */
const isLost = (alarm: Alarm | undefined): boolean =>
  alarm === 'task.lost_access' || alarm === 'task.orphaned'

/**
 * What each on the watch is told, once. That the task cannot be had is no news to those whose own credentials are
 * refused, or not served: they are told it once those, or others of theirs, do not show it.
 */
function raiseTask(
  watch: Watch,
  live: readonly Subscription[],
  came: readonly Came[],
  { alarm, since }: { alarm: Alarm | undefined; since: number },
): Marks {
  if (alarm === undefined || alarm === 'subscription.credentials_expired') return { steps: [] }
  // What was told to some stands for all.
  const type = isLost(alarm) ? (Object.values(watch.alarms ?? {}).find(isLost) ?? alarm) : alarm
  const isSo = (sub: Subscription) =>
    !isLost(alarm) || isUnseen(cameOf(came, ownOf(sub))?.trouble ?? 'not_found')
  return tellEach(watch, live.filter(isSo), live, { alarm: type, since })
}

/**
 * Tells those of some who were not told the same before, each by a step of its own: after a crash it is repeated to them,
 * and not to who joined since.
 */
function tellEach(
  watch: Watch,
  some: readonly Subscription[],
  live: readonly Subscription[],
  { alarm, since }: { alarm: TaskAlarm; since: number },
): Pick<Marks, 'steps' | 'alarms'> {
  const { alarms = {} } = watch
  const due = some.filter(({ ref }) => alarms[ref] !== alarm)
  if (due.length === 0) return { steps: [] }
  const told = live.flatMap(sub => {
    const last = due.includes(sub) ? alarm : alarms[sub.ref]
    return last === undefined ? [] : [[sub.ref, last] as const]
  })
  const steps = due.map(({ ref: sub }) => writeStep(watch, alarm, since, { sub }))
  return { steps, alarms: Object.fromEntries(told) }
}

/**
 * Each is told once of the credentials that it has: of others that are given later anew, and of the same once it heard of
 * the task by others' since, and all of those are refused as well. While one's may serve again it is no news.
 */
function raiseExpired(
  watch: Watch,
  agent: Agent,
  live: readonly Subscription[],
  came: readonly Came[],
  { since, steps }: { since: number; steps: string[] },
): Marks {
  const { expired = [], restored = [] } = watch
  const toldUnbound = live.filter(({ refusedTold, credentialsAt = 0 }) => refusedTold?.of === credentialsAt)
  const known = [...expired, ...toldUnbound.map(own => credentialsOf(agent, own))]
  const refused = live.filter(own => came.some(one => one.own === own && isTold(one)))
  const isOver = ownersOf(live).length === came.length && came.every(isTold)
  const standing = isOver ? known.filter(name => !restored.includes(name)) : known
  const anew = refused.filter(own => !standing.includes(credentialsOf(agent, own)))
  if (anew.length === 0) return { steps }
  const kept = known.filter(name =>
    live.some(({ ref }) => name.startsWith(`${ref} `) && !anew.some(own => own.ref === ref)),
  )
  return {
    steps: [
      ...steps,
      ...anew.map(({ ref, credentialsAt = 0 }) =>
        writeStep(watch, 'subscription.credentials_expired', Math.max(since, credentialsAt), { sub: ref }),
      ),
    ],
    expired: [...kept, ...anew.map(own => credentialsOf(agent, own))],
    restored: restored.filter(name => kept.includes(name)),
  }
}

/** Those of the agent itself are its tenant's news. Many tasks meet it; it is told anew on another day. */
async function raiseAgents(
  relay: Relay,
  watch: Pick<Watch, 'tenant' | 'agent' | 'raised'>,
  agent: Agent,
  came: readonly Came[],
  since: number,
): Promise<Pick<Watch, 'raised'>> {
  if (!came.some(one => one.own === undefined && isTold(one))) return {}
  const raised = credentialsOf(agent, undefined)
  if (raised !== watch.raised) await tellAgents(relay, agent, since)
  return { raised }
}

const tellAgents = (relay: Relay, { tenant, agent, etag }: Agent, since: number): Promise<void> =>
  tellOperations(
    relay,
    tenant,
    { agent },
    { type: 'subscription.credentials_expired', since: `${etag} ${dayOf(since)}` },
  )

/**
 * Tells whose credentials are refused for a push that is to bind its subscription. No watch keeps that it was told, but
 * the subscription does: it is told once of these credentials, whatever tasks it is pushed.
 */
export async function tellRefused(relay: Relay, watch: Watch, sub: Subscription): Promise<void> {
  if (sub.credentials === undefined) {
    const agent = await getAgent(relay.table, sub.tenant, sub.agent)
    if (agent !== undefined) await tellAgents(relay, agent, relay.now())
    return
  }
  if (!(await claimRefused(relay.table, sub, watch.key))) return
  const step = writeStep({ rev: 0 }, 'subscription.credentials_expired', sub.credentialsAt ?? 0, {
    sub: sub.ref,
  })
  const told = { ...watch, woken: watch.rev, fresh: [], owed: [step] }
  await publish(relay, told, { live: [sub], gone: [] })
}
