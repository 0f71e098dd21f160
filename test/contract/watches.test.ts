// Watches in a real table: one look at a time has the lease, and the timer of an ended task stays for whoever joined meanwhile.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Transition, Watch } from '../../shared/model.ts'
import { writeStep } from '../../shared/steps.ts'
import { askCancel } from '../../shared/store/asked.ts'
import { publishedWatch, saveLook, saveTrouble } from '../../shared/store/looks.ts'
import { addTransition } from '../../shared/store/tails.ts'
import { dropWatch, getWatch, leaseWatch, openWatch, oweStep } from '../../shared/store/watches.ts'
import { pack, placeFor, unpack } from '../../shared/timeline.ts'
import { startTable, type TestTable } from '../support/table.ts'

const noon = Date.UTC(2026, 5, 15, 12)
const at = { now: noon, due: noon + 60_000 }

let ground: TestTable
let tasks = 0
let task = { tenant: 'acme', agent: 'a', principal: 'agent', taskId: '' }

beforeAll(async () => {
  ground = await startTable()
})

afterAll(() => ground.stop())

beforeEach(() => {
  task = { ...task, taskId: `task-${++tasks}` }
})

/** A watch that must be there. */
const there = (watch: Watch | undefined): Watch => {
  if (watch === undefined) throw new Error('There is no watch')
  return watch
}

const join = async (ref: string): Promise<Watch> => there(await openWatch(ground.table, task, at, ref))

const lease = (watch: Watch, now = noon): Promise<Watch | undefined> =>
  leaseWatch(ground.table, watch, { now, start: now, until: now + 32_000 })

test('of many who lease in the same millisecond one looks', async () => {
  const watch = await join('one')
  const leased = await Promise.all(Array.from({ length: 16 }, () => lease(watch)))
  expect(leased.filter(one => one !== undefined)).toHaveLength(1)
})

test('what a look gives up may be looked at again at once, and one that came later keeps its lease', async () => {
  const known = { digest: 'd', ring: [], rev: 1, changed: noon, woken: 1, looked: noon, lease: noon + 32_000 }
  for (const [ref, rev] of [
    ['one', 1],
    ['one', 0],
    [undefined, 1],
  ] as const) {
    task = { ...task, taskId: `${task.taskId}-${ref}-${rev}` }
    const first = there(await lease(there(await openWatch(ground.table, task, at, ref))))
    const leased = there(await saveLook(ground.table, first, { ...known, rev }))
    await dropWatch(ground.table, leased, noon)
    const left = there(await getWatch(ground.table, leased.key))
    expect(left.lease).toBe(0)
    await lease(left, noon + 2000)
    await dropWatch(ground.table, leased, noon)
    expect((await getWatch(ground.table, leased.key))?.lease).toBe(noon + 34_000)
  }
})

test('who lost the lease saves nothing', async () => {
  const first = there(await lease(await join('one')))
  const second = there(await lease(first, noon + 40_000))
  const seen = { digest: 'd', ring: [], rev: 1, changed: noon, woken: 0, looked: noon, lease: 0 }
  expect(await saveLook(ground.table, first, seen)).toBeUndefined()
  expect(await saveLook(ground.table, second, seen)).toMatchObject({ rev: 1 })
})

test('the timer of an ended task goes when everybody was told, and stays for who joined meanwhile', async () => {
  const leased = there(await lease(await join('one')))
  await join('two')
  await publishedWatch(ground.table, leased, { told: ['one'], steps: [], over: true, now: noon })
  expect(await getWatch(ground.table, leased.key)).toMatchObject({ fresh: ['two'], due: at.due, lease: 0 })
  const again = there(await lease(there(await getWatch(ground.table, leased.key)), noon + 2000))
  await publishedWatch(ground.table, again, { told: ['two'], steps: [], over: true, now: noon })
  const ended = there(await getWatch(ground.table, leased.key))
  expect([ended.fresh, ended.due]).toEqual([[], undefined])
})

const seen = { digest: 'd', ring: [], rev: 1, changed: noon, woken: 1, looked: noon, lease: noon + 32_000 }

test('a step is owed by the very write that makes it true, and who lost the lease owes nothing', async () => {
  const first = there(await lease(await join('one')))
  const step = writeStep(first, 'task.orphaned', noon)
  const second = there(await lease(first, noon + 40_000))
  const fault = { trouble: 'not_found', troubleSince: noon, failures: 6 } as const
  expect(await saveTrouble(ground.table, first, fault, [step])).toBeUndefined()
  expect((await getWatch(ground.table, first.key))?.owed).toEqual([])
  // It is told under the lease, which goes on.
  expect(await saveTrouble(ground.table, second, fault, [step])).toMatchObject({
    owed: [step],
    lease: second.lease,
    trouble: 'not_found',
  })
  expect(await saveTrouble(ground.table, second, fault)).toMatchObject({ owed: [step], lease: 0 })
})

test('a cancellation goes with the look that sent it, and stays if it was asked for meanwhile', async () => {
  const cancel = { by: 'client', why: 'w', at: noon + 500 } as const
  const first = there(await lease(await join('one')))
  expect(await askCancel(ground.table, first.key, cancel)).toEqual(cancel)
  // Should its message be lost, the timer brings it.
  expect(await getWatch(ground.table, first.key)).toMatchObject({ cancel, due: noon + 60_500 })
  expect(await askCancel(ground.table, first.key, { ...cancel, why: 'again' })).toEqual(cancel)
  expect(await saveLook(ground.table, first, { ...seen, lease: 0 })).toMatchObject({ cancel })
  const second = there(await lease(there(await getWatch(ground.table, first.key)), noon + 2000))
  expect((await saveLook(ground.table, second, { ...seen, state: 'failed' }))?.cancel).toBeUndefined()
  expect(await askCancel(ground.table, first.key, cancel)).toBeUndefined()
})

test('of those who joined only who heard of a look is known by its save, and not who joined meanwhile', async () => {
  const leased = there(await lease(await join('one')))
  await join('two')
  const saved = there(await saveLook(ground.table, leased, seen, { told: ['one'] }))
  expect([saved.subs.toSorted(), saved.fresh]).toEqual([['one', 'two'], ['two']])
})

test('an ended task keeps its timer until what it owes was told, even what it came to owe meanwhile', async () => {
  const leased = there(await lease(await join('one')))
  const [told, later] = [
    writeStep(leased, 'task.disputed', noon),
    writeStep(leased, 'task.disputed', noon + 1),
  ]
  const saved = there(await saveLook(ground.table, leased, { ...seen, state: 'failed' }, { steps: [told] }))
  expect(saved.owed).toEqual([told])
  await oweStep(ground.table, saved.key, later, { due: noon + 1 })
  await publishedWatch(ground.table, saved, { told: ['one'], steps: [told], over: true, now: noon })
  const owing = there(await getWatch(ground.table, saved.key))
  expect(owing).toMatchObject({ owed: [later], fresh: [], due: at.due })
  const again = there(await lease(owing, noon + 2000))
  await publishedWatch(ground.table, again, { told: [], steps: [later], over: true, now: noon })
  const ended = there(await getWatch(ground.table, saved.key))
  expect([ended.owed, ended.due]).toEqual([[], undefined])
})

test('a step that comes when all is over gives the task a timer again, once however often it is owed', async () => {
  const leased = there(await lease(await join('one')))
  const saved = there(await saveLook(ground.table, leased, { ...seen, state: 'completed' }))
  await publishedWatch(ground.table, saved, { told: ['one'], steps: [], over: true, now: noon })
  const step = writeStep(saved, 'subscription.credentials_expired', noon)
  await oweStep(ground.table, saved.key, step, { due: noon + 5 })
  await oweStep(ground.table, saved.key, step, { due: noon + 9 })
  expect(await getWatch(ground.table, saved.key)).toMatchObject({ owed: [step], due: noon + 5 })
  expect(await oweStep(ground.table, 'nothing', step, { due: noon })).toMatchObject({ ok: false })
})

test('one pushed state is disputed once, told or not, however often the SDK asks', async () => {
  const { key } = await join('one')
  const dispute = (state: 'completed' | 'failed', when: number) =>
    oweStep(ground.table, key, writeStep({ rev: 1 }, 'task.disputed', when), { due: noon, disputed: [state] })
  ground.plan('UpdateItem', 'fail_after')
  expect(await dispute('completed', noon)).toMatchObject({ ok: true })
  const leased = there(await lease(there(await getWatch(ground.table, key))))
  await publishedWatch(ground.table, leased, { told: [], steps: leased.owed, over: false, now: noon })
  expect(await dispute('completed', noon + 1)).toMatchObject({ ok: false })
  expect(await dispute('failed', noon + 2)).toMatchObject({ ok: true })
  expect((await getWatch(ground.table, key))?.owed).toHaveLength(1)
})

test('what is added to the story while a look is under way stays, and is there once, however often the SDK asks', async () => {
  const note = (text: string): Transition => ({ at: noon, source: 'policy', rev: 1, note: text })
  const seen = { digest: 'd', ring: [], rev: 1, changed: noon, woken: 0, looked: noon, lease: 0 }
  const { key } = await join('one')
  ground.plan('UpdateItem', 'fail_after')
  expect(await addTransition(ground.table, key, note('before'))).toBe(true)
  const leased = there(await lease(there(await getWatch(ground.table, key))))
  expect(await addTransition(ground.table, key, note('meanwhile'))).toBe(true)
  const saved = there(
    await saveLook(ground.table, leased, { ...seen, trail: { gone: leased.tail?.length ?? 0 } }),
  )
  expect(saved.tail?.map(unpack)).toEqual([note('meanwhile')])
  const place = { at: 'end', text: pack(note('seen')) } as const
  ground.plan('UpdateItem', 'fail_after')
  const again = there(await saveLook(ground.table, saved, { ...seen, trail: { place } }))
  expect(again.tail?.map(unpack)).toEqual([note('meanwhile'), note('seen')])
  const folded = { at: 1, text: pack(note('folded')) }
  const { tail } = there(await saveLook(ground.table, again, { ...seen, trail: { place: folded } }))
  expect(tail?.map(unpack)).toEqual([note('meanwhile'), note('folded')])
})

test('what is added to a story is bounded, and needs a watch', async () => {
  const one: Transition = { at: noon, source: 'policy', rev: 1 }
  const { key } = await join('one')
  const added = []
  for (let at = 0; at < 20; at++)
    added.push(await addTransition(ground.table, key, { ...one, note: `${at}` }))
  expect(added.filter(Boolean)).toHaveLength(12)
  expect(await addTransition(ground.table, 'no-such-watch', one)).toBe(false)
})

test('a watch whose story waits is still one write unit', async () => {
  const uuid = '3f1d0a52-7c1e-4b43-9a1c-0d5a7b1f2e11'
  task = { ...task, taskId: uuid, agent: 'purchasing-agent', tenant: 'acme-production' }
  await join('x'.repeat(24))
  const leased = there(await lease(await join('y'.repeat(24))))
  const states = ['working', 'submitted'] as const
  let watch = leased
  for (let rev = 1; rev < 12; rev++) {
    const from = states[rev % 2] ?? 'working'
    const to = states[(rev + 1) % 2] ?? 'working'
    const step = {
      at: noon + rev,
      source: 'push',
      from,
      to,
      rev,
      delay: -1234,
      works: { count: 3, bytes: 123456 },
    } as const
    const place = placeFor(watch.tail ?? [], step)
    const hash = 'h'.repeat(24)
    const seen = {
      ...{
        digest: hash,
        ring: [hash, hash, hash, hash],
        rev,
        changed: noon,
        woken: 0,
        looked: noon,
        lease: 0,
      },
      ...{
        state: to,
        contextId: uuid,
        stamp: '2026-06-15T12:00:00.000000+00:00',
        works: hash.slice(0, 16),
        snap: 1,
      },
    }
    ground.units.length = 0
    watch = there(await saveLook(ground.table, watch, { ...seen, trail: { place } }))
    expect(ground.units).toEqual([1])
  }
})
