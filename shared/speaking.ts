// Settles who speaks for the wakes that waited for a target: the newest of each client that somebody still needs. One that ends unsent hands on to the next.
import type { Subscription, Watch } from './model.ts'
import { isSuperseded } from './policy.ts'
import { sendDeliver } from './queue.ts'
import type { Relay } from './relay.ts'
import type { TargetName } from './store/gates.ts'
import { targetGroup } from './store/keys.ts'
import { getSubscription, isHeard } from './store/subscriptions.ts'
import { endWaiting, spokenFor, type Waiting, waitingWake } from './store/waiting.ts'
import { getWake, reviveWake } from './store/wakes.ts'
import { getWatch } from './store/watches.ts'
import type { Wake } from './telling.ts'

/** The longest that a wake waits for its target and is then tried: nobody spoke for one before that. */
const spokenMs = 8 * 24 * 60 * 60 * 1000
const abreast = 16

/** Why a wake need not be sent any more: nobody may be told, or a newer revision tells all that it would. */
export function needlessness(
  watch: Watch | undefined,
  sub: Subscription | undefined,
  wake: Wake,
  now: number,
): 'dropped' | 'superseded' | undefined {
  if (wake.sub !== undefined && !isHeard(sub, now)) return 'dropped'
  return watch && sub && isSuperseded(watch, sub, wake) ? 'superseded' : undefined
}

/**
 * The first of those who wait that needs to be sent; those before it that need not, end.
 * @returns also those after it; none of either when all ended or time ran out, which `done` tells apart
 */
export async function firstNeeded(
  relay: Relay,
  name: TargetName,
  waiting: Waiting[],
  until: number,
): Promise<{ first: Waiting | undefined; rest: Waiting[]; done: boolean }> {
  // Most often it is the first.
  for (let begin = 0, size = 1; begin < waiting.length; begin += size, size = abreast) {
    if (begin > 0 && relay.now() > until) return { first: undefined, rest: [], done: false }
    const some = waiting.slice(begin, begin + size)
    const needed = await Promise.all(some.map(one => isNeeded(relay, name, one)))
    const index = needed.indexOf(true)
    if (index >= 0) return { first: some[index], rest: waiting.slice(begin + index + 1), done: true }
  }
  return { first: undefined, rest: [], done: true }
}

/** True when somebody needs it still; else it ends. One that waits no more was seen too late, and needs nothing. */
async function isNeeded(relay: Relay, name: TargetName, one: Waiting): Promise<boolean> {
  const wake = await waitingWake(relay.table, one)
  if (wake === undefined) return false
  const [watch, sub] = await Promise.all([
    wake.about === undefined ? getWatch(relay.table, one.subject) : undefined,
    wake.sub === undefined ? undefined : getSubscription(relay.table, wake.sub),
  ])
  const status = needlessness(watch, sub, wake, relay.now())
  if (status === undefined) return true
  if (wake.speaks) await handOn(relay, name, one)
  await endWaiting(relay.table, one, { status }, relay.now())
  return false
}

/**
 * Has the next one sent for which a wake spoke that ends unsent; it hands on in its turn. Called before that end is
 * recorded: a crash between sends one hint too many, the other way round there would be none.
 */
export async function handOn(
  relay: Relay,
  name: TargetName,
  { waiters, at }: Pick<Waiting, 'waiters' | 'at'>,
): Promise<void> {
  const { table, queues } = relay
  for (const { subject, id } of await spokenFor(table, name, waiters, { since: at - spokenMs, until: at })) {
    const wake = await getWake(table, subject, id)
    // The index lags: it may be on its way already, or over.
    if (wake === undefined || !(await reviveWake(table, wake, { now: relay.now(), only: 'superseded' })))
      continue
    await sendDeliver(queues, targetGroup(name.tenant, name.target), { v: 1, kind: 'wake', subject, id })
    relay.log({ step: 'wake.handed_on', tenant: name.tenant, target: name.target, wake: wake.id })
    return
  }
}
