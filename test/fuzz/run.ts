// The program behind `npm run fuzz -- --runs N`: fuzzes the receive door and says what the inputs came to. Its exit status says whether all was well.
import { parseArgs } from 'node:util'
import { watchFuzz } from './watch.ts'

const { values: flags } = parseArgs({
  options: { runs: { type: 'string', default: '10000' }, seed: { type: 'string' } },
})
const runs = Number(flags.runs)
const seed = Number(flags.seed ?? Date.now() % 2 ** 31)
if (!Number.isInteger(runs) || runs < 1 || !Number.isInteger(seed)) {
  console.error('fuzz: --runs and --seed are whole numbers')
  process.exit(2)
}
console.log(`Fuzzing the receive door: ${runs} inputs of seed ${seed} ...`)
const report = await watchFuzz({ runs, seed })
for (const [outcome, count] of Object.entries(report.outcomes).sort(([, a], [, b]) => b - a))
  console.log(`${String(count).padStart(10)}  ${outcome}`)
console.log(report.fault ?? `${report.runs} inputs, and only our own answers came out.`)
process.exitCode = report.fault === undefined ? 0 : 1
