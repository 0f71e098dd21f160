// A target's gate in a real table: however many come at once, no more get in than it allows, and a pause has one probe.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Entered, enter } from '../../shared/gate.ts'
import { probeMs, slotMs } from '../../shared/pausing.ts'
import { countFailure, endPause, getGate, pauseGate } from '../../shared/store/gates.ts'
import type { Target } from '../../shared/telling.ts'
import { startTable, type TestTable } from '../support/table.ts'

let ground: TestTable
let now = Date.UTC(2026, 0, 1)
let target: Target
let made = 0

beforeAll(async () => {
  ground = await startTable()
})

afterAll(() => ground.stop())

beforeEach(() => {
  target = {
    ...{
      tenant: 't',
      target: `target-${++made}`,
      url: 'https://x.example',
      secret: '',
      secretGeneration: 1,
      generation: 1,
    },
    ...{ status: 'active', createdAt: now },
  }
})

let draws = 0

const random = (length: number): Uint8Array => {
  draws += 37
  return new Uint8Array(length).fill(draws)
}

const world = () => ({ table: ground.table, now: () => now, random })

const crowd = (size: number): Promise<Entered[]> =>
  Promise.all(Array.from({ length: size }, () => enter(world(), target, 0)))

const kindsOf = (entered: Entered[]): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const { kind } of entered) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

const pause = (until: number) =>
  pauseGate(ground.table, target, 1, { until, pauses: 1, probe: undefined, asked: false, due: until })

test('of many who come at once no more get in than the target allows, each by a slot of its own', async () => {
  target.maxConcurrency = 3
  const inside = (await crowd(12)).filter(one => one.kind === 'inside')
  expect(inside.length).toBeLessThanOrEqual(3)
  await crowd(6)
  expect(kindsOf(await crowd(6))).toEqual({ full: 6 })
  expect(new Set(inside.map(({ by }) => JSON.stringify(by))).size).toBe(inside.length)
  now += slotMs
  expect(kindsOf(await crowd(1))).toEqual({ inside: 1 })
})

test('a usual day costs one write', async () => {
  const before = ground.calls.length
  await enter(world(), target, 0)
  expect(ground.calls.slice(before)).toEqual(['UpdateItem'])
})

test('at two a second no more begin, whoever asks', async () => {
  target.ratePerSecond = 2
  let begun = 0
  for (let tenth = 0; tenth < 30; tenth++) {
    const { inside = 0 } = kindsOf(await crowd(2))
    begun += inside
    now += 100
  }
  expect(begun).toBeGreaterThanOrEqual(6)
  expect(begun).toBeLessThanOrEqual(8)
})

test('while it is paused nobody gets in, and after that one as its probe', async () => {
  await crowd(1)
  await pause(now + 1000)
  expect(kindsOf(await crowd(4))).toEqual({ paused: 4 })
  now += 1000
  const [probe] = (await crowd(4)).filter(one => one.kind === 'inside')
  expect(probe).toMatchObject({ by: { probe: now + probeMs } })
  expect(kindsOf(await crowd(4))).toEqual({ paused: 4 })
  const spoke = { waiters: 'a', at: now, before: now }
  expect(await endPause(ground.table, target, now + probeMs, { now, due: now }, spoke)).toBe(true)
  expect(await getGate(ground.table, target)).toMatchObject({ resumedAt: now, spoke })
  expect(kindsOf(await crowd(1))).toEqual({ inside: 1 })
})

test('a probe that was never heard of again leaves the next one its turn', async () => {
  await crowd(1)
  await pause(now)
  await crowd(1)
  now += probeMs
  expect(kindsOf(await crowd(4))).toEqual({ inside: 1, paused: 3 })
})

test('a target that was put anew is called at once, and those who wait for it are looked after', async () => {
  await crowd(1)
  await pause(now + 60_000)
  target.generation = 2
  expect(kindsOf(await crowd(1))).toEqual({ inside: 1 })
  expect(await getGate(ground.table, target)).toMatchObject({ generation: 2, due: now, resumedAt: now })
})

test('a pause is begun once, however many failures come together', async () => {
  await crowd(1)
  expect(await Promise.all([pause(now + 1000), pause(now + 2000), pause(now + 3000)])).toHaveLength(3)
  const { pausedUntil = 0 } = (await getGate(ground.table, target)) ?? {}
  expect([1000, 2000, 3000]).toContain(pausedUntil - now)
  expect(await pause(now + 9000)).toBe(false)
})

test('a failure too long after the one before is the first of a new row, and those that come with it are in that row', async () => {
  await crowd(1)
  const fail = (since: number) =>
    countFailure(ground.table, target, 1, { now, reason: 'why', wrong: false, slot: undefined }, since)
  for (let failures = 1; failures <= 3; failures++) {
    expect(await fail(now)).toMatchObject({ ok: true, gate: { failures, failingSince: now } })
  }
  const begun = now
  now += 1000
  expect(await fail(begun)).toMatchObject({ ok: true, gate: { failures: 4, failingSince: begun } })
  now += 1000
  await Promise.all([fail(now), fail(now), fail(now)])
  expect(await getGate(ground.table, target)).toMatchObject({ failures: 3, failingSince: now })
  target.generation = 2
  await crowd(1)
  expect(await fail(now)).toMatchObject({ ok: false })
})
