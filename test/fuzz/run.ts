// The program behind `npm run fuzz -- --runs N`: fuzzes the receive door and says what the inputs came to. Its exit status says whether all was well.
import { numberIn, readFlags, refuse } from '../support/flags.ts'
import { watchFuzz } from './watch.ts'

const usage = `npm run fuzz -- [flags]

  --runs N    so many inputs; 10000 unless given
  --seed N    the inputs of that seed
  -h, --help  shows this`

const flags = readFlags(usage, { runs: { type: 'string', default: '10000' }, seed: { type: 'string' } })
const runs = numberIn(flags.runs)
const seed = flags.seed === undefined ? Date.now() % 2 ** 31 : numberIn(flags.seed)
if (!Number.isInteger(runs) || runs < 1)
  refuse(usage, `--runs takes a whole number above 0, not "${flags.runs}"`)
if (!Number.isInteger(seed)) refuse(usage, `--seed takes a whole number, not "${flags.seed}"`)
console.log(`Fuzzing the receive door: ${runs} inputs of seed ${seed} ...`)
const report = await watchFuzz({ runs, seed })
for (const [outcome, count] of Object.entries(report.outcomes).sort(([, a], [, b]) => b - a))
  console.log(`${String(count).padStart(10)}  ${outcome}`)
console.log(report.fault ?? `${report.runs} inputs, and only our own answers came out.`)
process.exitCode = report.fault === undefined ? 0 : 1
