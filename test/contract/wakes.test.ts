// The record of a wake in a real table: of all who bring its message one has it in hand, and what was called back is still one wake.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { callBack, noteRetry, retriesOf } from '../../shared/store/retries.ts'
import { endWaiting, waitingFor } from '../../shared/store/waiting.ts'
import { leaseWake, recordWake } from '../../shared/store/wakes.ts'
import type { Wake } from '../../shared/telling.ts'
import { startTable, type TestTable } from '../support/table.ts'

let ground: TestTable
const now = Date.UTC(2026, 0, 1)
const until = now + 32_000
const target = { tenant: 't', target: 'phone' }

beforeAll(async () => {
  ground = await startTable()
})

afterAll(() => ground.stop())

const seed = (id: string): Wake => ({
  ...{ id, ...target, type: 'task.completed', at: now },
  ...{ status: 'pending', attempts: [], tries: 0, lease: 0 },
})

const lease = (id: string, at = now) =>
  leaseWake(ground.table, 'subject', id, { now: at, until: at + 32_000 }, seed(id))

test('case 91: of workers who bring the same message at once one has it, and after its success none', async () => {
  const brought = await Promise.all(Array.from({ length: 8 }, () => lease('one')))
  expect(brought.map(({ kind }) => kind).toSorted()).toEqual([...Array(7).fill('busy'), 'leased'])
  const mine = { ...seed('one'), lease: until }
  expect(await recordWake(ground.table, 'subject', 'one', mine, { status: 'delivered', tries: 1 })).toBe(true)
  expect(await lease('one', until + 1)).toEqual({ kind: 'done' })
})

test('a retry is called back once, unless it is under way, over or noted anew, and its pointer goes in any case', async () => {
  const next = now + 1_800_000
  const retry = (id: string) => ({ subject: 'subject', id, at: now, waiters: 'ann', next, noted: now })
  for (const id of ['waits', 'over', 'under', 'anew']) {
    await lease(id)
    const standing = { status: id === 'over' ? ('failed' as const) : ('pending' as const), tries: 3 }
    const mine = { ...seed(id), lease: until }
    await recordWake(ground.table, 'subject', id, mine, {
      ...standing,
      ...(id !== 'over' && { next }),
      parked: true,
    })
    await noteRetry(ground.table, target, retry(id))
  }
  await lease('under', next + 1)
  await noteRetry(ground.table, target, { ...retry('anew'), next: next + 1, noted: now + 1 })
  const { retries } = await retriesOf(ground.table, target, now + 1, 100)
  expect(retries.map(({ id }) => id).toSorted()).toEqual(['over', 'under', 'waits'])
  const twice = [...retries, retry('anew'), ...retries]
  const called = []
  for (const one of twice) called.push(await callBack(ground.table, target, one, next + 2))
  expect(called.flatMap(one => one?.id ?? []).toSorted()).toEqual(['anew', 'waits'])
  const { waiting } = await waitingFor(ground.table, target, 100)
  expect(waiting.map(({ id, waiters }) => [id, waiters]).toSorted()).toEqual([
    ['anew', 'ann'],
    ['waits', 'ann'],
  ])
  expect((await retriesOf(ground.table, target, now + 10, 100)).retries.map(({ id }) => id)).toEqual(['anew'])
  expect(await lease('waits', next + 3)).toMatchObject({ kind: 'leased', wake: { tries: 3 } })
})

test('a wake that was delivered ends those that waited before it was sent, and none that came later', async () => {
  const quiet = { tenant: 't', target: 'quiet' }
  for (const [id, waits] of Object.entries({ before: now - 1, amid: now, after: now + 1 })) {
    const wake = { ...seed(id), ...quiet }
    await leaseWake(ground.table, 'subject', id, { now, until }, wake)
    const standing = { status: 'pending', waiters: 'ann', waits } as const
    await recordWake(ground.table, 'subject', id, { ...wake, lease: until }, standing)
  }
  const { waiting } = await waitingFor(ground.table, quiet, 100)
  expect(waiting).toHaveLength(3)
  for (const one of waiting)
    expect(await endWaiting(ground.table, one, { status: 'superseded' }, now + 5, now)).toBe(
      one.id === 'before',
    )
  const left = await waitingFor(ground.table, quiet, 100)
  expect(left.waiting.map(({ id }) => id).toSorted()).toEqual(['after', 'amid'])
})
