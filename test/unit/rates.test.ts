// Counting what comes how often: so many a second, a burst at once, and which pushes of an agent are a flood.
import { describe, expect, test } from 'vitest'
import { type Genuine, isFlood } from '../../shared/accepting.ts'
import { rates } from '../../shared/limits.ts'
import { createRates, type Rate } from '../../shared/rates.ts'

const rate: Rate = { perSecond: 10, burst: 20 }
const begin = 1_767_225_600_000

const count = (times: number, take: () => boolean): number =>
  Array.from({ length: times }, take).filter(Boolean).length

describe('a rate', () => {
  test('allows its burst at once, and then so many a second', () => {
    const { take } = createRates()
    expect(count(100, () => take('a', rate, begin))).toBe(20)
    expect(count(100, () => take('a', rate, begin + 1000))).toBe(10)
    expect(count(100, () => take('a', rate, begin + 60_000))).toBe(20)
  })

  test('counts each name for itself', () => {
    const { take } = createRates()
    count(100, () => take('a', rate, begin))
    expect(count(100, () => take('b', rate, begin))).toBe(20)
  })

  test('is not used up by what it refuses, or by being asked', () => {
    const { take, allows } = createRates()
    count(1000, () => take('a', rate, begin))
    count(1000, () => allows('a', rate, begin + 1000))
    expect(count(100, () => take('a', rate, begin + 1000))).toBe(10)
  })

  test('allows exactly what it would count', () => {
    const { take, allows } = createRates()
    for (let n = 0; n < 30; n++) expect(allows('a', rate, begin)).toBe(take('a', rate, begin))
  })

  test('forgets the longest untouched names, which only allows more', () => {
    const { take, allows } = createRates()
    count(20, () => take('busy', rate, begin))
    count(20, () => take('idle', rate, begin))
    for (let n = 0; n < 19_998; n++) take(`name ${n}`, rate, begin)
    take('busy', rate, begin + 100)
    for (let n = 0; n < 10; n++) take(`more ${n}`, rate, begin + 100)
    expect(allows('busy', rate, begin + 100)).toBe(false)
    expect(allows('idle', rate, begin + 100)).toBe(true)
  })
})

describe('a flood', () => {
  type Hook = Parameters<typeof isFlood>[2]
  const hook = (tenant: string, agent: string, ref: string): Hook => ({ sub: { tenant, agent, ref } })
  const push = (taskId: string, state?: 'working' | 'completed'): Genuine => ({
    proof: { ok: true, by: ['token'], replay: 'r', seenUntil: 0 },
    push: { kind: 'status', taskId, ...(state && { state }) },
  })
  const taken = (times: number, one: (n: number) => [Hook, Genuine]): number => {
    const counted = createRates()
    return count(
      times,
      next(n => !isFlood(counted, begin, ...one(n))),
    )
  }
  const next = <T>(of: (n: number) => T): (() => T) => {
    let n = 0
    return () => of(n++)
  }

  test.each<[what: string, most: number, one: (n: number) => [Hook, Genuine]]>([
    ['one task', rates.task.burst, () => [hook('t', 'a', 'h'), push('task')]],
    ['many tasks of one hook', rates.hook.burst, n => [hook('t', 'a', 'h'), push(`task ${n}`)]],
    ['many hooks of one agent', rates.agent.burst, n => [hook('t', 'a', `h ${n}`), push('task')]],
    ['many agents of one tenant', rates.tenant.burst, n => [hook('t', `a ${n}`, `h ${n}`), push('task')]],
  ])('of %s begins beyond its rate', (_what, most, one) => {
    expect(taken(most + 100, one)).toBe(most)
  })

  test('of many tenants is none', () => {
    expect(taken(5000, n => [hook(`t ${n}`, 'a', `h ${n}`), push('task')])).toBe(5000)
  })

  test('of noise leaves room for the news of its task', () => {
    const counted = createRates()
    const [whose, noise, news] = [hook('t', 'a', 'h'), push('task', 'working'), push('task', 'completed')]
    count(100, () => isFlood(counted, begin, whose, noise))
    expect(isFlood(counted, begin, whose, noise)).toBe(true)
    expect(isFlood(counted, begin, whose, news)).toBe(false)
  })
})
