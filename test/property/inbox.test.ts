// A reader that follows the inbox's cursor misses nothing and sees nothing twice, whatever writers do between its reads: overtake each other, repeat themselves, die.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { appendEntry, readInbox } from '../../shared/store/inbox.ts'
import type { InboxEntry } from '../../shared/telling.ts'
import { startTable, type TestTable } from '../support/table.ts'
import { takeTurns, type Worker } from '../support/turns.ts'

let here: TestTable
let enter: (work: () => Promise<void>) => Promise<Worker>

beforeAll(async () => {
  here = await startTable()
  enter = takeTurns(here.client)
})

afterAll(() => here.stop())

const tenant = 't'
const begin = Date.UTC(2026, 0, 1)
/** Functions that append live no longer. */
const functionMs = 30_000

type Turn =
  | { kind: 'write' | 'die'; who: number }
  | { kind: 'read'; limit: number }
  | { kind: 'pass'; milliseconds: number }
  /** The answer to the next write is lost, so that the SDK repeats it. */
  | { kind: 'lose'; operation: 'UpdateItem' | 'PutItem' }

const who = fc.nat({ max: 2 })
const of = <T extends Turn>(weight: number, shape: { [K in keyof T]: fc.Arbitrary<T[K]> }) => ({
  weight,
  arbitrary: fc.record(shape),
})

const turn: fc.Arbitrary<Turn> = fc.oneof(
  of(24, { kind: fc.constant('write' as const), who }),
  of(14, { kind: fc.constant('read' as const), limit: fc.integer({ min: 1, max: 4 }) }),
  of(2, { kind: fc.constant('die' as const), who }),
  of(6, { kind: fc.constant('pass' as const), milliseconds: fc.constantFrom(1000, 10_001, 10_001, 61_000) }),
  of(1, {
    kind: fc.constant('lose' as const),
    operation: fc.constantFrom('UpdateItem' as const, 'PutItem' as const),
  }),
)

/** `begun`: when the function was called that appends now. */
type Writer = { worker: Worker; begun: { at: number }; todo: string[] }

let clients = 0

/** One client's inbox with its writers and one reader, and a clock that the test moves. */
async function openInbox(work: string[][]) {
  const client = `client-${++clients}`
  const seen: InboxEntry[] = []
  const numbers = new Map<string, number[]>()
  let now = begin
  let limit = 1
  let over = false
  const write = async (ids: string[]): Promise<Writer> => {
    const todo = [...ids]
    const begun = { at: now }
    const worker = await enter(async () => {
      for (const id of ids) {
        begun.at = now
        const seq = await appendEntry(here.table, tenant, client, { ...entryOf(id), from: origin }, () => now)
        numbers.set(id, [...(numbers.get(id) ?? []), seq])
        if (todo.length > 1) todo.shift()
      }
    })
    return { worker, begun, todo }
  }
  const writers = await Promise.all(work.map(write))
  const reader = await enter(async () => {
    for (let after = 0; !over; ) {
      const { entries, next } = await readInbox(here.table, tenant, client, { after, limit, now })
      expect(next).toBeGreaterThanOrEqual(Math.max(after, ...entries.map(({ seq }) => seq)))
      seen.push(...entries)
      after = next
    }
  })
  /** A writer dies between two calls, or before it said that it was done: another begins again. */
  const die = async (writer: Writer): Promise<void> => {
    writers[writers.indexOf(writer)] = await write(writer.todo)
  }
  const at = (who: number): Writer | undefined => writers[who % writers.length]
  return {
    numbers,
    seen,
    write: async (who: number) => at(who)?.worker.step(),
    die: async (who: number) => {
      const writer = at(who)
      if (writer !== undefined) await die(writer)
    },
    read: (most: number) => {
      limit = most
      return reader.step()
    },
    pass: async (milliseconds: number) => {
      now += milliseconds
      for (const writer of writers)
        if (writer.begun.at + functionMs < now && !writer.worker.ended()) await die(writer)
    },
    /** Everybody comes to an end, the reader last. */
    finish: async () => {
      for (const { worker } of writers) while (!worker.ended()) await worker.step()
      limit = 1000
      now += 10_001
      for (let turn = 0; turn < 60 && seen.length < work.flat().length; turn++) await reader.step()
      // Twice nothing more.
      for (let turn = 0; turn < 4; turn++) await reader.step()
      over = true
      while (!reader.ended()) await reader.step()
    },
    readAll: async () =>
      (await readInbox(here.table, tenant, client, { after: 0, limit: 1000, now })).entries,
  }
}

const origin = { watch: 'w', name: 1, sub: 's' }
const entryOf = (id: string): Omit<InboxEntry, 'seq'> => ({
  id,
  type: 'task.completed',
  agent: 'a',
  taskId: id,
  state: 'completed',
  rev: 1,
  at: begin,
  subscription: 's',
})

let loss: { operation: string; after: number } | undefined

/** Loses one answer at a time: two in a row would fail the call, which is a death of its own. */
function lose(operation: string): void {
  if (loss !== undefined && !here.calls.slice(loss.after).includes(loss.operation)) return
  loss = { operation, after: here.calls.length }
  here.plan(operation, 'fail_after')
}

type Inbox = Awaited<ReturnType<typeof openInbox>>

async function take(inbox: Inbox, turn: Turn): Promise<void> {
  switch (turn.kind) {
    case 'write':
      return inbox.write(turn.who)
    case 'die':
      return inbox.die(turn.who)
    case 'read':
      return inbox.read(turn.limit)
    case 'lose':
      return lose(turn.operation)
    case 'pass':
      return inbox.pass(turn.milliseconds)
  }
}

const work = fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 2, maxLength: 3 })

test('every entry is read once, in order, and none comes at or below a cursor that was given out', async () => {
  await fc.assert(
    fc.asyncProperty(
      work,
      fc.array(turn, { minLength: 15, maxLength: 45, size: 'max' }),
      async (counts, turns) => {
        const ids = counts.map((count, who) => Array.from({ length: count }, (_, at) => `${who}.${at}`))
        const inbox = await openInbox(ids)
        for (const turn of turns) await take(inbox, turn)
        await inbox.finish()
        expect(inbox.seen.map(({ id }) => id).toSorted()).toEqual(ids.flat().toSorted())
        expect(inbox.seen.map(({ seq }) => seq)).toEqual(
          inbox.seen.map(({ seq }) => seq).toSorted((a, b) => a - b),
        )
        for (const { id, seq } of inbox.seen) expect(new Set(inbox.numbers.get(id))).toEqual(new Set([seq]))
        expect(await inbox.readAll()).toEqual(inbox.seen)
      },
    ),
    { numRuns: Number(process.env.INBOX_RUNS ?? 60) },
  )
})

/** Two writers: one has taken the first number but not its place, the other stands behind it. */
async function openGap(milliseconds: number) {
  const inbox = await openInbox([['slow'], ['quick']])
  for (let call = 0; call < 2; call++) await inbox.write(0)
  for (let call = 0; call < 3; call++) await inbox.write(1)
  await inbox.pass(milliseconds)
  // This read began before the time passed.
  await inbox.read(10)
  return inbox
}

const told = ({ seen }: Inbox) => seen.map(({ id, seq }) => `${seq} ${id}`)

test('a writer that comes after its place was closed takes another', async () => {
  const inbox = await openGap(10_001)
  for (let call = 0; call < 2; call++) await inbox.read(10)
  await inbox.write(0)
  await inbox.finish()
  expect(told(inbox)).toEqual(['2 quick', '3 slow'])
})

test('a place that is taken while it is being closed is not stepped over', async () => {
  const inbox = await openGap(10_001)
  await inbox.read(10)
  await inbox.write(0)
  await inbox.read(10)
  await inbox.finish()
  expect(told(inbox)).toEqual(['1 slow', '2 quick'])
})

test('a gap that a writer may still fill is not closed, and hides what is behind it', async () => {
  const inbox = await openGap(4000)
  for (let call = 0; call < 3; call++) await inbox.read(10)
  expect(told(inbox)).toEqual([])
  await inbox.write(0)
  await inbox.finish()
  expect(told(inbox)).toEqual(['1 slow', '2 quick'])
})

test('what a dead writer did not place is appended again, what it placed is not', async () => {
  const inbox = await openGap(5001)
  await inbox.die(0)
  await inbox.die(1)
  await inbox.finish()
  expect(told(inbox)).toEqual(['2 quick', '3 slow'])
})

test('an entry that is appended again after a death is shown at once', async () => {
  const inbox = await openInbox([['only']])
  for (let call = 0; call < 2; call++) await inbox.write(0)
  await inbox.pass(functionMs + 1)
  for (let call = 0; call < 3; call++) await inbox.write(0)
  for (let call = 0; call < 3; call++) await inbox.read(10)
  expect(told(inbox)).toEqual(['2 only'])
})

/** An entry, then so many others, each a second later than the one before. */
async function bury(client: string, others: number, betweenMs = 1000) {
  let now = begin
  const append = (id: string, at = begin) =>
    appendEntry(here.table, tenant, client, { ...entryOf(id), at, from: origin }, () => now)
  const first = await append('first')
  for (let at = 0; at < others; at++) {
    now += betweenMs
    await append(`other ${at}`, now)
  }
  return { append, first }
}

const queries = () => here.calls.filter(name => name === 'Query').length

test('an entry that is appended again stands once, though many others came since', async () => {
  const { append, first } = await bury('buried', 60)
  expect(await append('first')).toBe(first)
})

test('one search is enough for an entry that tells what has just become so', async () => {
  const { append } = await bury('quick', 30, 1)
  const before = queries()
  await append('new', begin)
  expect(queries() - before).toBe(1)
})

test('no entry is searched for behind those that are older than what it tells', async () => {
  const { append } = await bury('slow', 30, 60_000)
  const before = queries()
  await append('late', begin + 28 * 60_000)
  expect(queries() - before).toBe(1)
})
