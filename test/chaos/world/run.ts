// Plays a whole run: waves of calm and storm until enough has happened, the last acts of all tasks, and the judgement.

import type { Task } from './agents.ts'
import { judgeOverdue, judgeUnsaid } from './alarms.ts'
import { bundleHost, type Program } from './bundle.ts'
import { type Cast, makeCast } from './cast.ts'
import {
  interestsOf,
  isAlarm,
  judgeCursor,
  judgeRest,
  judgeTold,
  type Peace,
  repeatsOf,
  type Violation,
} from './judge.ts'
import { type Life, playWave, readWhole, type Stage } from './play.ts'
import { randomOf } from './random.ts'
import { judgeRemains } from './remains.ts'
import type { Weather } from './weather.ts'
import { startWorld, type World, type WorldOptions } from './world.ts'

export type Plan = {
  seed: string
  tenants: number
  tasksPerWave: number
  /** Changes of a task in one wave, at most. */
  changes: number
  storm: Weather
  /** Whether another wave is to be played, after so many. */
  goesOn: (done: Figures & { waves: number }) => boolean
  /** Kills come at this step of the log. */
  step?: string | undefined
  meddle?: WorldOptions['meddle']
  program?: Program
  say?: (line: string) => void
}

export type Figures = {
  tasks: number
  subscriptions: number
  deletions: number
  /** Tasks that were canceled since a budget of theirs ran out. */
  canceled: number
  events: number
  pushes: number
  looks: number
  webhooks: number
  entries: number
  /** Of these, what tells of a lost task or of refused credentials. */
  alarms: number
  kills: number
  throttled: number
  unheard: number
  doubled: number
  delayed: number
  /** Webhooks that came again under their id, after they had been taken. */
  repeats: number
  /** Calm waves that were too slow, on this machine, to be judged by the clock. */
  strained: number
}

export type Outcome = { figures: Figures; violations: Violation[]; waves: number }

/** What is known during a run. */
type Book = {
  world: World
  cast: Cast
  tasks: Map<string, Task>
  violations: Map<string, Violation>
  peace: Peace
  strained: number
}

export async function playRun(plan: Plan): Promise<Outcome> {
  const random = randomOf(plan.seed)
  const program = plan.program ?? (await bundleHost())
  const { step, meddle } = plan
  const world = await startWorld({
    random: random.stream('world'),
    hosts: 2,
    program: program.file,
    step,
    meddle,
  })
  try {
    const cast = await makeCast(world, random.stream('cast'), { tenants: plan.tenants })
    const book: Book = { world, cast, tasks: new Map(), violations: new Map(), peace: [], strained: 0 }
    const waves = await playWaves(plan, book)
    for (const client of cast.clients) note(book, judgeCursor(client, await readWhole(world, client)))
    note(book, await judgeRemains(world, cast, book.tasks))
    return { figures: figuresOf(book), violations: [...book.violations.values()], waves }
  } finally {
    await world.stop()
    if (plan.program === undefined) program.remove()
  }
}

/** Calm and storm by turns; the last wave only ends what has begun. */
async function playWaves(plan: Plan, book: Book): Promise<number> {
  const { world, cast } = book
  const lives: Life[] = []
  for (let number = 1; ; number++) {
    const last = !plan.goesOn({ ...figuresOf(book), waves: number - 1 })
    const storm = number % 3 === 1 ? undefined : plan.storm
    const from = world.now()
    if (storm !== undefined)
      for (const target of cast.targets) target.downUntil = from + (target.kind === 'failing' ? 1_800_000 : 0)
    for (const { lapses } of cast.agents) lapses.push({ from: from + 5000, until: from + 1_500_000 })
    let inPeace = storm === undefined
    const judge = (stage: Stage, strained: boolean): void => {
      if (strained) inPeace = false
      judgeStage(book, lives, stage, inPeace)
    }
    const random = randomOf(`${plan.seed}/wave ${number}`)
    const began = performance.now()
    const known = book.violations.size
    const { tasksPerWave: tasks, changes } = plan
    await playWave(world, cast, random, lives, { number, storm, tasks, changes, last, judge })
    if (inPeace) book.peace.push({ from, until: world.now() })
    else if (storm === undefined) book.strained += 1
    note(book, judgeAll(book))
    plan.say?.(lineOf(book, number, storm !== undefined, performance.now() - began))
    sayNew(plan, book, known)
    if (last && lives.length === 0) return number
  }
}

const lineOf = (book: Book, wave: number, stormy: boolean, milliseconds: number): string => {
  const { tasks, events, pushes, looks, webhooks, kills } = figuresOf(book)
  return [
    `wave ${wave}${stormy ? ', storm' : ''}: ${Math.round(milliseconds / 1000)} s;`,
    `so far ${tasks} tasks, ${events} events, ${pushes} pushes, ${looks} looks, ${webhooks} webhooks,`,
    `${kills} kills, ${book.violations.size} violations`,
  ].join(' ')
}

function judgeStage(book: Book, lives: readonly Life[], stage: Stage, inPeace: boolean): void {
  for (const { task } of lives) book.tasks.set(task.id, task)
  if (stage === 'prompt' && !inPeace) return
  const all = stage === 'end' ? [...book.tasks.values()] : lives.map(({ task }) => task)
  note(
    book,
    all.flatMap(task => judgeRest(task, interestsOf(book.cast, task), stage, inPeace)),
  )
  if (stage !== 'all' && stage !== 'end') return
  const now = book.world.now()
  note(
    book,
    all.flatMap(task => {
      const interests = interestsOf(book.cast, task)
      return [...judgeUnsaid(task, interests, now), ...judgeOverdue(task, interests, now)]
    }),
  )
}

const judgeAll = ({ tasks, cast, peace }: Book): Violation[] =>
  [...tasks.values()].flatMap(task => judgeTold(task, interestsOf(cast, task), peace))

function note({ violations }: Book, found: readonly Violation[]): void {
  for (const violation of found)
    violations.set(`${violation.rule} ${violation.task} ${violation.says}`, violation)
}

/** Violations that a long run found so far, as they are found. */
const sayNew = (plan: Plan, { violations }: Book, known: number): void => {
  for (const { rule, task, says } of [...violations.values()].slice(known))
    plan.say?.(`${rule}  ${task}  ${says}`)
}

function figuresOf({ world, cast, tasks, strained }: Book): Figures {
  const { agents, sky, hosts } = world
  const { events, pushes, looks, canceled } = agents.counts
  const told = cast.targets.flatMap(target => target.told)
  return {
    ...{ tasks: tasks.size, subscriptions: cast.interests.length },
    deletions: cast.interests.filter(({ deletedAt }) => deletedAt !== undefined).length,
    ...{ events, pushes, looks, canceled, strained },
    ...{ webhooks: told.length, kills: hosts.kills(), ...sky.counts },
    entries: cast.clients.reduce((sum, { read }) => sum + read.length, 0),
    alarms: cast.clients.reduce((sum, { read }) => sum + read.filter(isAlarm).length, 0),
    repeats: cast.targets.reduce((sum, target) => sum + repeatsOf(target.told).length, 0),
  }
}
