// The item `calls` of an agent: slots for the calls under way, and the breaker. Settles who may call; decides and calls nothing.
import type { Calls } from '../breaker.ts'
import { agentCallsKey } from './keys.ts'
import type { AgentName } from './keysets.ts'
import { get, type Table, update, type Written } from './table.ts'

export const getCalls = async (table: Table, { tenant, agent }: AgentName): Promise<Calls> =>
  (await get<Calls>(table, agentCallsKey(tenant, agent), true)) ?? {}

const mayCall = '(attribute_not_exists(#openUntil) OR #asked = :asked)'

/**
 * Takes slots while the breaker is closed, all or none: of many calls each gets its own, or sees on refusal how things stand.
 * @param despite also while it is open because the agent asked for it: it asked that of other credentials
 */
export const takeSlots = (
  table: Table,
  { tenant, agent }: AgentName,
  slots: number[],
  at: { now: number; until: number },
  despite = false,
): Promise<Written<Calls>> =>
  update<Calls>(
    table,
    agentCallsKey(tenant, agent),
    `SET ${slots.map(slot => `#s${slot} = :until`).join(', ')}`,
    { ...at, ...(despite && { asked: true }) },
    [
      despite ? mayCall : 'attribute_not_exists(#openUntil)',
      ...slots.map(slot => `(attribute_not_exists(#s${slot}) OR #s${slot} < :now)`),
    ].join(' AND '),
  )

/** Takes the one probe of a breaker whose time is over: it stays open for others meanwhile. */
export const takeProbe = (
  table: Table,
  { tenant, agent }: AgentName,
  seen: number,
  until: number,
): Promise<Written<Calls>> =>
  update<Calls>(
    table,
    agentCallsKey(tenant, agent),
    'SET #openUntil = :until',
    { seen, until },
    '#openUntil = :seen',
  )

/** Gives slots back, unless one of them is another's by now: then they run out by themselves. */
export const giveSlots = (
  table: Table,
  { tenant, agent }: AgentName,
  slots: { slot: number; until: number }[],
): Promise<Written<Calls>> =>
  update<Calls>(
    table,
    agentCallsKey(tenant, agent),
    `REMOVE ${slots.map(({ slot }) => `#s${slot}`).join(', ')}`,
    Object.fromEntries(slots.map(({ slot, until }) => [`t${slot}`, until])),
    slots.map(({ slot }) => `#s${slot} = :t${slot}`).join(' AND '),
  )

/** Forgets the failures before an answer; a breaker that opened meanwhile stays open until its probe. */
export const forgetFailures = (table: Table, { tenant, agent }: AgentName): Promise<Written<Calls>> =>
  update<Calls>(
    table,
    agentCallsKey(tenant, agent),
    'REMOVE #failures, #failedSince, #fault',
    {},
    'attribute_exists(#pk) AND attribute_not_exists(#openUntil)',
  )

/** Counts a call that was not answered. */
export const countFailure = (
  table: Table,
  { tenant, agent }: AgentName,
  failed: { now: number; fault: string },
): Promise<Written<Calls>> =>
  update<Calls>(
    table,
    agentCallsKey(tenant, agent),
    'SET #failedSince = if_not_exists(#failedSince, :now), #fault = :fault ADD #failures :one',
    { ...failed, one: 1 },
  )

/**
 * Opens the breaker, or keeps it open for longer.
 * @param open.probe the time that this call's probe was given: only the latest probe has a say. Without it the breaker
 * is opened if it is closed, or open for a shorter time because the agent asked for a longer one
 */
export function openBreaker(
  table: Table,
  { tenant, agent }: AgentName,
  open: {
    until: number
    opens: number
    asked: boolean
    fault: string
    now: number
    probe: number | undefined
    /** Since when it has been failing, if that was told just now. */
    told?: number | undefined
  },
): Promise<Written<Calls>> {
  const marks = open.told === undefined ? '' : ', #told = :told'
  const set =
    'SET #openUntil = :until, #opens = :opens, #asked = :asked, #fault = :fault, #failedSince = if_not_exists(#failedSince, :now)'
  const longer = open.asked ? ' OR #openUntil < :until' : ''
  return update<Calls>(
    table,
    agentCallsKey(tenant, agent),
    set + marks,
    open,
    open.probe === undefined ? `attribute_not_exists(#openUntil)${longer}` : '#openUntil = :probe',
  )
}

/** Closes the breaker after the probe that was answered. */
export const closeBreaker = (
  table: Table,
  { tenant, agent }: AgentName,
  probe: number,
): Promise<Written<Calls>> =>
  update<Calls>(
    table,
    agentCallsKey(tenant, agent),
    'REMOVE #openUntil, #opens, #asked, #told, #fault, #failures, #failedSince',
    { probe },
    '#openUntil = :probe',
  )

/** Notes which version it speaks instead of the registered one; undefined: that one. The last to find out is right. */
export const noteSpoken = (
  table: Table,
  { tenant, agent }: AgentName,
  spoken: Calls['spoken'],
): Promise<Written<Calls>> =>
  update<Calls>(
    table,
    agentCallsKey(tenant, agent),
    spoken === undefined ? 'REMOVE #spoken' : 'SET #spoken = :spoken',
    spoken === undefined ? {} : { spoken },
  )

/** Notes since when the look has been waiting that waits longest, as far as is known. */
export const noteWaiting = (
  table: Table,
  { tenant, agent }: AgentName,
  waiting: { since: number; now: number; stale: number },
): Promise<Written<Calls>> =>
  update<Calls>(
    table,
    agentCallsKey(tenant, agent),
    'SET #oldest = :since, #oldestSeen = :now',
    waiting,
    'attribute_not_exists(#oldest) OR #oldest >= :since OR #oldestSeen < :stale',
  )

/** Forgets it, once that look was let in. */
export const forgetWaiting = (
  table: Table,
  { tenant, agent }: AgentName,
  since: number,
): Promise<Written<Calls>> =>
  update<Calls>(
    table,
    agentCallsKey(tenant, agent),
    'REMOVE #oldest, #oldestSeen',
    { since },
    '#oldest = :since',
  )
