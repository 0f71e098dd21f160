// Plays many cells at once through one timeline: set up, age, push, repeat, two ticks, the floor. Judges nothing.
import { randomUUID } from 'node:crypto'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { door as receive } from '../../../functions/receive.ts'
import type { HandedOut } from '../../../shared/a2a/configs.ts'
import { rates } from '../../../shared/limits.ts'
import type { Sent } from '../../support/dialects.ts'
import { type Cell, isKill, type Sender, stateOf } from './cells.ts'
import { type Door, openHere, openThere } from './doors.ts'
import { createFate, noteCall, type Play, whoOf } from './fate.ts'
import { longer, naive } from './naive.ts'
import { pushOf, registerAgent, type Stage, startStage, subscribe, taskOf } from './stage.ts'
import { fetchKeys, timer } from './steps.ts'

/** What is known of a cell in the end. */
export type Seen = {
  cell: Cell
  sender: Sender
  answers: number[]
  /** Whether the planned fault came to pass. */
  struck: boolean
  /** Whether something was written, so that the push is ours to lose. */
  owned: boolean
  uncovered: boolean
  /** What the first push waited for, in order. */
  calls: string[]
  /** Looks at the task since the push: before the first tick, after the second, after the floor. */
  looks: { first: number; ticked: number; last: number }
  /** The states that were told: after the second tick, in the end. */
  told: { ticked: string[]; last: string[] }
}

export type Round = {
  seen: Seen[]
  /** Messages that were received too often: each is one that nobody could handle. */
  dead: number
  /**
   * Whether this machine was so slow that calls may have run into their time limits without any fault of the plan: the
   * process had no turn for long, or the ground lost hold of a message that it had received.
   */
  strained: boolean
}

/** What a round is played with: the receive door, one of the naive ones by its name, or `longer`. */
export type Options = { sender: Sender; door: string }

const second = 1000
const minute = 60 * second
const hour = 60 * minute
/** A watch that was silent for two hours has its floor in one hour: it hides nothing that the ticks should find. */
const ageMs = 2 * hour
/** A call has 1.5 s, and passes through this process and its servers several times. */
const strainMs = 250
/** Cells at work at the same time: more would only wait for each other. */
const abreast = 6
const abreastReal = 2

/** A cell with its hook, its push and the doors that served it. */
type Act = { play: Play; hook: HandedOut; push?: Sent; door?: Door | undefined; doors: Door[] }

type Show = { stage: Stage; acts: Act[]; dead: Set<string>; options: Options }

/** Plays all cells. */
export async function playRound(cells: readonly Cell[], options: Options): Promise<Round> {
  const dead = new Set<string>()
  const fate = createFate(dead)
  const stage = await startStage(fate)
  const show: Show = { stage, acts: [], dead, options }
  try {
    await setUp(show, cells, fate.plays)
    await warmUp(show)
    return await push(show)
  } finally {
    await Promise.all(show.acts.flatMap(({ doors }) => doors.map(door => door.kill())))
    await stage.stop()
  }
}

/** Agents, hooks, first looks, and then a long silence. */
async function setUp(show: Show, cells: readonly Cell[], plays: Map<string, Play>): Promise<void> {
  const { stage } = show
  const numbered = cells.map((cell, index) => playOf(`c${index}`, cell))
  show.acts = await inTurns(abreast, numbered, async play => {
    plays.set(play.id, play)
    await registerAgent(stage, play, false)
    return { play, hook: await subscribe(stage, play), doors: [] }
  })
  await stage.pass(0)
  await stage.pass(ageMs)
}

/** Doors that know the subscription and the keys: for longer than they may be trusted, or by a rule that then changes. */
async function warmUp(show: Show): Promise<void> {
  await inTurns(abreast, standing(show, 'warm'), act => pushNothing(show, act))
  show.stage.advance(30 * second)
  await inTurns(abreast, standing(show, 'new rule'), async act => {
    await pushNothing(show, act)
    await registerAgent(show.stage, act.play, true)
  })
  show.stage.advance(10 * second)
  await inTurns(abreast, standing(show, 'flood'), act => flood(show, act))
  // What the flood itself told is looked at before the task moves on.
  await show.stage.pass(0)
}

/** As many pushes of one task as are recorded at once. */
async function flood(show: Show, act: Act): Promise<void> {
  const door = await open(show, act)
  const sent = pushOf(show.stage, act.play, act.hook, 'before')
  for (let n = 0; n < rates.task.burst; n++) {
    const status = await door.post(sent)
    // What was not accepted was counted nevertheless; but with the machine so slow the cell is none.
    if (!isTaken(status)) throw new Error(`A push of the flood was answered ${status}`)
  }
}

const standing = ({ acts }: Show, where: Cell['scene']): Act[] =>
  acts.filter(({ play }) => play.cell.scene === where)

/** A push that is genuine and cannot be read: the door learns everything and writes nothing. */
async function pushNothing(show: Show, act: Act): Promise<void> {
  const door = await open(show, act)
  let status = 503
  // A slow machine may need more than one attempt.
  for (let tries = 0; tries < 5 && status === 503; tries++)
    status = await door.post(pushOf(show.stage, act.play, act.hook, 'empty'))
  if (status !== 422) throw new Error(`A push without an event was answered ${status}`)
}

/** The pushes and their repeats, two ticks a minute apart, and the floor. */
async function push(show: Show): Promise<Round> {
  const { stage, acts, options } = show
  const before = counted(show)
  const delays = monitorEventLoopDelay()
  delays.enable()
  for (const { play } of acts) stage.outside.tasks.set(taskOf(play), stateOf(play.cell))
  await pushAll(show)
  await stage.pass(second)
  if (options.sender === 'again') await pushAll(show)
  await stage.pass(10 * second)
  if (options.sender === 'again') await pushAll(show)
  await stage.pass(second)
  const first = counted(show)
  // The first tick comes before any timer is due, the second after: no tick can come at a worse time.
  await stage.pass(33 * second)
  await stage.pass(minute)
  const ticked = counted(show)
  delays.disable()
  const strained = delays.max > strainMs * 1e6 || (await stage.held()) > 0
  await stage.pass(hour)
  const last = counted(show)
  const seen = acts.map(({ play }, index) => {
    const looks = (count: Count[]): number => (count[index]?.looks ?? 0) - (before[index]?.looks ?? 0)
    return {
      ...{ cell: play.cell, sender: options.sender, answers: play.answers, uncovered: play.uncovered },
      calls: [...play.calls.values()],
      struck: play.struck > 0 || play.cell.step === undefined,
      owned: play.recorded || play.queued > 0,
      looks: { first: looks(first), ticked: looks(ticked), last: looks(last) },
      told: { ticked: ticked[index]?.told ?? [], last: last[index]?.told ?? [] },
    }
  })
  return { seen, dead: (await stage.dead()).length, strained }
}

type Count = { looks: number; told: string[] }

const counted = ({ stage: { outside }, acts }: Show): Count[] =>
  acts.map(({ play }) => ({
    looks: outside.looks.get(taskOf(play)) ?? 0,
    told: [...(outside.told.get(taskOf(play)) ?? [])],
  }))

/** Pushes once more for all whose push was not taken yet. */
async function pushAll(show: Show): Promise<void> {
  const waiting = show.acts.filter(({ play }) => !play.answers.some(isTaken))
  const [real, here] = [waiting.filter(act => isReal(show, act)), waiting.filter(act => !isReal(show, act))]
  await Promise.all([
    inTurns(abreast, here, act => pushOnce(show, act)),
    inTurns(abreastReal, real, act => pushOnce(show, act)),
  ])
}

/** Whether the door has the push: one that is too large to be read is refused, and looked at all the same. */
export const isTaken = (status: number): boolean => (status >= 200 && status < 300) || status === 413

/**
 * Every await is once the place of a real SIGKILL, before and after. Elsewhere the door is abandoned in this process:
 * table and queues see no difference. The door that comes after it needs no process of its own.
 */
function isReal({ options }: Show, { play: { cell }, doors }: Act): boolean {
  if (options.door !== 'receive' || doors.length > 0 || !isKill(cell)) return false
  const { scene, step, subject } = cell
  return step === timer || (subject === 'completed' && (scene === 'cold' || scene === 'signed'))
}

async function pushOnce(show: Show, act: Act): Promise<void> {
  const { play } = act
  const door = act.door ?? (await open(show, act))
  act.push ??= pushOf(show.stage, play, act.hook)
  const answered = Promise.withResolvers<void>()
  play.answered = answered.promise
  play.request += 1
  const status = await door.post(act.push)
  play.answers.push(status)
  if (isTaken(status) && !play.recorded && play.queued === 0) play.uncovered = true
  if (status === 0) act.door = undefined
  answered.resolve()
  play.answered = undefined
}

async function open(show: Show, act: Act): Promise<Door> {
  const { stage, dead, options } = show
  const who = whoOf(act.play, act.doors.length)
  const onFetch = (what: string): void => {
    // What reaches the key host is noted there, where it can be struck.
    const name = `fetch ${what}`
    if (name !== fetchKeys) noteCall(act.play, randomUUID(), name)
  }
  const opening = { env: { ...stage.env, AWS_ACCESS_KEY_ID: who }, now: stage.now, dead, onFetch }
  const door = isReal(show, act)
    ? await openThere(opening)
    : openHere({ ...naive, longer }[options.door] ?? receive, opening)
  act.play.kill = door.kill
  act.door = door
  act.doors.push(door)
  return door
}

const playOf = (id: string, cell: Cell): Play => ({
  ...{ id, cell, request: 0, struck: 0, recorded: false, queued: 0, answers: [], uncovered: false },
  calls: new Map(),
  kill: async () => {},
  answered: undefined,
})

/** Works on all of them, so many at a time. */
async function inTurns<T, R>(many: number, all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    for (let at = next++; at < all.length; at = next++) {
      const one = all[at]
      if (one !== undefined) results[at] = await work(one)
    }
  }
  await Promise.all(Array.from({ length: many }, lane))
  return results
}
