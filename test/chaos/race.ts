// `npm run race -- [--runs N] [--from SEED] [--story SEED --odds mild --pace mixed]`: random schedules of the real doors on a table and queues in memory, on both cores; exits with 1 if one breaks a promise.
import { parseArgs } from 'node:util'
import { runBeside } from '../support/race/child.ts'
import type { Job } from '../support/race/main.ts'
import type { Pace } from '../support/race/story.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '20000' },
    from: { type: 'string', default: '1' },
    story: { type: 'string' },
    odds: { type: 'string', default: 'rough' },
    pace: { type: 'string', default: 'brief' },
  },
})

/** Shares of the runs: most are short, for many short tasks meet more kinds of trouble than few long ones. */
const shares = [
  { name: 'rough weather, short tasks', odds: 'rough', pace: 'brief', share: 0.8 },
  { name: 'rough weather, long tasks', odds: 'rough', pace: 'mixed', share: 0.1 },
  { name: 'no deaths', odds: 'mild', pace: 'brief', share: 0.1 },
] as const

const runs = Number(values.runs)
const first = Number(values.from)
if (!Number.isInteger(runs) || !Number.isInteger(first) || runs < 1 || first < 0) {
  process.stderr.write('--runs and --from are whole numbers\n')
  process.exit(2)
}

if (values.story !== undefined) {
  const [seed, odds, pace] = [Number(values.story), values.odds, values.pace]
  const found = await runBeside([
    { odds: odds === 'mild' ? odds : 'rough', pace: paceOf(pace), from: seed, to: seed, story: true },
  ])
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

function paceOf(name: string): Pace {
  return name === 'mixed' || name === 'brisk' || name === 'flapping' ? name : 'brief'
}
