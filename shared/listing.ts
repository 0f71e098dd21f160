// Goes through an agent's list of tasks for one subscription, and has looked at what is not known in the state that it lists. Keeps nothing itself.

import { getTask, type Listed, listTasks } from './a2a/client.ts'
import type { Endpoint } from './a2a/endpoint.ts'
import { isTerminal, type Task } from './a2a/task.ts'
import type { Failure } from './a2a/trouble.ts'
import { allEnded } from './abreast.ts'
import { mostAskedMs } from './breaker.ts'
import { heardOf } from './calling.ts'
import { drawShare } from './clock.ts'
import type { Agent, Subscription, Trouble, Watch } from './model.ts'
import { seenOf } from './permits.ts'
import { floorMs } from './policy.ts'
import { sendLook } from './queue.ts'
import type { Relay } from './relay.ts'
import { agentGroup, watchOf } from './store/keys.ts'
import { getWatch, noteLost, openWatch, watchedBy } from './store/watches.ts'
import { endWait, enterAgent, leaveAgent } from './turns.ts'
import { callInVersion } from './versions.ts'

const second = 1000
const minute = 60 * second

/** The agent's clock may be behind ours, and its list behind its tasks. */
const overlapMs = 5 * minute
const pagesAtMost = 20
/** What an agent is asked for; not every one heeds it. */
const pageSize = 100
/** No page is asked for any more once a sweep took so long: a call takes 10 s at most, and the function has 30 s. */
const askedMs = 10 * second
/** Nor is a task of a page seen to that is at hand by then. */
const seenToMs = 22 * second
/** Tasks of a page seen to at a time. */
const abreast = 8
/** A list that was not gone through by then is begun anew: its agent may go round in circles, or have forgotten it. */
const listMs = 60 * minute
/** So many pages in a row that show nothing new end a list: filters may be heeded page by page, and some lists name a next page for ever. */
const barrenAtMost = 100
/** A token is the agent's own, and a subscription holds nothing large. */
const longestToken = 2000
/** Between two calls for a task that is listed but was given up because it was never to be had; and how many such in a sweep. */
const lostMs = 6 * 60 * minute
const lostAtMost = 20

type Page = NonNullable<Subscription['sweepPage']>

/** How far a sweep came: through, cut short by its length, by others' calls or a fault, or not at all since the agent cannot list. */
export type Swept = {
  ended: 'all' | 'long' | 'full' | 'part' | 'unable'
  looks: number
  /** When the list was begun that was gone through, or goes on. */
  began: number
  /** The page that the next sweep goes on with; it begins anew if missing. */
  page?: Page | undefined
  /** What came of the first page: missing when it was not asked for. */
  first?: 'listed' | Trouble
  /** For how long the agent asked the subscription's own credentials to wait (ms). */
  waitMs: number
}

/** What one sweep is about, and what it has left. */
type Sweep = {
  relay: Relay
  sub: Subscription
  agent: Agent
  began: number
  lost: number
  full: boolean
  waitMs: number
}

/**
 * Queues a look for every task that is not known in the state the agent lists. The first page is read each time, for
 * what changed last is there with most agents; then the list goes on where the last sweep left it.
 */
export async function goThrough(relay: Relay, sub: Subscription, agent: Agent): Promise<Swept> {
  const began = relay.now()
  const sweep: Sweep = { relay, sub, agent, began, lost: lostAtMost, full: false, waitMs: 0 }
  const kept = goesOn(sub.sweepPage, agent, began) ? sub.sweepPage : undefined
  const shown = new Set<string>()
  const tokens = new Set<string>()
  let looks = 0
  const alone = kept?.alone === true
  let at = alone ? kept : undefined
  let second: Page | undefined
  let first: Swept['first']
  const end = (ended: Swept['ended'], page?: Page): Swept => ({
    ...{ ended, looks, began: (kept ?? page)?.began ?? began, waitMs: sweep.waitMs },
    ...(first !== undefined && { first }),
    ...(page !== undefined && page.token.length <= longestToken && { page }),
  })
  for (let pages = 0; pages < pagesAtMost && relay.now() - began <= askedMs; pages++) {
    const listed = await ask(sweep, at?.token)
    if (at === undefined) first = listed && (listed.ok ? 'listed' : listed.trouble)
    // Not let in: a sweep waits for no turn, the next one goes on where this one ended.
    if (listed === undefined) return end(sweep.full ? 'full' : 'part', at ?? kept)
    if (!listed.ok && listed.trouble === 'unsupported_version') return end('unable')
    // What the first page met says nothing of the one that is kept. That one has this try; others have one more.
    if (!listed.ok && at === undefined) return end('part', kept)
    // Some agents forget a list once another is begun: the next sweep goes on with this one alone.
    if (!listed.ok && at === kept) return end('part', second)
    if (!listed.ok) return end('part', mayPass(listed) ? at : undefined)
    const news = await watchAll(sweep, listed.tasks)
    looks += news.looks
    if (!news.done) return end('long', at ?? kept)
    const isBarren = at !== undefined && listed.tasks.every(({ id }) => shown.has(id))
    for (const { id } of listed.tasks) shown.add(id)
    const { next } = listed
    const barren = isBarren ? (at?.barren ?? 0) + 1 : 0
    if (next === undefined || (isBarren && tokens.has(next)) || barren >= barrenAtMost) return end('all')
    const page = { token: next, began: at?.began ?? began, barren }
    if (at === undefined && kept !== undefined) second = { ...page, alone: true }
    at = second !== undefined && at === undefined ? kept : { ...page, ...(alone && { alone }) }
    tokens.add(page.token)
  }
  return end('long', at ?? kept)
}

/** Whether a page that was kept may still be known to the agent, and its list be worth going on with. */
const goesOn = (page: Page | undefined, agent: Agent, now: number): boolean =>
  page !== undefined && now - page.began < listMs && page.began > agent.updatedAt

/** Asks for a page; undefined when the agent takes no more calls now. */
function ask(sweep: Sweep, pageToken: string | undefined): Promise<Listed | undefined> {
  const { relay } = sweep
  const asked = {
    statusTimestampAfter: new Date(sinceOf(sweep)).toISOString(),
    ...(pageToken !== undefined && { pageToken }),
  }
  return callInTurn(sweep, endpoint => listTasks(relay.net, endpoint, asked, relay.now()))
}

const sinceOf = ({ sub }: Sweep): number => (sub.sweptAt ?? sub.createdAt) - overlapMs

async function callInTurn<T extends { ok: true } | Failure>(
  sweep: Sweep,
  call: (endpoint: Endpoint) => Promise<T>,
): Promise<T | Failure | undefined> {
  const { relay, sub, agent } = sweep
  const entered = await enterAgent(relay, agent, undefined, () => sub.credentials !== undefined)
  if (!entered.ok) {
    sweep.full = entered.why === 'full'
    await endWait(relay, agent, entered.waited)
    return undefined
  }
  const answer = await callInVersion(relay, { agent, calls: seenOf(relay, agent).calls }, [sub], call)
  await leaveAgent(relay, agent, entered.turn, heardOf(answer))
  if (!answer.ok && mayPass(answer) && sub.credentials !== undefined)
    sweep.waitMs = Math.min(answer.retryAfterMs ?? 0, mostAskedMs)
  return answer
}

const mayPass = ({ trouble }: Failure): boolean => trouble === 'unreachable' || trouble === 'rate_limited'

type Shown = Pick<Task, 'id' | 'state' | 'timestamp'>

/** Sees to the tasks of a page, some at a time. @returns how many looks that took, and whether there was time for all */
async function watchAll(sweep: Sweep, tasks: Shown[]): Promise<{ looks: number; done: boolean }> {
  const since = sinceOf(sweep)
  // Not every agent heeds the filter; a task that ended before, or nobody knows when, is nobody's news.
  const recent = tasks.filter(
    ({ timestamp = '', state }) =>
      !(Date.parse(timestamp) < since) && !(timestamp === '' && isTerminal(state)),
  )
  // Of a page that is too large to be seen to in one go each sweep takes another part.
  const begin = recent.length > pageSize ? Math.floor(recent.length * drawShare(sweep.relay)) : 0
  const turned = [...recent.slice(begin), ...recent.slice(0, begin)]
  let looks = 0
  for (let from = 0; from < turned.length; from += abreast) {
    if (sweep.relay.now() - sweep.began > seenToMs) return { looks, done: false }
    const some = turned.slice(from, from + abreast)
    looks += (await allEnded(some.map(task => watchListed(sweep, task)))).filter(Boolean).length
  }
  return { looks, done: true }
}

/** Has a listed task looked at, unless it is known so. @returns whether a look was queued */
async function watchListed(sweep: Sweep, { id: taskId, state }: Shown): Promise<boolean> {
  const { relay, sub } = sweep
  const { tenant, agent, principal, ref } = sub
  const known = await getWatch(relay.table, watchOf(tenant, agent, principal, taskId))
  const isOn = known?.subs.includes(ref) === true
  if (isOn && known?.state === state) return false
  if (known !== undefined && !isOn && !(await isToBeHad(sweep, known))) return false
  const now = relay.now()
  const at = { now, due: now + floorMs(0) }
  const watch = await openWatch(relay.table, watchedBy(sub, taskId), at, ref)
  if (watch === undefined) return false
  await sendLook(relay.queues, agentGroup(tenant, agent), { v: 1, kind: 'watch', watch: watch.key })
  return true
}

/**
 * False while a task is none that can be had, though it is listed: whoever was told so and taken off it is told nothing
 * again until the agent shows it. It is asked for now and then, with nobody on it.
 */
async function isToBeHad(sweep: Sweep, watch: Watch): Promise<boolean> {
  const { relay, sub, agent, began } = sweep
  const lost = watch.lost?.[sub.ref]
  if (watch.rev > 0 || lost === undefined) return true
  const now = relay.now()
  // To other credentials, or at another place, it may be another task.
  const isOther = Math.max(sub.credentialsAt ?? 0, agent.updatedAt) > lost
  if ((now - lost < lostMs && !isOther) || now - began > askedMs || sweep.lost <= 0) return false
  sweep.lost -= 1
  const looked = await callInTurn(sweep, endpoint => getTask(relay.net, endpoint, watch.taskId, now))
  if (looked?.ok === true) return true
  // Whatever the agent answers: one that hangs at this task would have no time left for the rest of its list.
  if (looked !== undefined) await noteLost(relay.table, watch, sub.ref, now)
  return false
}
