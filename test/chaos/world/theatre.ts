// Where scenes are played: a small world whose relay breaks a rule or none, a hand on its wire, and a judge of one task.
import type { Call, Fault } from '../../../infra/local/wire.ts'
import type { SeenTask } from '../../support/routes.ts'
import { type Agent, present, type Task } from './agents.ts'
import { bundleHost } from './bundle.ts'
import { type Cast, everyState, makeCast, subscribe } from './cast.ts'
import { interestsOf, judgeRest, judgeTold, type Violation } from './judge.ts'
import { agentKinds } from './kinds.ts'
import { pass } from './play.ts'
import { type Random, randomOf } from './random.ts'
import { type Break, changing } from './rules.ts'
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

export const second = 1000
export const hour = 60 * 60 * second
/** A look that has to wait, and the lease of one that died. */
export const soon = [2, 3, 10, 20, 10].map(seconds => seconds * second)
/** Targets may take their time: a busy machine must not look like a dead one. */
const haste = 0.5

/** Opens a theatre whose relay breaks a rule, or none. */
export async function openTheatre({ texts = [], bend }: Break): Promise<Theatre> {
  const program = await bundleHost([changing(texts)])
  const random = randomOf('scenes')
  const wire: Wire = { before: () => undefined, after: () => {} }
  const world = await startWorld({
    ...{ random, hosts: 1, program: program.file, haste, skewMs: 0 },
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

/** A task that has been at work for long, so that only its pushes make anybody look at it soon. */
export async function oldTask({ world, cast, random, agent }: Theatre, id: string): Promise<Task> {
  const task = world.agents.begin(agent, id)
  await subscribe(world, cast, random, { agent, how: 'bound', task, states: everyState })
  await pass(world, cast, [0, 2 * second, 12 * hour, 2 * second])
  return task
}

/** Ends the process that makes a call, the first time one fits. Resolves when it has come to that. */
export function killAt(theatre: Theatre, fits: (call: Call) => boolean): Promise<void> {
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

/** Judges what was told, and whether what the task shows now is what the relay shows of it. */
export async function judge(theatre: Theatre, task: Task): Promise<Violation[]> {
  const { world, cast } = theatre
  const interests = interestsOf(cast, task)
  const { step, state } = present(task)
  const { call } = await world.api(task.agent.tenant)
  const shown = await call<SeenTask>('GET', `/v1/tasks/${task.agent.name}/${task.id}`)
  const text = JSON.stringify(shown)
  const stale: Violation = { rule: 'late', task: task.id, says: `step ${step} is not shown, but ${text}` }
  const wrong: Violation = { rule: 'wrong', task: task.id, says: `it is ${state}, shown is ${text}` }
  return [
    ...judgeRest(task, interests, 'prompt', true),
    ...judgeTold(task, interests, []),
    ...(JSON.stringify(shown.task).includes(`Step ${step} of`) ? [] : [stale]),
    ...(shown.state === state ? [] : [wrong]),
  ]
}
