// Keeps agents' published keys at hand: in memory, in the table, and fetched anew when they run out or do not fit. It judges no JWT.
import { pause } from './deadline.ts'
import { chooseKeys, type KeyFlag, type PublishedKey, readJwks } from './jwks.ts'
import { limits } from './limits.ts'
import type { Log } from './log.ts'
import { type Net, NetError } from './net.ts'
import type { AgentName, KeyStore, StoredKeys } from './store/keysets.ts'
import type { KeyAnswer } from './verify.ts'

export type KeySets = {
  /**
   * Keys of an agent that may have signed a JWT; see `KeysFor` in verify.ts. Everything it starts has ended when it answers.
   * `unavailable` only while the key host is failing or nothing is known of it.
   * @param signal when it comes, what is at hand has to do: whatever else hangs must not cost the push its turn
   */
  keysFor: (of: AgentName, jwksUrl: string, want: Wanted, signal?: AbortSignal) => Promise<KeyAnswer>
  /** Fetches a set that is missing or runs out within two minutes; for registration, and for the look that tick asks for. */
  refresh: (of: AgentName, jwksUrl: string) => Promise<KeyReport>
}

export type KeyReport =
  | { ok: true; keys: number; flags: string[]; freshUntil: number; fault?: string }
  | { ok: false; fault: string; flags: string[] }

type Wanted = { kid: string | undefined; alg: string; tried?: ReadonlySet<string> | undefined }

type Parts = {
  net: Net
  store: KeyStore
  now: () => number
  log: Log
  /** Waits in the middle of a request, for another instance that is fetching. */
  wait?: (ms: number) => Promise<unknown>
  signal?: AbortSignal
}

/** What one process remembers of one agent. */
type Entry = {
  of: AgentName
  url: string
  stored?: StoredKeys
  text?: string
  keys: PublishedKey[]
  flights: Map<string, Promise<void>>
}

const second = 1000
const minute = 60 * second
const day = 24 * 60 * minute

/** Two fetches for one agent are this far apart, whatever outsiders send. */
const allowanceMs = 30 * second
/** How long a set is fresh: what its host says, within these bounds. */
const shortestLifeMs = minute
const usualLifeMs = 10 * minute
const longestLifeMs = day
/** While the host is down, the last good set is used for so long after it ran out. */
const staleMs = day
/** Senders hang up after 5 s: a whole fetch must leave time for the rest of the request. */
const fetchMs = 2500
/** By then a fetch has told its end, or its holder is dead: a kill must not cost the agent its whole allowance. */
const leaseMs = fetchMs + second
const firstBackoffMs = 5 * second
const longestBackoffMs = 5 * minute
const aheadMs = 2 * minute
const pollMs = 250
const mostEntries = 1000

export function createKeySets(parts: Parts): KeySets {
  const entries = new Map<string, Entry>()
  const entryOf = (of: AgentName, url: string): Entry => {
    const name = `${of.tenant}\n${of.agent}`
    const known = entries.get(name)
    if (known?.url === url) return known
    // Only the two names: whatever else a caller's record holds must not reach the log.
    const named = { tenant: of.tenant, agent: of.agent }
    const entry: Entry = { of: named, url, keys: [], flights: new Map() }
    entries.delete(name)
    const [oldest] = entries.keys()
    if (entries.size >= mostEntries && oldest !== undefined) entries.delete(oldest)
    entries.set(name, entry)
    return entry
  }
  return {
    keysFor: (of, jwksUrl, want, signal) => {
      const hurried = signal === undefined ? parts : { ...parts, signal, store: parts.store.until(signal) }
      return findKeys(hurried, entryOf(of, jwksUrl), want)
    },
    refresh: (of, jwksUrl) => refreshEntry(parts, entryOf(of, jwksUrl)),
  }
}

async function findKeys(parts: Parts, entry: Entry, { kid, alg, tried }: Wanted): Promise<KeyAnswer> {
  const fitting = (): PublishedKey[] =>
    parts.now() < freshUntil(entry) + staleMs
      ? chooseKeys(entry.keys, kid, alg).filter(({ id }) => !tried?.has(id))
      : []
  const enough = (): boolean => fitting().length > 0 && parts.now() < freshUntil(entry)
  if (!enough() && mayAsk(parts, entry)) await once(entry, 'load', () => load(parts, entry))
  if (!enough() && mayAsk(parts, entry)) await once(entry, 'fetch', () => leaseAndFetch(parts, entry))
  if (fitting().length === 0 && isFetchedElsewhere(parts, entry))
    await once(entry, 'wait', () => waitForOther(parts, entry))
  const keys = fitting()
  if (keys.length > 0) return { ok: true, keys }
  return { ok: false, why: isKnownGood(parts, entry) ? 'no_key' : 'unavailable' }
}

async function refreshEntry(parts: Parts, entry: Entry): Promise<KeyReport> {
  await once(entry, 'load', () => load(parts, entry))
  if (parts.now() + aheadMs >= freshUntil(entry))
    await once(entry, 'fetch', () => leaseAndFetch(parts, entry))
  const { stored } = entry
  if (stored?.keys === undefined)
    return { ok: false, fault: stored?.fault ?? 'unavailable', flags: stored?.flags ?? [] }
  return {
    ok: true,
    keys: entry.keys.length,
    flags: stored.flags ?? [],
    freshUntil: freshUntil(entry),
    ...(stored.fault !== undefined && { fault: stored.fault }),
  }
}

const freshUntil = ({ stored }: Entry): number => stored?.freshUntil ?? 0

/** A fetch that never told its end; its holder may have been killed. */
const isUnsettled = ({ stored }: Entry): boolean => stored !== undefined && stored.settledAt < stored.leasedAt

const isFetchedElsewhere = ({ now }: Parts, entry: Entry): boolean =>
  isUnsettled(entry) && now() - (entry.stored?.leasedAt ?? 0) <= leaseMs

/** Whether the table may be asked. Within the allowance it has nothing new, so that forged pushes cost no read. */
const mayAsk = (parts: Parts, entry: Entry): boolean =>
  entry.stored === undefined || parts.now() >= entry.stored.nextFetch

/** True when the host answered the last time, so that a missing key is the JWT's fault. */
const isKnownGood = ({ now }: Parts, entry: Entry): boolean =>
  entry.stored !== undefined &&
  !isUnsettled(entry) &&
  entry.stored.failures === 0 &&
  now() < freshUntil(entry) + staleMs

/** Callers that need the same step share it, and each of them waits for its end. */
function once(entry: Entry, step: string, run: () => Promise<void>): Promise<void> {
  const flying = entry.flights.get(step)
  if (flying !== undefined) return flying
  const flight = run().finally(() => entry.flights.delete(step))
  entry.flights.set(step, flight)
  return flight
}

async function load(parts: Parts, entry: Entry): Promise<void> {
  adopt(entry, await fromStore(parts, entry, parts.store.load(entry.of)))
}

async function leaseAndFetch(parts: Parts, entry: Entry): Promise<void> {
  const { store, now } = parts
  const at = now()
  if (entry.stored !== undefined && at < entry.stored.nextFetch) return
  const lease = await fromStore(parts, entry, store.lease(entry.of, entry.url, at, at + leaseMs))
  if (lease === undefined) return
  if (!lease.ok || lease.item === undefined) return adopt(entry, lease.ok ? undefined : lease.old)
  const fetched = await fetchSet(parts, entry.url)
  const settledAt = now()
  if (fetched.ok) {
    const { text: keys, flags, lifeMs } = fetched
    const good = { keys, flags, settledAt, freshUntil: settledAt + lifeMs, nextFetch: at + allowanceMs }
    const { fault: _over, ...leased } = lease.item
    adopt(entry, { ...leased, ...good, failures: 0 })
    parts.log({ step: 'keys.fetched', ...entry.of, keys: entry.keys.length, flags })
    await fromStore(parts, entry, store.save(entry.of, lease.item, good))
  } else {
    const failures = lease.item.failures + 1
    const backoff = Math.min(firstBackoffMs * 2 ** (failures - 1), longestBackoffMs)
    const { fault, flags } = fetched
    const told = flags.length > 0 ? { flags } : {}
    const bad = { fault, failures, settledAt, nextFetch: settledAt + backoff, ...told }
    adopt(entry, { ...lease.item, ...bad })
    parts.log({ step: 'keys.fetch_failed', level: 'error', ...entry.of, fault, failures, ...told })
    await fromStore(parts, entry, store.fail(entry.of, lease.item, bad))
  }
}

async function waitForOther(parts: Parts, entry: Entry): Promise<void> {
  const wait = parts.wait ?? pause
  for (let tries = 0; tries < fetchMs / pollMs && isFetchedElsewhere(parts, entry); tries++) {
    await wait(pollMs)
    await load(parts, entry)
  }
}

/** Takes over what the table says about this URL. Keys that stayed the same stay the same objects, warm for the verifier. */
function adopt(entry: Entry, stored: StoredKeys | undefined): void {
  if (stored?.url !== entry.url) return
  entry.stored = stored
  if (stored.keys === undefined || stored.keys === entry.text) return
  const read = readJwks(Buffer.from(stored.keys))
  entry.keys = read.ok ? read.keys : []
  entry.text = stored.keys
}

/** The table is a help, not a condition: while it fails, what is in memory still serves. */
async function fromStore<T>(parts: Parts, entry: Entry, step: Promise<T>): Promise<T | undefined> {
  try {
    return await step
  } catch (error) {
    parts.log({ step: 'keys.store_failed', level: 'error', ...entry.of, error })
    return undefined
  }
}

type Fetched =
  | { ok: true; text: string; flags: KeyFlag[]; lifeMs: number }
  | { ok: false; fault: string; flags: KeyFlag[] }

/** One fetch. Only a 200 with at least one usable key is an answer; a redirect is none. */
async function fetchSet({ net, signal }: Parts, url: string): Promise<Fetched> {
  try {
    const reply = await net.request({
      ...{ url, ...(signal !== undefined && { signal }) },
      headers: { accept: 'application/jwk-set+json, application/json' },
      timeoutMs: fetchMs,
      maxBytes: limits.keySetBytes,
    })
    if (reply.status !== 200) return { ok: false, fault: `status_${reply.status}`, flags: [] }
    const read = readJwks(reply.body)
    if (!read.ok) return { ok: false, fault: read.why, flags: read.flags }
    return { ok: true, text: read.text, flags: read.flags, lifeMs: lifeOf(reply.headers) }
  } catch (error) {
    if (error instanceof NetError) return { ok: false, fault: error.fault, flags: [] }
    throw error
  }
}

/** How long a set is fresh by its headers (RFC 9111 section 5.2.2), within our bounds: `no-store` must not mean a fetch per push. */
function lifeOf(headers: Headers): number {
  const control = headers.get('cache-control')?.toLowerCase() ?? ''
  if (/\bno-(?:store|cache)\b/.test(control)) return shortestLifeMs
  const maxAge = /\bmax-age\s*=\s*"?(\d{1,10})/.exec(control)?.[1]
  if (maxAge === undefined) return usualLifeMs
  const age = Number(headers.get('age') ?? 0) || 0
  return Math.min(Math.max((Number(maxAge) - age) * second, shortestLifeMs), longestLifeMs)
}
