// The chaos run: real doors in processes that are killed, agents and targets of all kinds, and an oracle that knows what really happened; prints one table and the seed, and its exit status says whether the promises hold.
import { parseArgs } from 'node:util'
import { bundleHost } from './world/bundle.ts'
import { tableOf } from './world/print.ts'
import { type Break, breaks, changing, ruleNames } from './world/rules.ts'
import { type Figures, type Plan, playRun } from './world/run.ts'

const { values: flags } = parseArgs({
  options: {
    seed: { type: 'string' },
    minutes: { type: 'string' },
    short: { type: 'boolean', default: false },
    /** Processes die at this step of the log (`wake.sent`) instead of at any call. */
    at: { type: 'string' },
    /** A rule that is broken, by its name in world/rules.ts: the run must then report what is lost. */
    without: { type: 'string' },
  },
})
const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

function brokenRule(): Break {
  if (flags.without === undefined) return {}
  const name = ruleNames.find(one => one === flags.without)
  if (name !== undefined) return breaks[name]
  process.stderr.write(`--without takes one of: ${ruleNames.join('; ')}\n`)
  process.exit(2)
}
const { texts = [], bend } = brokenRule()

const seed = flags.seed ?? String(Math.floor(Math.random() * 1e9))
const begun = performance.now()
const minutes = (): number => (performance.now() - begun) / 60_000

const storm = { throttled: 0.02, unheard: 0.01, doubled: 0.03, delayed: 0.01 }
const enough = ({ events, kills }: Figures): boolean => events >= 100_000 && kills >= 100

const program = await bundleHost([changing(texts)])
const world = {
  ...{ seed, say, step: flags.at, program },
  meddle: call => {
    bend?.(call)
    return undefined
  },
} satisfies Partial<Plan>

const short: Plan = {
  ...{ ...world, tenants: 2, tasksPerWave: 18, changes: 5 },
  storm: { ...storm, callsPerKill: 130 },
  goesOn: ({ waves, kills }) => waves < 2 || (kills < 15 && waves < 6),
}
const long: Plan = {
  ...{ ...world, tenants: 5, tasksPerWave: 150, changes: 60 },
  storm: { ...storm, callsPerKill: 2500 },
  goesOn: figures => (flags.minutes === undefined ? !enough(figures) : minutes() < Number(flags.minutes)),
}

say(`seed ${seed}`)
const { figures, violations, waves } = await playRun(flags.short ? short : long).finally(program.remove)
say(tableOf(figures, violations, waves))
for (const { rule, task, says } of violations) say(`${rule}  ${task}  ${says}`)
const outcome = violations.length === 0 ? 'every promise held' : `${violations.length} promises were broken`
say(`seed ${seed}: ${outcome}, in ${minutes().toFixed(1)} min`)
process.exitCode = violations.length === 0 ? 0 : 1
