// A process that runs schedules and prints what they came to, a line a job: `node main.ts '[{"rule":"fence"},{"odds":"rough","from":1,"to":100}]'`.
import { type Fault, judge, type Verdict } from './judge.ts'
import { needs } from './needs.ts'
import type { Rule } from './rules.ts'
import { mild, type Options, rough, run } from './run.ts'
import type { Pace } from './story.ts'
import { loadCode } from './variants.ts'
import { createStage, type Stage } from './world.ts'

/** Either many schedules with all rules, or the search for one that shows what a rule is for. */
type Many = { odds: 'rough' | 'mild'; pace?: Pace; from: number; to: number; story?: boolean }
type Search = { rule: Rule; most: number }
export type Job = Many | Search

export type Result = {
  /** Schedules that were run. */
  runs: number
  /** Those that broke a promise, with what broke. */
  broken: { seed: number; kind: string; faults: string[] }[]
}

// Errors are expected outcomes here, by the thousand.
Error.stackTraceLimit = 0

const stages = new Map<string, Promise<Stage>>()
const stageOf = (...without: Rule[]): Promise<Stage> => {
  const name = without.join()
  const stage = stages.get(name) ?? loadCode(without).then(createStage)
  stages.set(name, stage)
  return stage
}

/** An agent that dates nothing, behind replicas: nobody can tell then which of two answers is the newer. */
const undecidable: Fault = 'two ids, undated'

const faultsOf = ({ faults, tardy }: Verdict, isMild: boolean): string[] => [
  ...faults.filter(fault => fault !== undecidable),
  ...(isMild && tardy ? ['tardy'] : []),
]

async function runAll(job: Many): Promise<Result> {
  const stage = await stageOf()
  const result: Result = { runs: 0, broken: [] }
  const lines: string[] = []
  const note = (time: number, what: string) => lines.push(`${new Date(time).toISOString()} ${what}`)
  const options: Options = {
    odds: job.odds === 'mild' ? mild : rough,
    pace: job.pace,
    note: job.story ? note : undefined,
  }
  for (let seed = job.from; seed <= job.to; seed++) {
    const { kind, ...rest } = await run(seed, stage, options)
    const faults = faultsOf(judge({ kind, ...rest }), job.odds === 'mild')
    if (faults.length > 0) result.broken.push({ seed, kind, faults })
    result.runs += 1
  }
  if (job.story) process.stderr.write(`${lines.join('\n')}\n`)
  return result
}

/** The first schedule that breaks without a rule and holds with it. */
async function search({ rule, most }: Search): Promise<Result> {
  const { breaks, setting, without = [] } = needs[rule]
  const [off, on] = [await stageOf(rule, ...without), await stageOf(...without)]
  const shows = async (seed: number, stage: Stage) => {
    const { kind, ...rest } = await run(seed, stage, setting)
    const { faults, tardy } = judge({ kind, ...rest })
    const shown = breaks.filter(what => (what === 'tardy' ? tardy : faults.includes(what)))
    return { seed, kind, faults: shown }
  }
  for (let seed = 1; seed <= most; seed++) {
    const found = await shows(seed, off)
    if (found.faults.length > 0 && (await shows(seed, on)).faults.length === 0)
      return { runs: seed, broken: [found] }
  }
  return { runs: most, broken: [] }
}

const jobs: Job[] = JSON.parse(process.argv[2] ?? '[]')
for (const job of jobs) {
  const result = await ('rule' in job ? search(job) : runAll(job))
  process.stdout.write(`${JSON.stringify(result)}\n`)
}
process.exit(0)
