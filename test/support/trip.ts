// Stands up the whole relay for a trip: real doors on the local ground with a bent clock, real A2A agents, clients with webhooks.
import { type Caller, callAgent } from '../../infra/local/agent/caller.ts'
import type { Variant } from '../../infra/local/agent/cards.ts'
import { type AgentOptions, type DemoAgent, startAgent } from '../../infra/local/agent.ts'
import { type Local, type LocalOptions, startLocal } from '../../infra/local/run.ts'
import type { Call } from '../../infra/local/wire.ts'
import type { HandedOut } from '../../shared/a2a/configs.ts'
import type { Step } from '../../shared/log.ts'
import { windowMs } from '../../shared/policy.ts'
import { type Client, type Clients, startClients } from './clients.ts'
import { ear } from './ear.ts'
import { type Made, type Routes, routesOf } from './routes.ts'

/** An agent that is registered under a name of its own, and a client app that speaks to it. */
export type Scene = { id: string; agent: DemoAgent; caller: Caller }

export type Trip = Routes & {
  /** The relay that runs now. */
  readonly local: Local
  /** Stops the relay, and starts it again on the data folder and ports it was given. */
  restart: (env?: Record<string, string>) => Promise<void>
  /** What the doors logged, in order. */
  steps: Step[]
  /** Calls of AWS operations that had their effect, in order. */
  calls: Call[]
  clients: Clients
  startAgent: (options?: AgentOptions) => Promise<DemoAgent>
  /** Registers an agent by the card of one variant. */
  register: (
    agent: DemoAgent,
    more?: Asked & { variant?: Partial<Variant>; bearer?: string },
  ) => Promise<Scene>
  /** An agent of its own, registered. */
  scene: (more?: Asked & { variant?: Partial<Variant>; bearer?: string }) => Promise<Scene>
  /** Subscribes a client of its own, woken by webhook and inbox. */
  subscribe: (agent: string, asked?: Asked) => Promise<Subscribed>
  /** A task, subscribed to and looked at: whatever comes next need not wait for the window to end. */
  begin: (scene: Scene, asked?: Asked) => Promise<Begun>
  /** Does all that is due now. */
  settle: () => Promise<void>
  /** Lets time pass in strides of equal length, one unless said; all that is due after each is done. */
  pass: (milliseconds: number, strides?: number) => Promise<void>
  /** Resolves once it is so; asked after each step, AWS call and webhook. */
  until: (isSo: () => boolean) => Promise<void>
  /** The steps of one name about a task. */
  stepsOf: (name: string, taskId: string) => Step[]
  /** Holds the next AWS call that fits: `held` resolves when it came, `release` lets it go on. */
  hold: (fits: (call: Call) => boolean) => { held: Promise<void>; release: () => void }
  stop: () => Promise<void>
}

type Asked = Record<string, unknown>

export type Subscribed = { client: Client; made: Made; hook: HandedOut }

export type Begun = Subscribed & { taskId: string }

type Held = { fits: (call: Call) => boolean; came: () => void; released: Promise<void> }

/** Starts everything; time passes by itself too, but nothing waits for it. */
export async function startTrip(options: LocalOptions = {}): Promise<Trip> {
  const steps: Step[] = []
  const calls: Call[] = []
  const holds = new Set<Held>()
  const waiting = new Set<() => void>()
  const happened = (): void => {
    for (const look of waiting) look()
  }
  const start = (env?: Record<string, string>): Promise<Local> =>
    startLocal({
      tick: 'manual',
      ...options,
      // A tick reads every shard, and a trip ticks often.
      env: { DUE_SHARDS: '2', ...options.env, ...env },
      write: ear.line,
      onStep: (_door, step) => {
        steps.push(step)
        happened()
      },
      onCall: call => {
        calls.push(call)
        happened()
      },
      faults: async call => {
        for (const hold of holds) {
          if (!hold.fits(call)) continue
          holds.delete(hold)
          hold.came()
          await hold.released
        }
        return options.faults?.(call)
      },
    })
  let local = await start()
  const now = (): number => local.now()
  const clients = await startClients(now, happened)
  const routes = routesOf(local.apiOrigin, local.keys.demo ?? '')
  const agents: DemoAgent[] = []
  const launch: Trip['startAgent'] = async more => {
    const agent = await startAgent({ now, ...more })
    agents.push(agent)
    return agent
  }
  let registered = 0
  const register: Trip['register'] = async (agent, { variant, bearer, ...more } = {}) => {
    const id = `agent-${++registered}`
    const cardUrl = agent.cardUrl({ ...variant })
    await routes.call('PUT', `/v1/agents/${id}`, { cardUrl, ...more })
    return { id, agent, caller: await callAgent(cardUrl, bearer) }
  }
  const subscribe: Trip['subscribe'] = async (agent, asked) => {
    const client = clients.make()
    const whom = { client: client.name, targets: [{ url: client.url }] }
    const made = await routes.call<Made>('POST', '/v1/subscriptions', { agent, ...whom, ...asked })
    client.secret = made.targets[0]?.secret ?? ''
    return { client, made, hook: made.pushNotificationConfig }
  }
  return {
    ...routes,
    get local() {
      return local
    },
    restart: async env => {
      await local.stop()
      local = await start(env)
    },
    ...{ steps, calls, clients, register },
    startAgent: launch,
    scene: async more => register(await launch(), more),
    subscribe,
    begin: async ({ id, caller }, asked) => {
      const taskId = await caller.send('work')
      const subscribed = await subscribe(id, { taskId, ...asked })
      await local.drain()
      local.advance(windowMs)
      return { ...subscribed, taskId }
    },
    settle: () => local.drain(),
    pass: async (milliseconds, strides = 1) => {
      for (let stride = 0; stride < strides; stride++) {
        local.advance(milliseconds / strides)
        await local.drain()
      }
    },
    until: isSo =>
      new Promise(resolve => {
        const look = (): void => {
          if (!isSo()) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    stepsOf: (name, taskId) => steps.filter(({ step, task }) => step === name && task === taskId),
    hold: fits => {
      const came = Promise.withResolvers<void>()
      const release = Promise.withResolvers<void>()
      holds.add({ fits, came: came.resolve, released: release.promise })
      return { held: came.promise, release: release.resolve }
    },
    stop: async () => {
      await Promise.all(agents.map(agent => agent.stop()))
      await Promise.all([local.stop(), clients.stop()])
    },
  }
}

/** Pushes a body to a hook as a sender would, with what was handed out. @returns the HTTP status */
export async function push(
  hook: HandedOut,
  body: unknown,
  headers: Record<string, string> = tokenOf(hook),
): Promise<number> {
  const response = await fetch(hook.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  await response.body?.cancel()
  return response.status
}

/** The header that proves a push by the token handed out. */
export const tokenOf = ({ token }: HandedOut): Record<string, string> =>
  token === undefined ? {} : { 'x-a2a-notification-token': token }

/** A v1.0 push that names a task's state. */
export const statusPush = (taskId: string, state: string): Record<string, unknown> => ({
  statusUpdate: { taskId, contextId: 'c-1', status: { state: `TASK_STATE_${state.toUpperCase()}` } },
})
