// What a target's gate decides, case by case: who gets in and how, what a failure does, and for whom the newest wake speaks.
import { describe, expect, test } from 'vitest'
import { limits as stated } from '../../shared/limits.ts'
import {
  type Consequence,
  consequenceOf,
  givesUpMs,
  groupsOf,
  isCrowded,
  isOutage,
  paceMs,
  pauseMs,
  pausesAfter,
  turnMs,
  type Way,
  wayIn,
} from '../../shared/pausing.ts'
import type { Gate } from '../../shared/telling.ts'
import { hour, minute, now, second } from '../support/watches.ts'

const gateWith = (more: Partial<Gate> = {}): Gate => ({ generation: 1, slots: {}, ...more })

/** Slots held for another second. */
const held = (...slots: number[]): Gate['slots'] =>
  Object.fromEntries(slots.map(slot => [slot, now + second]))

const limits = { generation: 1, maxConcurrency: 3 }

describe('a wake gets in', () => {
  test.each<[what: string, gate: Gate | undefined, way: Way]>([
    ['by a slot of a gate that nobody knows', undefined, { kind: 'slot', slot: 1, pace: undefined }],
    ['by the slot that is free', gateWith({ slots: held(0, 1) }), { kind: 'slot', slot: 2, pace: undefined }],
    [
      'by a slot whose holder had its time',
      gateWith({ slots: { ...held(0, 2), 1: now } }),
      { kind: 'slot', slot: 1, pace: undefined },
    ],
    ['not while all slots are held', gateWith({ slots: held(0, 1, 2) }), { kind: 'full', waitMs: 0 }],
    ['not while it is paused', gateWith({ pausedUntil: now + 1 }), { kind: 'paused' }],
    ['as the probe once the pause is over', gateWith({ pausedUntil: now }), { kind: 'probe', seen: now }],
    [
      'by a new gate if the target was put anew',
      gateWith({ generation: 0, pausedUntil: now + 1 }),
      { kind: 'renew' },
    ],
    [
      'later if it was put anew since it was read',
      gateWith({ generation: 2 }),
      { kind: 'full', waitMs: second },
    ],
  ])('%s', (_what, gate, way) => {
    expect(wayIn(gate, limits, now, 0.5)).toEqual(way)
  })

  test('as the probe, before others may, if it was sent for that', () => {
    const gate = gateWith({ pausedUntil: now + 1, handed: 'wk_1' })
    expect(wayIn(gate, limits, now, 0, 'wk_1')).toEqual({ kind: 'probe', seen: now + 1 })
    expect(wayIn(gate, limits, now, 0, 'wk_2')).toEqual({ kind: 'paused' })
  })

  test.each<[free: number | undefined, way: Way['kind']]>([
    [undefined, 'slot'],
    [now, 'slot'],
    [now + 167, 'slot'],
    [now + 168, 'full'],
  ])('at seven a second, the next being free at %s: %s', (free, way) => {
    const gate = gateWith(free === undefined ? {} : { free })
    expect(wayIn(gate, { ...limits, ratePerSecond: 7 }, now, 0)).toMatchObject({ kind: way })
  })

  test.each([1, 2, 3, 4, 10, 99, 1000])(
    'so that no more than %i begin in any second, and no fewer than half of that while more wait',
    rate => {
      const begun: number[] = []
      let free: number | undefined
      // A second's quiet lets as many come at once as ever do.
      for (let at = now; at < now + 4 * second; at += at === now + second ? second : 1)
        for (;;) {
          const way = wayIn(gateWith({ free: free ?? 0 }), { generation: 1, ratePerSecond: rate }, at, 0)
          if (way.kind !== 'slot' || way.pace === undefined) break
          free = Math.max(way.pace, at) + paceMs(rate)
          begun.push(at)
        }
      for (const [index, from] of begun.entries())
        expect(begun.slice(index).filter(at => at < from + second).length).toBeLessThanOrEqual(rate)
      expect(begun.length).toBeGreaterThanOrEqual((3 * rate) / 2)
    },
  )
})

test('a slot is given back at once only while more than half are held', () => {
  const crowded = (...slots: number[]) =>
    isCrowded(gateWith({ slots: held(...slots) }), { generation: 1 }, now)
  expect(stated.attemptsAtTarget).toBe(10)
  expect([crowded(0, 1, 2, 3, 4), crowded(0, 1, 2, 3, 4, 5)]).toEqual([false, true])
})

describe('a failure', () => {
  const usual = { probe: false, wrong: false, wishMs: 0 }
  const ago = (ms: number) => ({ failingSince: now - ms })

  test.each<[what: string, gate: Partial<Gate>, failed: Partial<typeof usual>, consequence: Consequence]>([
    ['alone does nothing', { failures: pausesAfter - 1 }, {}, { kind: 'none' }],
    ['pauses as the tenth', { failures: pausesAfter }, {}, { kind: 'pause', ms: 30 * second }],
    [
      'of a probe pauses twice as long',
      { failures: 3, pauses: 1 },
      { probe: true },
      { kind: 'pause', ms: minute },
    ],
    [
      'of a wrong address pauses at once',
      { failures: 1 },
      { wrong: true },
      { kind: 'pause', ms: 30 * second },
    ],
    [
      'with a wish pauses for as long as asked',
      { failures: 1 },
      { wishMs: 7000 },
      { kind: 'pause', ms: 7000 },
    ],
    [
      'of a probe heeds the longer',
      { failures: 9 },
      { probe: true, wishMs: hour },
      { kind: 'pause', ms: hour },
    ],
    ['after five days gives up', { failures: 40, ...ago(givesUpMs) }, { probe: true }, { kind: 'giveUp' }],
    [
      'a second before does not',
      { failures: 40, ...ago(givesUpMs - second) },
      {},
      { kind: 'pause', ms: 30 * second },
    ],
    [
      'of a target that is seldom called does not',
      { failures: 9, ...ago(2 * givesUpMs) },
      {},
      { kind: 'none' },
    ],
  ])('%s', (_what, gate, failed, consequence) => {
    expect(consequenceOf(gateWith(gate), { ...usual, ...failed }, now, 0)).toEqual(consequence)
  })

  test('pauses for an hour at most, and never less than it says', () => {
    expect([0, 1, 2, 6, 7, 100].map(pauses => pauseMs(pauses, 0))).toEqual([
      ...[0.5, 1, 2, 32].map(minutes => minutes * minute),
      hour,
      hour,
    ])
    expect(pauseMs(0, 0.99)).toBeGreaterThan(30 * second)
  })

  test('is its owner’s business once it lasts, or the address is wrong', () => {
    expect(isOutage(gateWith({ failures: pausesAfter - 1 }))).toBe(false)
    expect(isOutage(gateWith({ failures: pausesAfter }))).toBe(true)
    expect(isOutage(gateWith({ failures: 1, wrong: true }))).toBe(true)
  })
})

test('a wake that finds no room waits longer each time, five minutes and a half of that at most', () => {
  expect([0, 1, 2, 20].map(turns => turnMs(turns, 0.5))).toEqual([2000, 4000, 8000, 5 * minute])
  expect(turnMs(20, 0.999)).toBeLessThan(7.5 * minute)
})

test('of those who wait the newest of each client speaks for the others', () => {
  const waiting = [
    { waiters: 'a', at: 1, id: 'x' },
    { waiters: 'b', at: 2, id: 'x' },
    { waiters: 'a', at: 3, id: 'x' },
    { waiters: 'a', at: 3, id: 'y' },
  ]
  expect(groupsOf(waiting)).toEqual([[waiting[3], waiting[2], waiting[0]], [waiting[1]]])
})
