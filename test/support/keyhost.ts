// A key host, a store of key sets and instances that share them, with a clock that tests move. In memory, no network.
import { createKeySets, type KeySets } from '../../shared/keysets.ts'
import type { Step } from '../../shared/log.ts'
import { type Net, NetError, type NetFault, type NetRequest } from '../../shared/net.ts'
import type { KeyStore, StoredKeys } from '../../shared/store/keysets.ts'
import type { KeyAnswer } from '../../shared/verify.ts'

export const jwksUrl = 'https://agent.example/.well-known/jwks.json'
export const agent = { tenant: 'acme', agent: 'a1' }

export type HostAnswer = {
  body?: string | Uint8Array
  status?: number
  headers?: Record<string, string>
  fault?: NetFault
  /** Holds the answer back until it resolves. */
  until?: Promise<unknown>
}

export type KeyHost = {
  answer: (answer: HostAnswer) => void
  requests: NetRequest[]
  /** Store calls by name. */
  calls: string[]
  /** Lets the store fail. */
  breakStore: (broken: boolean) => void
  /** Holds the store's calls of one name back until it resolves. */
  holdStore: (step: string, until: Promise<unknown>) => void
  stored: () => StoredKeys | undefined
  now: () => number
  pass: (ms: number) => void
  /** Work that was begun and has not ended. */
  open: () => number
  steps: Step[]
  instance: () => KeySets
}

export const setOf = (...members: unknown[]): string => JSON.stringify({ keys: members })

/** Lets everything that waits for nothing but its turn come to an end. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}

/** What became of a question, in a word. */
export const answered = (answer: KeyAnswer): string =>
  answer.ok ? answer.keys.map(({ kid }) => kid).join() : answer.why

export function startKeyHost(first: HostAnswer): KeyHost {
  let at = 1_767_225_600_000
  let present = first
  let open = 0
  const requests: NetRequest[] = []
  const steps: Step[] = []
  const watched = async <T>(work: () => Promise<T>): Promise<T> => {
    open++
    try {
      return await work()
    } finally {
      open--
    }
  }
  const net: Net = {
    check: url => new URL(url),
    request: request =>
      watched(async () => {
        requests.push(request)
        const { body = '', status = 200, headers, fault, until } = present
        await until
        if (fault !== undefined) throw new NetError(fault, 'as told')
        return { status, headers: new Headers(headers), body: Buffer.from(body) }
      }),
  }
  const { store, ...control } = memoryStore(watched)
  return {
    answer: answer => {
      present = answer
    },
    requests,
    ...control,
    now: () => at,
    pass: ms => {
      at += ms
    },
    open: () => open,
    steps,
    instance: () =>
      createKeySets({
        net,
        store,
        now: () => at,
        log: step => steps.push(step),
        wait: async ms => {
          at += ms
          // Others have their turn, as they would while this one waits.
          await turns()
        },
      }),
  }
}

/** The table's rules for this one item, without a table. */
function memoryStore(watched: <T>(work: () => Promise<T>) => Promise<T>) {
  let item: StoredKeys | undefined
  let broken = false
  const held = new Map<string, Promise<unknown>>()
  const calls: string[] = []
  const call = <T>(name: string, work: () => T): Promise<T> =>
    watched(async () => {
      calls.push(name)
      await held.get(name)
      if (broken) throw new Error('throttled')
      return work()
    })
  const merge = (leased: StoredKeys, changes: Partial<StoredKeys>): void => {
    if (item?.url === leased.url && item.leasedAt === leased.leasedAt) item = { ...item, ...changes }
  }
  const store: KeyStore = {
    load: () => call('load', () => item),
    lease: (_of, url, leasedAt, nextFetch) =>
      call('lease', () => {
        if (item?.url === url && item.nextFetch > leasedAt) return { ok: false, old: item }
        const kept = item?.url === url ? item : { url, settledAt: 0, failures: 0 }
        item = { ...kept, leasedAt, nextFetch }
        return { ok: true, item }
      }),
    save: (_of, leased, fetched) => call('save', () => merge(leased, { ...fetched, failures: 0 })),
    fail: (_of, leased, failed) => call('fail', () => merge(leased, failed)),
    until: signal => {
      const ended = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
      ended.catch(() => {})
      const ending = <T>(step: Promise<T>): Promise<T> => Promise.race([step, ended])
      return {
        load: of => ending(store.load(of)),
        lease: (of, url, at, next) => ending(store.lease(of, url, at, next)),
        save: (of, leased, fetched) => ending(store.save(of, leased, fetched)),
        fail: (of, leased, failed) => ending(store.fail(of, leased, failed)),
        until: store.until,
      }
    },
  }
  return {
    store,
    calls,
    stored: () => item,
    breakStore: (value: boolean) => {
      broken = value
    },
    holdStore: (step: string, until: Promise<unknown>) => {
      held.set(step, until)
    },
  }
}
