// Reaches into dynalite's own modules: opens its store and runs its actions, each write as one batch. Touches no socket.
import { createRequire } from 'node:module'
import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import { isRecord } from './wire.ts'

/** An item on the wire; binary values are base64 there. */
export type Item = Record<string, AttributeValue>

type Callback<T> = (error: unknown, value?: T) => void
type Write = { type: 'put'; key: string; value: Item } | { type: 'del'; key: string }
type SubDb = {
  get: (key: string, done: Callback<Item>) => void
  put: (key: string, value: Item, done: Callback<void>) => void
  del: (key: string, done: Callback<void>) => void
}
type Range = { gt: string; lt: string; limit: number }
type Store = {
  db: {
    open: () => Promise<void>
    close: () => Promise<void>
    batch: (writes: Write[], done: Callback<void>) => void
    iterator: (range: Range) => { all: () => Promise<[string, Item][]> }
  }
  getItemDb: (table: string) => SubDb
  getIndexDb: (kind: string, table: string, index: string) => SubDb
}
type Rules = {
  types: Record<string, unknown>
  custom?: (data: Record<string, unknown>, store: Store) => string | undefined
}
type Action = (store: Store, data: Record<string, unknown>, done: Callback<Record<string, unknown>>) => void

const require = createRequire(import.meta.url)
const db: {
  create: (options: Record<string, unknown>) => Store
  itemSize: (item: Item) => number
} = require('dynalite/db/index.js')
const validations: {
  checkTypes: (data: Record<string, unknown>, types: Rules['types']) => Record<string, unknown>
  checkValidations: (
    data: Record<string, unknown>,
    types: Rules['types'],
    custom: Rules['custom'],
    store: Store,
  ) => void
} = require('dynalite/validations/index.js')

const operations = [
  'CreateTable',
  'DescribeTable',
  'GetItem',
  'PutItem',
  'UpdateItem',
  'DeleteItem',
  'Query',
] as const
export type Operation = (typeof operations)[number]

const loaded = new Map(
  operations.map(operation => {
    const file = `${operation.charAt(0).toLowerCase()}${operation.slice(1)}.js`
    const action: Action = require(`dynalite/actions/${file}`)
    const rules: Rules = require(`dynalite/validations/${file}`)
    return [operation, { action, rules }] as const
  }),
)

/** What an action did, beyond its answer. */
export type Effect = {
  answer: Record<string, unknown>
  /** The item that a write found, read under the same lock as its condition. */
  old: Item | undefined
  /** Write units of the index entries that changed, by index. */
  indexUnits: Map<string, number>
}

/** A failed action: `body` is the exception as DynamoDB words it. */
export type Failure = { body: Record<string, unknown>; statusCode: number; old: Item | undefined }

export type Dynalite = {
  run: (operation: Operation, input: Record<string, unknown>) => Promise<Effect | Failure>
  /** One page of a table's items in storage order, with the place to go on from. */
  page: (table: string, after: string | undefined, limit: number) => Promise<[string, Item][]>
  close: () => Promise<void>
}

/**
 * Opens a store.
 * @param path folder of the LevelDB files; in memory without one
 * @throws the store's error if another process holds the folder (`cause.code` is `LEVEL_LOCKED`)
 */
export async function openDynalite(path?: string): Promise<Dynalite> {
  const instant = { createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 }
  const store = db.create(path === undefined ? instant : { ...instant, path })
  await store.db.open()
  return {
    run: (operation, input) => run(store, operation, input),
    page: (table, after, limit) => {
      const prefix = `item-${table}~`
      return store.db.iterator({ gt: after ?? prefix, lt: `${prefix}\u00ff`, limit }).all()
    },
    close: () => store.db.close(),
  }
}

async function run(
  store: Store,
  operation: Operation,
  input: Record<string, unknown>,
): Promise<Effect | Failure> {
  const entry = loaded.get(operation)
  if (entry === undefined) throw new Error(`${operation} is not loaded`)
  const watched = watch(store)
  try {
    const data = validations.checkTypes(input, entry.rules.types)
    validations.checkValidations(data, entry.rules.types, entry.rules.custom, store)
    const view = operation === 'Query' ? store : watched.store
    const answer = await new Promise<Record<string, unknown>>((resolve, reject) =>
      entry.action(view, data, (error, value) => (error ? reject(error) : resolve(value ?? {}))),
    )
    return { answer, old: watched.old(), indexUnits: watched.indexUnits() }
  } catch (error) {
    if (!isRefusal(error)) throw error
    return { body: error.body, statusCode: error.statusCode, old: watched.old() }
  }
}

const isRefusal = (error: unknown): error is { body: Record<string, unknown>; statusCode: number } =>
  error instanceof Error && 'body' in error && isRecord(error.body) && 'statusCode' in error

/**
 * A view of the store for one action. It remembers the item that the action found (dynalite reads it under the
 * key's lock, so it is the very item that the condition judged) and writes item and index entries in one batch,
 * so that a kill cannot part them.
 */
function watch(store: Store) {
  let old: Item | undefined
  const entries: { index: string; write: Write }[] = []
  const commit = (write: Write, done: Callback<void>) =>
    store.db.batch([...entries.map(entry => entry.write), write], done)
  const view: Store = {
    ...store,
    getItemDb: table => {
      const real = store.getItemDb(table)
      const at = (key: string) => `item-${table}~${key}`
      return {
        ...real,
        get: (key, done) =>
          real.get(key, (error, item) => {
            old = item
            done(error, item)
          }),
        put: (key, value, done) => commit({ type: 'put', key: at(key), value }, done),
        del: (key, done) => commit({ type: 'del', key: at(key) }, done),
      }
    },
    getIndexDb: (kind, table, index) => {
      const real = store.getIndexDb(kind, table, index)
      const at = (key: string) => `index-${kind.toLowerCase()}~${table}~${index}~${key}`
      const note = (write: Write, done: Callback<void>) => {
        entries.push({ index, write })
        done(null)
      }
      return {
        ...real,
        put: (key, value, done) => note({ type: 'put', key: at(key), value }, done),
        del: (key, done) => note({ type: 'del', key: at(key) }, done),
      }
    },
  }
  return { store: view, old: () => old, indexUnits: () => countIndexUnits(entries, old) }
}

/** An entry that moves is a deletion and a put; one whose projected attributes stay the same costs nothing. */
function countIndexUnits(
  entries: { index: string; write: Write }[],
  old: Item | undefined,
): Map<string, number> {
  const units = new Map<string, number>()
  for (const { index, write } of entries) {
    const moved = entries.some(other => other.index === index && other.write.type === 'del')
    const same =
      write.type === 'put' &&
      !moved &&
      old !== undefined &&
      Object.keys(write.value).every(name => JSON.stringify(write.value[name]) === JSON.stringify(old[name]))
    const size = write.type === 'put' ? db.itemSize(present(write.value)) : 1
    if (!same) units.set(index, (units.get(index) ?? 0) + Math.max(1, Math.ceil(size / 1024)))
  }
  return units
}

const present = (item: Item): Item =>
  Object.fromEntries(Object.entries(item).filter(([, value]) => value !== undefined))
