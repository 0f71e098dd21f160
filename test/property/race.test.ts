// Whatever order things happen in, and whoever dies on the way: the last state is told. A model of the trip under random schedules, and what each of its rules is for.
import { describe, expect, test } from 'vitest'
import { type Fault, judge, type Verdict } from '../support/race/judge.ts'
import { rules as all, type Rules } from '../support/race/rules.ts'
import { mild, type Options, rough, run } from '../support/race/run.ts'

// `RACE_RUNS=20000` tries more schedules, `RACE_SEED=7` tells the story of one.
const runs = Number(process.env.RACE_RUNS ?? 2000)
const told = process.env.RACE_SEED
const patient = { timeout: 30_000 + 20 * runs }

type Setting = Omit<Options, 'rules'> & { without?: (keyof Rules)[] }

const rulesWithout = (...off: (keyof Rules)[]): Rules => ({
  ...all,
  ...Object.fromEntries(off.map(rule => [rule, false])),
})

const verdictOf = (seed: number, { without = [], ...setting }: Setting): Verdict =>
  judge(run(seed, { ...setting, rules: rulesWithout(...without) }))

/** Seeds from 1 whose runs break a promise, each with what broke. */
function broken(count: number, setting: Setting, breaks: (verdict: Verdict) => string[]): string[] {
  const found: string[] = []
  for (let seed = 1; seed <= count; seed++) {
    const what = breaks(verdictOf(seed, setting))
    if (what.length > 0) found.push(`seed ${seed}: ${what.join(', ')}`)
  }
  return found
}

/** An agent that dates nothing, behind replicas: nobody can tell then which of two answers is the newer. */
const undecidable: Fault[] = ['two ids, undated']

const faultsOf = ({ faults }: Verdict): Fault[] => faults.filter(fault => !undecidable.includes(fault))

describe('with all rules', () => {
  test(
    'among deaths, doubles, lost answers, replicas and clocks half a second off, nothing is lost, told under two names or left over',
    patient,
    () => {
      expect(broken(runs, { odds: rough }, faultsOf)).toEqual([])
    },
  )

  test(
    'on a day without deaths every lasting state is told within half a minute of its push',
    patient,
    () => {
      const breaks = (verdict: Verdict) => [...faultsOf(verdict), ...(verdict.tardy ? ['tardy'] : [])]
      expect(broken(Math.ceil(runs / 3), { odds: mild }, breaks)).toEqual([])
    },
  )

  test('an agent that takes back thirty questions costs a bounded number of messages', () => {
    expect(broken(20, { odds: mild, pace: 'flapping' }, faultsOf)).toEqual([])
  })

  test.runIf(told)('the story of one seed', () => {
    const lines: string[] = []
    const note = (time: number, what: string) => lines.push(`${new Date(time).toISOString()} ${what}`)
    const odds = process.env.RACE_ODDS === 'mild' ? mild : rough
    const { world, kind } = run(Number(told), { odds, rules: all, note })
    for (const { n, at, look } of world.story.moments)
      lines.push(`${new Date(at).toISOString()} state ${n}: ${look}`)
    process.stdout.write(`${kind}\n${lines.sort().join('\n')}\n`)
  })
})

type Need = {
  rule: keyof Rules
  /** What breaks without it. */
  breaks: (Fault | 'tardy')[]
  setting: Setting
}

const lost: Fault[] = ['no entry', 'no hint']
const behindReplicas: Setting = { odds: { ...mild, replica: 0.5 }, pace: 'brisk', replicaMs: 5000 }

const needs: (Need & { name: string })[] = [
  {
    rule: 'completed',
    name: 'a push that is dropped because somebody merely started to look waits for the floor',
    breaks: ['late'],
    // Patience would hide it where the push named news.
    setting: { odds: { ...rough, replica: 0, outage: 0, kill: 0.04, lag: 0.3 }, without: ['patience'] },
  },
  {
    rule: 'queueFirst',
    name: 'a revision that is marked as published before its wakes are queued is lost in a crash',
    breaks: lost,
    setting: { odds: rough },
  },
  {
    rule: 'noticeTimers',
    name: 'a push whose record is no pending work is lost when its message is',
    breaks: lost,
    setting: { odds: { ...rough, refused: 0.3 }, kind: 'unbound' },
  },
  {
    rule: 'fence',
    name: 'looks that save without a fence tell one change twice, or none',
    breaks: ['two ids', 'no entry', 'wrong state'],
    setting: { odds: rough },
  },
  {
    rule: 'outlives',
    name: 'a lease that ends before its holder does lets two publish at once',
    breaks: ['entry twice', 'order'],
    setting: { odds: { ...rough, stall: 0.1 } },
  },
  {
    rule: 'publishFirst',
    name: 'a revision that a crash left unpublished is passed over by the next look',
    breaks: lost,
    setting: { odds: rough },
  },
  {
    rule: 'timerStays',
    name: 'an ended task without a timer is forgotten if its look dies before it told',
    breaks: lost,
    setting: { odds: rough, kind: 'polled' },
  },
  {
    rule: 'patience',
    name: 'an end that the agent’s replica does not show yet waits for the floor',
    breaks: ['late'],
    setting: { odds: { ...rough, replica: 0.5 } },
  },
  {
    rule: 'sharesLooks',
    name: 'questions that were taken back keep a look of their own each, and beget messages without end',
    breaks: ['churn'],
    setting: { odds: mild, pace: 'flapping', kind: 'bound' },
  },
  {
    rule: 'stamps',
    name: 'a state that was passed over comes back from a replica as if it were new',
    breaks: ['two ids'],
    setting: behindReplicas,
  },
  {
    rule: 'backSoon',
    name: 'a question that is asked again in the same words waits for half of the silence before it',
    breaks: ['late'],
    setting: { odds: mild },
  },
  {
    rule: 'endStays',
    name: 'a replica’s answer to a late look undoes an end that was told',
    breaks: lost,
    setting: { odds: { ...mild, replica: 0.8 }, replicaMs: 6000, kind: 'late unbound' },
  },
  {
    rule: 'joiners',
    name: 'who joins while a look is under way is counted as told, though nobody told it',
    breaks: lost,
    setting: { odds: mild, kind: 'late' },
  },
  {
    rule: 'lateWaits',
    name: 'who subscribes to a task right after its end waits for a tick',
    breaks: ['tardy'],
    setting: { odds: mild, kind: 'late' },
  },
  {
    rule: 'unboundLooks',
    name: 'an unbound subscription is never bound if somebody else’s look settles its push',
    breaks: lost,
    setting: { odds: mild, kind: 'two unbound' },
  },
  {
    rule: 'countsOnce',
    name: 'a number that the SDK’s retry took twice hides the entry from who was just woken',
    breaks: ['blind hint'],
    setting: { odds: rough },
  },
  {
    rule: 'gapsAge',
    name: 'a gap that is taken for younger than it is hides the entry from who was just woken',
    breaks: ['blind hint'],
    setting: { odds: rough },
  },
  {
    rule: 'marks',
    name: 'a trailing look under a faster clock’s mark waits for itself',
    breaks: ['tardy'],
    setting: { odds: { ...mild, slow: 0.9 }, kind: 'late' },
  },
]

/** Schedules that are tried at most until the want of a rule shows. */
const seeds = Array.from({ length: 3000 }, (_, at) => at + 1)

describe('without one rule', () => {
  test.each(needs)('$rule: $name', ({ rule, breaks, setting }) => {
    const isBroken = (seed: number, off: (keyof Rules)[]): boolean => {
      const { faults, tardy } = verdictOf(seed, { ...setting, without: [...(setting.without ?? []), ...off] })
      return breaks.some(what => (what === 'tardy' ? tardy : faults.includes(what)))
    }
    const shown = seeds.find(seed => isBroken(seed, [rule]))
    expect(shown, 'a seed that shows what the rule is for').toBeDefined()
    expect(seeds.slice(0, shown).filter(seed => isBroken(seed, []))).toEqual([])
  })

  test('ring: answers of replicas are told again and again', () => {
    const count = (...without: (keyof Rules)[]): number =>
      broken(150, { ...behindReplicas, without }, ({ faults }) =>
        faults.filter(fault => undecidable.includes(fault)),
      ).length
    expect(count('ring')).toBeGreaterThan(4 * count())
  })

  test('every rule has its need shown', () => {
    expect([...needs.map(({ rule }) => rule), 'ring'].sort()).toEqual(Object.keys(all).sort())
  })
})
