// Short plays in which one thing happens at the worst moment: each is lost on a relay that breaks the rule it is for, and not on one that keeps it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Call, Fault } from '../../../infra/local/wire.ts'
import type { TaskState } from '../../../shared/a2a/task.ts'
import type { SeenTask } from '../../support/routes.ts'
import { type Agent, present, type Task } from './agents.ts'
import { bundleHost } from './bundle.ts'
import { type Cast, everyState, makeCast, subscribe } from './cast.ts'
import { interestsOf, judgeCursor, judgeRest, judgeTold, type Violation } from './judge.ts'
import { agentKinds } from './kinds.ts'
import { pass, readAll, readWhole } from './play.ts'
import { type Random, randomOf } from './random.ts'
import type { Break } from './rules.ts'
import { startWorld, type World } from './world.ts'

/** A hand on the wire. */
type Wire = {
  /** Called before each call of a door. */
  before: (call: Call) => Fault | undefined | Promise<Fault | undefined>
  /** Called after each call's effect. */
  after: (call: Call) => void
}

/** Where scenes are played: one agent, and one client with one target. */
export type Theatre = {
  world: World
  cast: Cast
  random: Random
  agent: Agent
  wire: Wire
  stop: () => Promise<void>
}

const second = 1000
const hour = 60 * 60 * second
/** A look that has to wait, and the lease of one that died. */
const soon = [2, 3, 10, 20, 10].map(seconds => seconds * second)
/** Targets and agents may take their time: a busy machine must not look like a dead one. */
const haste = 0.5

/** Opens a theatre whose relay breaks a rule, or none. */
export async function openTheatre({ plugins = [], bend }: Break): Promise<Theatre> {
  const program = await bundleHost(plugins)
  const random = randomOf('scenes')
  const wire: Wire = { before: () => undefined, after: () => {} }
  const world = await startWorld({
    ...{ random, hosts: 1, program: program.file, haste },
    meddle: call => {
      bend?.(call)
      return wire.before(call)
    },
    onCall: call => wire.after(call),
  })
  const kinds = agentKinds.filter(({ name }) => name === 'fast')
  const few = { tenants: 1, agents: kinds, targets: ['fine'], wide: 0, clients: 1 } as const
  const cast = await makeCast(world, random, few)
  const [agent] = cast.agents
  if (agent === undefined) throw new Error('There is no agent')
  const stop = async (): Promise<void> => {
    await world.stop()
    program.remove()
  }
  return { world, cast, random, agent, wire, stop }
}

export type Scene = (theatre: Theatre) => Promise<Violation[]>

/** A task that has been at work for long, so that only its pushes make anybody look at it soon. */
async function oldTask({ world, cast, random, agent }: Theatre, id: string): Promise<Task> {
  const task = world.agents.begin(agent, id)
  world.agents.change(task, 'working')
  await subscribe(world, cast, random, { agent, how: 'bound', task, states: everyState })
  await pass(world, cast, [0, 2 * second, 12 * hour])
  return task
}

/** Ends the process that makes a call, the first time one fits. Resolves when it has come to that. */
function killAt(theatre: Theatre, fits: (call: Call) => boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  theatre.wire.before = call => {
    if (!fits(call)) return undefined
    theatre.wire.before = () => undefined
    theatre.world.hosts.kill(/h\d+$/.exec(call.who)?.[0] ?? '')
    resolve()
    return 'throttle'
  }
  return promise
}

const said = ({ body }: Call): string => JSON.stringify(body)
const isMark = (call: Call): boolean => call.operation === 'UpdateItem' && said(call).includes('#again = ')
const isPutOff = (call: Call): boolean =>
  call.operation === 'SendMessage' && said(call).includes('\\"mark\\"')
const isEntry = (call: Call): boolean => call.operation === 'PutItem' && said(call).includes('"e#')

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(20)
}

/** Judges what was told, and whether what the task shows now is what the relay shows of it. */
async function judge(theatre: Theatre, task: Task, inPeace: boolean): Promise<Violation[]> {
  const { world, cast } = theatre
  const interests = interestsOf(cast, task)
  const { step } = present(task)
  const { call } = await world.api(task.agent.tenant)
  const shown = await call<SeenTask>('GET', `/v1/tasks/${task.agent.name}/${task.id}`)
  const stale: Violation = {
    ...{ rule: inPeace ? 'late' : 'lost', task: task.id },
    says: `step ${step} is not shown, but ${JSON.stringify(shown)}`,
  }
  return [
    ...judgeRest(task, interests, inPeace ? 'prompt' : 'pushed', inPeace),
    ...judgeTold(task, interests, []),
    ...(JSON.stringify(shown.task).includes(`Step ${step} of`) ? [] : [stale]),
  ]
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
  return judge(theatre, task, true)
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
  await until(() => isTold(theatre, quick, 'completed'))
  world.flow(12 * second)
  await readAll(world, cast)
  released.resolve()
  await pass(world, cast, soon)
  const skipped: Violation[] = []
  for (const client of cast.clients) skipped.push(...judgeCursor(client, await readWhole(world, client)))
  return [...skipped, ...(await judge(theatre, slow, true)), ...(await judge(theatre, quick, true))]
}

/** The scene that shows what each rule is for. */
export const scenes: Record<string, Scene> = {
  'marked before it is queued': dyingWait,
  'stepped over without a void': slowEntry,
}
