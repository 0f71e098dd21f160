// Short plays in which one thing happens at the worst moment: each is lost on a relay that breaks the rule it is for, and not on one that keeps it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Call } from '../../../infra/local/wire.ts'
import type { TaskState } from '../../../shared/a2a/task.ts'
import { watchOf } from '../../../shared/store/keys.ts'
import { usualPrincipal } from '../../../shared/store/watches.ts'
import type { Task } from './agents.ts'
import { judgeCursor, type Violation } from './judge.ts'
import { pass, readAll, readWhole } from './play.ts'
import type { RuleName } from './rules.ts'
import { hour, judge, killAt, oldTask, second, soon, type Theatre } from './theatre.ts'
import { calm } from './weather.ts'

export type Scene = (theatre: Theatre) => Promise<Violation[]>

const said = ({ body }: Call): string => JSON.stringify(body)
const isMark = (call: Call): boolean => call.operation === 'UpdateItem' && said(call).includes('#again = ')
const isPutOff = (call: Call): boolean =>
  call.operation === 'SendMessage' && said(call).includes('\\"mark\\"')
const isSave = (call: Call): boolean =>
  call.operation === 'UpdateItem' && said(call).includes('#looked = :looked')
const isTick = ({ who }: Call): boolean => who.startsWith('tick.')
const isWrite = ({ operation }: Call): boolean => operation === 'UpdateItem' || operation === 'SendMessage'
const isEntry = (call: Call): boolean => call.operation === 'PutItem' && said(call).includes('"e#')

/** So long a scene waits for what must come of itself, in real ms. */
const longestMs = 120_000

/** @param what is waited for, for whoever reads that it never came */
async function until(what: string, isSo: () => boolean): Promise<void> {
  const end = performance.now() + longestMs
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`${what} did not come within ${longestMs / 1000} s`)
    await sleep(20)
  }
}

const isTold = ({ cast }: Theatre, { id }: Task, state: TaskState): boolean =>
  cast.targets.some(target => target.byTask.get(id)?.some(told => told.state === state))

/** A push has to wait for the look under way, and its process dies between the two steps of putting it off. */
const dyingWait: Scene = async theatre => {
  const { world, cast } = theatre
  const task = await oldTask(theatre, 'dying-wait')
  const held = world.agents.holdNext()
  world.agents.change(task, 'working')
  await held.came
  let steps = 0
  const killed = killAt(theatre, call => (isMark(call) || isPutOff(call)) && ++steps === 2)
  world.agents.change(task, 'working')
  await killed
  held.release()
  // The lease outlives the process by half a minute; the messages in its hand stay hidden for three.
  await pass(world, cast, soon)
  return judge(theatre, task)
}

/** An entry has its number and is slow to take its place, while another comes after it and the client reads. */
const slowEntry: Scene = async theatre => {
  const { world, cast } = theatre
  const [slow, quick] = [await oldTask(theatre, 'slow-entry'), await oldTask(theatre, 'quick-entry')]
  const [came, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  theatre.wire.before = async call => {
    if (!isEntry(call) || !said(call).includes(slow.id)) return undefined
    theatre.wire.before = () => undefined
    came.resolve()
    await released.promise
    return undefined
  }
  world.agents.change(slow, 'completed')
  await came.promise
  world.agents.change(quick, 'completed')
  await until('the end of the quick task', () => isTold(theatre, quick, 'completed'))
  world.flow(12 * second)
  await readAll(world, cast)
  released.resolve()
  await pass(world, cast, soon)
  const skipped: Violation[] = []
  for (const client of cast.clients) skipped.push(...judgeCursor(client, await readWhole(world, client)))
  return [...skipped, ...(await judge(theatre, slow)), ...(await judge(theatre, quick))]
}

/** A push is brought late, and the look that it asks for dies with its process after it was begun. */
const dyingLook: Scene = async theatre => {
  const { world, cast } = theatre
  const task = await oldTask(theatre, 'dying-look')
  world.sky.set({ ...calm, delayed: 1 })
  world.agents.change(task, 'working')
  await until('a delayed message', () => world.sky.counts.delayed > 0)
  world.sky.set(calm)
  const killed = killAt(theatre, isSave)
  // It is hidden for three minutes, and once more after the kill.
  await pass(world, cast, [180 * second])
  await killed
  await pass(world, cast, [180 * second, ...soon])
  return judge(theatre, task)
}

/**
 * No push comes of a task's end, and tick dies between the two steps of queueing the look that is due. Other tasks are due
 * by then, too: a process that died between the steps of one of them may have this one's message in its hand, which
 * stays hidden for three minutes.
 */
const dyingTick: Scene = async theatre => {
  const { world, cast } = theatre
  const task = await oldTask(theatre, 'dying-tick')
  const watch = watchOf(task.agent.tenant, task.agent.name, usualPrincipal, task.id)
  task.history.push({ state: 'completed', at: world.now(), step: 1 })
  let steps = 0
  const isStep = (call: Call): boolean => isTick(call) && isWrite(call) && said(call).includes(watch)
  const killed = killAt(theatre, call => isStep(call) && ++steps === 2)
  await world.leap(7 * hour)
  await world.ground.tick().catch(() => {})
  await killed
  // The next tick comes in a minute.
  await pass(world, cast, [60 * second, ...soon])
  return judge(theatre, task)
}

/** While a look waits for its answer, the task ends; the answer is of the time before. */
const overtakenLook: Scene = async theatre => {
  const { world, cast, wire } = theatre
  const task = await oldTask(theatre, 'overtaken-look')
  const held = world.agents.holdNext()
  world.agents.change(task, 'input-required')
  await held.came
  let waits = false
  wire.after = call => {
    waits ||= isPutOff(call)
  }
  world.flow(1.5 * second)
  world.agents.change(task, 'completed')
  await until('a look that waits, or the end', () => waits || isTold(theatre, task, 'completed'))
  held.release()
  await pass(world, cast, soon)
  return judge(theatre, task)
}

/** A push comes while a look is under way that was answered before. */
const lateChange: Scene = async theatre => {
  const { world, cast } = theatre
  const task = await oldTask(theatre, 'late-change')
  const held = world.agents.holdNext()
  world.agents.change(task, 'working')
  await held.came
  world.agents.change(task, 'working')
  await world.agents.settled()
  // Whoever puts it off does so at once; whoever drops it does nothing that could be waited for.
  await sleep(300)
  held.release()
  await pass(world, cast, soon)
  return judge(theatre, task)
}

/** The scene that shows what each rule is for. */
export const scenes: Record<RuleName, Scene> = {
  'dropped because a look was begun': dyingLook,
  'marked before it is queued': dyingWait,
  'held before it is queued': dyingTick,
  'saved without a fence': overtakenLook,
  'dropped because a look is under way': lateChange,
  'stepped over without a void': slowEntry,
}
