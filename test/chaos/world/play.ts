// Plays waves: tasks begin, change and rest while it storms; then it is calm, time passes in small steps and in leaps, and at each stage somebody judges.
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskState } from '../../../shared/a2a/task.ts'
import type { Task } from './agents.ts'
import { type Cast, type Client, type Entry, subscribe, unsubscribe } from './cast.ts'
import { isBarred, isSeeing, type PassKind, passKinds } from './kinds.ts'
import type { Random } from './random.ts'
import { calm, type Weather } from './weather.ts'
import type { World } from './world.ts'

/** What a task does in one wave: some changes, and then it rests in the last of them. */
type Act = readonly TaskState[]

/** A task with what it still has to do. */
export type Life = { task: Task; acts: Act[] }

export type Stage =
  /** Everything that was pushed to a calm relay must be known. */
  | 'prompt'
  /** Everything that was pushed and taken must be known, whatever happened. */
  | 'pushed'
  /** Everything must be known. */
  | 'all'
  /** Even the worst targets must have had their turns. */
  | 'end'

export type Wave = {
  number: number
  storm: Weather | undefined
  tasks: number
  /** Changes of a task, at most. */
  changes: number
  /** Whether the last acts of all are played now. */
  last: boolean
  /** Told at each stage, and whether something stumbled, or this machine did, although it was calm. */
  judge: (stage: Stage, strained: boolean) => void
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** Looks wait for windows and for replicas that lag: within this time a push must have had its effect. */
const soon = [1, 1, 1, 2, 2, 3, 5, 5, 10, 10].map(seconds => seconds * second)
/** Longer than a killed process hides its messages (3 min), and tick holds what it queued twice (5 and 10 min). */
const recovery = [0.5, 0.5, 1, 1, 3, 5, 5, 10].map(minutes => minutes * minute)
/** Longer than the longest floor, 6 h; then a look that got no answer from an agent that gives some is made again each quarter of an hour. */
const long = [0.5, 2, 4, 6.5, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3].map(hours => hours * hour)
/** Longer than a webhook's schedule of retries, about 75 h. */
const longest = [10, 14, 20, 24, 24].map(hours => hours * hour)

/** How fast the bent clock runs while the tasks change: no function may see its own time-out pass. */
const stepMs = 250
const restMs = 50
/** How long the changes of one act take, on average. */
const spanMs = 10 * second

const ends: readonly TaskState[] = ['completed', 'completed', 'completed', 'failed', 'canceled', 'rejected']
const rests: readonly TaskState[] = ['input-required', 'auth-required', 'working']

/** Draws what a task will do: one to three acts of some changes each. */
function drawActs(random: Random, most: number): Act[] {
  const acts = random.pick([1, 1, 2, 2, 3])
  return Array.from({ length: acts }, (_, at) => {
    const changes = Array.from(
      { length: random.int(0, most) },
      (): TaskState => (random.chance(0.15) ? 'input-required' : 'working'),
    )
    return [...changes, random.pick(at === acts - 1 ? ends : rests)]
  })
}

/** Plays one wave. @param lives tasks of earlier waves that go on; those that have not ended are left in it */
export async function playWave(
  world: World,
  cast: Cast,
  random: Random,
  lives: Life[],
  wave: Wave,
): Promise<void> {
  const { sky } = world
  world.stumbles()
  world.stalled()
  sky.set(wave.storm ?? calm)
  if (!wave.last) lives.push(...(await beginTasks(world, cast, random, wave)))
  const moves = drawMoves(world, cast, random, lives)
  await playActs(world, random, lives, wave, moves)
  await world.agents.settled()
  if (wave.storm !== undefined) await outlast(world, cast)
  sky.set(calm)
  await pass(world, cast, soon)
  wave.judge('prompt', world.stalled() || world.stumbles() > 0)
  do {
    world.stumbles()
    await pass(world, cast, recovery)
  } while (world.stumbles() > 0)
  wave.judge('pushed', world.stalled())
  await pass(world, cast, long)
  wave.judge('all', world.stalled())
  if (wave.last && lives.every(({ acts }) => acts.length === 0)) {
    await pass(world, cast, longest)
    wave.judge('end', world.stalled())
  }
  for (let at = lives.length - 1; at >= 0; at--) if (lives[at]?.acts.length === 0) lives.splice(at, 1)
}

/** New tasks at random agents, subscribed to in one way or another. */
async function beginTasks(world: World, cast: Cast, random: Random, wave: Wave): Promise<Life[]> {
  const lives: Life[] = []
  const make = async (at: number): Promise<void> => {
    const agent = random.pick(cast.agents)
    const task = world.agents.begin(agent, `task-${wave.number}-${at}`)
    lives.push({ task, acts: drawActs(random, wave.changes) })
    if (agent.wide.length > 0) return
    if (agent.kind.guarded) {
      for (const pass of drawPasses(random))
        await subscribe(world, cast, random, { agent, how: 'bound', task, pass })
      return
    }
    const how = agent.kind.pushes !== null && random.chance(0.2) ? 'unbound' : 'bound'
    await subscribe(world, cast, random, { agent, how, task })
    if (how === 'bound' && random.chance(0.1)) await subscribe(world, cast, random, { agent, how, task })
  }
  // In order, so that the same seed makes the same tasks.
  for (let at = 1; at <= wave.tasks; at++) await make(at)
  return lives
}

/** How many tasks are never shown to anybody who waits for them. */
const barredShare = 0.2

/** Several kinds of credentials, of which one shows the task, if any does: whoever asks does not know which. */
function drawPasses(random: Random): PassKind[] {
  if (random.chance(barredShare))
    return Array.from({ length: random.int(1, 3) }, () => random.pick(passKinds.filter(isBarred)))
  const count = random.int(2, 4)
  const seeing = random.int(1, count)
  return Array.from({ length: count }, (_, at) =>
    random.pick(at + 1 === seeing ? passKinds.filter(isSeeing) : passKinds),
  )
}

/** Something that happens at its time, in ms since the wave's changes began. */
type Move = { at: number; play: () => Promise<void> | void }

/** Somebody joins a task that is under way or has just ended; somebody leaves one. */
function drawMoves(world: World, cast: Cast, random: Random, lives: readonly Life[]): Move[] {
  const anyTime = (): number => random.int(0, 2 * spanMs)
  return lives.flatMap(({ task }) => {
    const own = cast.interests.filter(one => one.task === task && one.ending === undefined)
    const [leaver] = random.chance(0.15) ? own : []
    const joins: Move = {
      at: anyTime(),
      play: () => subscribe(world, cast, random, { agent: task.agent, how: 'bound', task }),
    }
    return [
      ...(random.chance(0.15) ? [joins] : []),
      ...(leaver === undefined ? [] : [{ at: anyTime(), play: () => unsubscribe(world, leaver) }]),
    ]
  })
}

/** Plays the next act of every task, all of them interleaved. */
async function playActs(
  world: World,
  random: Random,
  lives: Life[],
  wave: Wave,
  moves: Move[],
): Promise<void> {
  const changes: Move[] = lives.flatMap(({ task, acts }) => {
    let at = 0
    return (acts.shift() ?? []).map(state => {
      at += random.int(0, (2 * spanMs) / wave.changes)
      return { at, play: () => world.agents.change(task, state) }
    })
  })
  const all = [...changes, ...moves].sort((a, b) => a.at - b.at)
  const under: Promise<void>[] = []
  const begin = world.now()
  let ticked = begin
  for (const { at, play } of all) {
    while (world.now() < begin + at) {
      world.flow(stepMs)
      await sleep(restMs)
    }
    const done = play()
    if (done !== undefined) under.push(done)
    if (world.now() - ticked > 15 * second) {
      ticked = world.now()
      world.ground.tick().catch(() => {})
    }
  }
  await Promise.all(under)
}

/** The storm goes on for a while after the last change, and the clock leaps. */
async function outlast(world: World, cast: Cast): Promise<void> {
  for (const milliseconds of [second, second, 5 * second, 35 * second, minute, 2 * minute]) {
    await world.leap(milliseconds)
    await world.ground.tick().catch(() => {})
    await sleep(300)
    await readAll(world, cast).catch(() => {})
  }
}

/** Lets time pass; all that is due after each step is done. */
export async function pass(world: World, cast: Cast, steps: readonly number[]): Promise<void> {
  for (const milliseconds of steps) {
    await world.leap(milliseconds)
    await world.settle()
  }
  await readAll(world, cast)
}

export const readAll = async (world: World, cast: Cast): Promise<void> => {
  await Promise.all(cast.clients.map(client => readOn(world, client)))
}

/** Reads an inbox on from its cursor, as its client does. */
async function readOn(world: World, client: Client): Promise<void> {
  for (;;) {
    const { entries, next } = await readInbox(world, client, client.cursor)
    const seen = client.cursor
    client.read.push(...entries)
    for (const entry of entries)
      client.byTask.set(entry.taskId, [...(client.byTask.get(entry.taskId) ?? []), entry])
    client.cursor = next
    if (next === seen) return
  }
}

async function readInbox(
  world: World,
  { name, tenant }: Client,
  after: number,
): Promise<{ entries: Entry[]; next: number }> {
  const { call } = await world.api(tenant)
  const path = `/v1/inbox?client=${name}&limit=100&after=${after}`
  const feed = await call<{ entries: Entry[]; next: string }>('GET', path)
  return { entries: feed.entries, next: Number(feed.next) }
}

/** Reads a whole inbox anew. */
export async function readWhole(world: World, client: Client): Promise<Entry[]> {
  const all: Entry[] = []
  for (let cursor = 0; ; ) {
    const { entries, next } = await readInbox(world, client, cursor)
    all.push(...entries)
    if (next === cursor) return all
    cursor = next
  }
}
