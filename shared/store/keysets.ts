// The item `keys` of an agent: its last good key set and who may fetch next. Settles which instance fetches; fetches nothing.
import { agentGroup, agentKeysKey, slotOf } from './keys.ts'
import { get, put, type Table, update, type Written } from './table.ts'

export type AgentName = { tenant: string; agent: string }

/** What is remembered of one key set URL. Times are ms since 1970. */
export type StoredKeys = {
  url: string
  /** Start of the last fetch; it names that fetch. */
  leasedAt: number
  /** Before that nobody fetches again. */
  nextFetch: number
  /** End of the last fetch that ended, and how many have failed since the last good one. */
  settledAt: number
  failures: number
  /** Why the last fetch failed. */
  fault?: string
  /** The last good set: usable keys as JWKS text, and until when it is fresh. */
  keys?: string
  freshUntil?: number
  /** What the owner should be told of the last set that was fetched, good or not. */
  flags?: string[]
  /** What in it everybody can sign with, since when, and the one of these times that the tenant was told of. */
  alarm?: string
  alarmSince?: number
  alarmTold?: number
}

/** The good outcome of a fetch. */
export type FetchedKeys = {
  keys: string
  flags: string[]
  settledAt: number
  freshUntil: number
  nextFetch: number
}

/** The bad outcome of a fetch. */
export type FailedFetch = {
  fault: string
  failures: number
  settledAt: number
  nextFetch: number
  /** What is wrong with the members of a set that was fetched and is of no use. */
  flags?: string[]
}

/** Items of agents that were deleted, or that are never pushed to again, go by themselves. */
const keptMs = 4 * 24 * 60 * 60 * 1000

const ttlOf = (nowMs: number): number => Math.ceil((nowMs + keptMs) / 1000)

const loadKeySet = (table: Table, { tenant, agent }: AgentName): Promise<StoredKeys | undefined> =>
  get<StoredKeys>(table, agentKeysKey(tenant, agent))

/**
 * Takes the right to fetch: of all instances one gets it, and nobody else until `nextFetch`, which its end puts off.
 * An item about another URL is replaced, for the agent's rule has changed.
 * @returns on refusal, what stands: perhaps another instance's newer set
 */
async function leaseKeyFetch(
  table: Table,
  { tenant, agent }: AgentName,
  url: string,
  nowMs: number,
  nextFetch: number,
): Promise<Written<StoredKeys>> {
  const key = agentKeysKey(tenant, agent)
  const leased = await update<StoredKeys>(
    table,
    key,
    'SET #leasedAt = :now, #nextFetch = :next, #ttl = :ttl',
    { now: nowMs, next: nextFetch, ttl: ttlOf(nowMs), url },
    '#url = :url AND #nextFetch <= :now',
  )
  if (leased.ok || leased.old?.url === url) return leased
  const fresh: StoredKeys = { url, leasedAt: nowMs, nextFetch, settledAt: 0, failures: 0 }
  const taken = await put<StoredKeys>(
    table,
    { ...key, ...fresh, ttl: ttlOf(nowMs) },
    'attribute_not_exists(pk) OR #url <> :url',
    { url },
  )
  return taken.ok ? { ok: true, item: taken.item ?? fresh } : taken
}

/** Sets that live shorter are fetched when they are needed: keeping them fresh would be a fetch a minute. */
const shortestAheadMs = 5 * 60 * 1000
/** How long before its end a set is fetched again. */
const beforeEndMs = 90 * 1000

/** Its timer, by which tick has the set fetched again before a push has to wait for that. */
function timerOf(
  table: Table,
  of: AgentName,
  { settledAt, freshUntil }: { settledAt: number; freshUntil: number },
) {
  if (freshUntil - settledAt < shortestAheadMs) return undefined
  return { ...slotFor(table, of), due: freshUntil - beforeEndMs }
}

const slotFor = (table: Table, { tenant, agent }: AgentName) => ({
  slot: slotOf(agentKeysKey(tenant, agent).pk, table.shards),
  holds: 0,
  group: agentGroup(tenant, agent),
})

const timerNames = '#slot, #due, #holds, #group'
const alarmNames = '#alarm, #alarmSince'

/** Takes the timer off: nobody pushes any more, so the next push may wait for a fetch. */
export const restKeySet = (table: Table, { tenant, agent }: AgentName) =>
  update<StoredKeys>(
    table,
    agentKeysKey(tenant, agent),
    `REMOVE ${timerNames}`,
    {},
    'attribute_exists(#slot)',
  )

/** What everybody can sign with. Its owner is told, whatever else the set holds. */
const alarming = new Set(['private_key_published', 'symmetric_key_published'])

/** What the owner must be told of these flags, and since when it is so: the same words again are no news. */
function alarmIn(leased: StoredKeys, flags: string[], at: number) {
  const alarm = flags
    .filter(flag => alarming.has(flag))
    .sort()
    .join(' ')
  if (alarm === '') return undefined
  return { alarm, alarmSince: (alarm === leased.alarm ? leased.alarmSince : undefined) ?? at }
}

/** An alarm that nobody told yet is due at once; receive, which may send no wakes, leaves it to tick that way. */
const owedTimer = (
  table: Table,
  { tenant, agent }: AgentName,
  leased: StoredKeys,
  alarm: Alarm,
  at: number,
) =>
  alarm === undefined || alarm.alarmSince === leased.alarmTold
    ? undefined
    : { ...slotFor(table, { tenant, agent }), due: at }

type Alarm = ReturnType<typeof alarmIn>

const setting = (values: object): string =>
  `SET ${Object.keys(values)
    .map(name => `#${name} = :${name}`)
    .join(', ')}`

/** Records a good fetch, unless a later one has been leased. */
const saveKeySet = (
  table: Table,
  of: AgentName,
  leased: StoredKeys,
  fetched: FetchedKeys,
): Promise<Written<StoredKeys>> => {
  const { flags, settledAt } = fetched
  const alarm = alarmIn(leased, flags, settledAt)
  const timer = owedTimer(table, of, leased, alarm, settledAt) ?? timerOf(table, of, fetched)
  const saved = { ...fetched, ...timer, ...alarm, failures: 0, ttl: ttlOf(settledAt) }
  return update<StoredKeys>(
    table,
    agentKeysKey(of.tenant, of.agent),
    [
      `${setting(saved)} REMOVE #fault`,
      ...(timer === undefined ? [timerNames] : []),
      ...(alarm === undefined ? [alarmNames] : []),
    ].join(', '),
    { ...saved, url: leased.url, leasedAt: leased.leasedAt },
    '#url = :url AND #leasedAt = :leasedAt',
  )
}

/** Records a failed fetch, unless a later one has been leased; the last good set stays, with what was told of it. */
const saveKeyFault = (
  table: Table,
  of: AgentName,
  leased: StoredKeys,
  failed: FailedFetch,
): Promise<Written<StoredKeys>> => {
  const { flags, settledAt } = failed
  const alarm = alarmIn(leased, flags ?? [], settledAt)
  const saved = { ...failed, ...owedTimer(table, of, leased, alarm, settledAt), ...alarm }
  // Of a host that gave no set nothing new is known.
  const mended = flags !== undefined && alarm === undefined
  return update<StoredKeys>(
    table,
    agentKeysKey(of.tenant, of.agent),
    `${setting(saved)}${mended ? ` REMOVE ${alarmNames}` : ''}`,
    { ...saved, url: leased.url, leasedAt: leased.leasedAt },
    '#url = :url AND #leasedAt = :leasedAt',
  )
}

/** The alarm of a key set that nobody told yet: since when it is so, and the words. */
export const owedAlarm = ({ alarm, alarmSince, alarmTold }: StoredKeys) =>
  alarm === undefined || alarmSince === undefined || alarmSince === alarmTold
    ? undefined
    : { flags: alarm, since: alarmSince }

/**
 * Marks an alarm as told, unless another one rose meanwhile, and gives the timer back to keeping the set fresh. While the
 * set that is served gave no usable key, the timer stays: the last good one runs out.
 */
export function toldAlarm(table: Table, of: AgentName, keys: StoredKeys, since: number) {
  const { settledAt, freshUntil = 0, failures } = keys
  const timer = timerOf(table, of, { settledAt, freshUntil })
  const saved = { alarmTold: since, ...timer }
  return update<StoredKeys>(
    table,
    agentKeysKey(of.tenant, of.agent),
    `${setting(saved)}${timer === undefined && failures === 0 ? ` REMOVE ${timerNames}` : ''}`,
    { ...saved, since },
    '#alarmSince = :since',
  )
}

/** The four steps that the memory of key sets needs; tests hand in a store without a table. */
export type KeyStore = {
  load: (of: AgentName) => Promise<StoredKeys | undefined>
  lease: (of: AgentName, url: string, nowMs: number, nextFetch: number) => Promise<Written<StoredKeys>>
  save: (of: AgentName, leased: StoredKeys, fetched: FetchedKeys) => Promise<unknown>
  fail: (of: AgentName, leased: StoredKeys, failed: FailedFetch) => Promise<unknown>
  /** The same, with calls that end when the signal comes. */
  until: (signal: AbortSignal) => KeyStore
}

export const keyStore = (table: Table): KeyStore => ({
  load: of => loadKeySet(table, of),
  lease: (of, url, nowMs, nextFetch) => leaseKeyFetch(table, of, url, nowMs, nextFetch),
  save: (of, leased, fetched) => saveKeySet(table, of, leased, fetched),
  fail: (of, leased, failed) => saveKeyFault(table, of, leased, failed),
  until: signal => keyStore({ ...table, signal }),
})
