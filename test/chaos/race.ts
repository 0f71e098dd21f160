// `npm run race`: random schedules of the real doors on a table and queues in memory, on both cores; exits with 1 if one breaks a promise.
import { numberIn, readFlags, refuse } from '../support/flags.ts'
import { runBeside } from '../support/race/child.ts'
import type { Job } from '../support/race/main.ts'
import type { Pace } from '../support/race/story.ts'

const allOdds = ['rough', 'mild'] as const
const paces: readonly Pace[] = ['brief', 'mixed', 'brisk', 'flapping']

const usage = `npm run race -- [flags]

  --runs N      so many schedules; 20000 unless given
  --from SEED   the first of them; 1 unless given
  --story SEED  tells one schedule instead
  --odds ODDS   of that one: ${allOdds.join(', ')}; the first unless given
  --pace PACE   of that one: ${paces.join(', ')}; the first unless given
  -h, --help    shows this`

const values = readFlags(usage, {
  runs: { type: 'string', default: '20000' },
  from: { type: 'string', default: '1' },
  story: { type: 'string' },
  odds: { type: 'string', default: 'rough' },
  pace: { type: 'string', default: 'brief' },
})

/** Shares of the runs: most are short, for many short tasks meet more kinds of trouble than few long ones. */
const shares = [
  { name: 'rough weather, short tasks', odds: 'rough', pace: 'brief', share: 0.8 },
  { name: 'rough weather, long tasks', odds: 'rough', pace: 'mixed', share: 0.1 },
  { name: 'no deaths', odds: 'mild', pace: 'brief', share: 0.1 },
] as const

const whole = (flag: string, text: string, least: number): number => {
  const number = numberIn(text)
  return Number.isInteger(number) && number >= least
    ? number
    : refuse(usage, `--${flag} takes a whole number from ${least} on, not "${text}"`)
}
const oneOf = <Name extends string>(flag: string, text: string, names: readonly Name[]): Name =>
  names.find(name => name === text) ??
  refuse(usage, `--${flag} takes one of ${names.join(', ')}, not "${text}"`)

const runs = whole('runs', values.runs, 1)
const first = whole('from', values.from, 0)
const [odds, pace] = [oneOf('odds', values.odds, allOdds), oneOf('pace', values.pace, paces)]

if (values.story !== undefined) {
  const seed = whole('story', values.story, 0)
  const found = await runBeside([{ odds, pace, from: seed, to: seed, story: true }])
  process.stdout.write(`${JSON.stringify(found)}\n`)
  process.exit(0)
}

/** Broken runs that are named. */
const shown = 20

let failed = false
for (const { name, odds, pace, share } of shares) {
  const count = Math.ceil((runs * share) / 2)
  const halves: Job[] = [first, first + count].map(from => ({ odds, pace, from, to: from + count - 1 }))
  const found = await runBeside(halves)
  const broken = found.flatMap(half => half.broken)
  const total = found.reduce((sum, half) => sum + half.runs, 0)
  process.stdout.write(`${name.padEnd(30)} ${String(total).padStart(6)} runs, ${broken.length} broken\n`)
  for (const { seed, kind, faults } of broken.slice(0, shown))
    process.stdout.write(`  seed ${seed} (${odds}, ${pace}, ${kind}): ${faults.join(', ')}\n`)
  failed ||= broken.length > 0
}
process.exit(failed ? 1 : 0)
