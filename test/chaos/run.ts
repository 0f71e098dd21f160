// The chaos run: real doors in processes that are killed, agents and targets of all kinds, and an oracle that knows what really happened; prints one table and the seed, and its exit status says whether the promises hold.
import { numberIn, readFlags, refuse } from '../support/flags.ts'
import { readSources } from '../support/sources.ts'
import { bundleHost } from './world/bundle.ts'
import { outcomeOf, tableOf } from './world/print.ts'
import { type Break, breaks, changing, ruleNames } from './world/rules.ts'
import { type Figures, type Plan, playRun } from './world/run.ts'

const usage = `npm run chaos -- [flags]

  --short            some waves, a minute or two
  --minutes M        waves until so many minutes are over; unless given until much has happened, in an hour or two
  --seed N           plays the script of that seed
  --at STEP          processes die at this step of the log (wake.sent) instead of at any call
  --without RULE     breaks a rule of test/chaos/world/rules.ts: the run must then report what is lost
  -h, --help         shows this`

const flags = readFlags(usage, {
  seed: { type: 'string' },
  minutes: { type: 'string' },
  short: { type: 'boolean', default: false },
  at: { type: 'string' },
  without: { type: 'string' },
})
const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

/** The steps that the doors log. */
const stepsOf = (text: string): string[] =>
  [...text.matchAll(/\bstep: '(\w+\.\w+)'/g)].map(([, name = '']) => name)

function judgeFlags({ minutes, short, at }: typeof flags): void {
  if (minutes !== undefined && short) refuse(usage, '--minutes and --short exclude each other')
  if (minutes !== undefined && !(numberIn(minutes) > 0))
    refuse(usage, `--minutes takes a number above 0, not "${minutes}"`)
  const known = new Set(readSources('functions', 'shared').flatMap(({ text }) => stepsOf(text)))
  if (at !== undefined && !known.has(at))
    refuse(usage, `--at takes a step that the doors log, not "${at}": ${[...known].sort().join(', ')}`)
}
judgeFlags(flags)

function brokenRule(): Break {
  if (flags.without === undefined) return {}
  const name = ruleNames.find(one => one === flags.without)
  return name === undefined ? refuse(usage, `--without takes one of: ${ruleNames.join('; ')}`) : breaks[name]
}
const { texts = [], bend } = brokenRule()

const seed = flags.seed ?? String(Math.floor(Math.random() * 1e9))
const begun = performance.now()
const minutes = (): number => (performance.now() - begun) / 60_000

const storm = { throttled: 0.02, unheard: 0.01, doubled: 0.03, delayed: 0.01 }
/** A step that is rarely come to kills no hundred; one that is never come to kills nobody in any storm. */
const enough = ({ events, kills, waves }: Figures & { waves: number }): boolean =>
  (events >= 100_000 && (kills >= 100 || flags.at !== undefined)) || (kills === 0 && waves >= 6)

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
  goesOn: figures => (flags.minutes === undefined ? !enough(figures) : minutes() < numberIn(flags.minutes)),
}

say(`seed ${seed}`)
const { figures, violations, waves } = await playRun(flags.short ? short : long).finally(program.remove)
say(tableOf(figures, violations, waves))
for (const { rule, task, says } of violations) say(`${rule}  ${task}  ${says}`)
const { says: outcome, holds } = outcomeOf(figures, violations)
say(`seed ${seed}: ${outcome}, in ${minutes().toFixed(1)} min`)
process.exitCode = holds ? 0 : 1
