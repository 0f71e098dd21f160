// Fills the world: tenants with agents, clients and targets of all kinds, and subscriptions of all sorts. Repeats a request until it is answered well, as a backend would.
import { setTimeout as sleep } from 'node:timers/promises'
import { type TaskState, taskStates } from '../../../shared/a2a/task.ts'
import type { Made } from '../../support/routes.ts'
import { type Agent, type Task, tokenOf } from './agents.ts'
import {
  type AgentKind,
  agentKinds,
  type PassKind,
  passKinds,
  type TargetKind,
  targetKinds,
} from './kinds.ts'
import type { Random } from './random.ts'
import type { Target } from './targets.ts'
import type { World } from './world.ts'

/** An entry of an inbox, as the API shows it. */
export type Entry = {
  seq: number
  id: string
  type: string
  taskId: string
  state: TaskState
  rev: number
  at: number
  subscription: string
}

/** A client app with its inbox, read on and on by its cursor. */
export type Client = {
  name: string
  tenant: string
  cursor: number
  /** What the cursor has shown, in order, and the same by task. */
  read: Entry[]
  byTask: Map<string, Entry[]>
}

/** One subscription: who wants to hear of what. */
export type Interest = {
  id: string
  client: Client
  targets: Target[]
  states: readonly TaskState[]
  /** Missing for one that covers all tasks of an agent. */
  task?: Task
  agent: Agent
  /** Known to the relay by the request, or by the first push only. */
  how: 'bound' | 'unbound' | 'wide'
  /** Its credentials, if its agent wants some. */
  pass?: PassKind
  begun: number
  /** Since when it is to be deleted, and since when it is. */
  ending?: number
  deletedAt?: number
}

export type Cast = {
  tenants: string[]
  agents: Agent[]
  clients: Client[]
  targets: Target[]
  interests: Interest[]
}

const news: readonly TaskState[] = [
  'completed',
  'failed',
  'canceled',
  'rejected',
  'input-required',
  'auth-required',
]
export const everyState = taskStates.filter(state => state !== 'submitted')
const yearSeconds = 365 * 24 * 60 * 60
/** Longer than the changes of a wave take, and shorter than the rest after them. */
const hopTimeoutSeconds = 60 * 60

/** Whom to make. */
export type Call = {
  tenants: number
  agents?: readonly AgentKind[]
  targets?: readonly TargetKind[]
  /** Share of agents with somebody who wants to hear of all their tasks. */
  wide?: number
  /** Clients of each tenant. */
  clients?: number
}

/** Makes everybody; of some agents, by chance, a client wants to hear of all tasks. */
export async function makeCast(
  world: World,
  random: Random,
  { tenants, agents = agentKinds, targets = targetKinds, wide = 0.5, clients = 2 }: Call,
): Promise<Cast> {
  const cast: Cast = { tenants: [], agents: [], clients: [], targets: [], interests: [] }
  for (let at = 1; at <= tenants; at++) {
    const tenant = `tenant-${at}`
    cast.tenants.push(tenant)
    for (let n = 1; n <= clients; n++)
      cast.clients.push({ name: `client-${at}-${n}`, tenant, cursor: 0, read: [], byTask: new Map() })
    for (const kind of targets) await makeTarget(world, cast, tenant, kind, `${kind}-${at}`)
    for (const [n, kind] of agents.entries()) {
      // Dealt out like cards: the kinds are many, and one of each is enough.
      if (n % tenants !== at - 1) continue
      const agent = world.agents.make(tenant, kind, `${kind.name}-${at}`)
      cast.agents.push(agent)
      await put(world, tenant, `/v1/agents/${agent.name}`, {
        ...{ url: agent.url, binding: 'JSONRPC', version: kind.protocol, offline: true },
        pushNotifications: kind.pushes !== null,
        verification: kind.signs
          ? { jwt: { jwksUrl: `${agent.url}/keys`, issuer: agent.url } }
          : { token: true },
      })
      // Who may not see every task of an agent, or has one canceled, subscribes to one.
      const isOpen = kind.pushes !== null && !kind.guarded && kind.cancels === undefined
      if (isOpen && random.chance(wide)) await subscribe(world, cast, random, { agent, how: 'wide' })
    }
  }
  return cast
}

async function makeTarget(
  world: World,
  cast: Cast,
  tenant: string,
  kind: Target['kind'],
  name: string,
): Promise<void> {
  const target = world.targets.make(tenant, kind, name)
  cast.targets.push(target)
  await put(world, tenant, `/v1/targets/${name}`, { url: target.url })
}

type Wish = {
  agent: Agent
  how: Interest['how']
  task?: Task
  states?: readonly TaskState[]
  pass?: PassKind
}

/** Subscribes a client of the tenant, woken at one or two targets. */
export async function subscribe(world: World, cast: Cast, random: Random, wish: Wish): Promise<void> {
  const { agent, how, task } = wish
  const { tenant } = agent
  const client = random.pick(cast.clients.filter(one => one.tenant === tenant))
  const known = cast.targets.filter(one => one.tenant === tenant)
  const targets = [...new Set([random.pick(known), ...(random.chance(0.2) ? [random.pick(known)] : [])])]
  const states = wish.states ?? (random.chance(0.25) ? everyState : news)
  const id = `sub-${cast.interests.length + 1}`
  const pass = agent.kind.guarded ? (wish.pass ?? random.pick(passKinds)) : undefined
  const own = { ...(task && { task }), ...(pass && { pass }) }
  cast.interests.push({ id, client, targets, states, agent, how, ...own, begun: world.now() })
  const made = await put<Made>(world, tenant, `/v1/subscriptions/${id}`, {
    ...{ agent: agent.name, client: client.name, states, ttlSeconds: yearSeconds },
    targets: targets.map(({ name }) => name),
    ...(how === 'wide' ? { scope: 'agent' } : {}),
    ...(how === 'bound' && { taskId: task?.id }),
    ...(agent.kind.cancels && { hopTimeoutSeconds, onOverdue: 'cancel' }),
    ...(pass && pass.isOwn !== true && { credentials: { type: 'bearer', token: tokenOf(pass, id) } }),
  })
  const hook = made.pushNotificationConfig
  if (how === 'wide') agent.wide.push(hook)
  else if (how === 'unbound') task?.configs.set(id, hook)
}

/** Deletes a subscription: from the answer on nobody is told on its behalf. */
export async function unsubscribe(world: World, interest: Interest): Promise<void> {
  interest.ending = world.now()
  const { call } = await world.api(interest.agent.tenant)
  await insist(async tries => {
    try {
      await call('DELETE', `/v1/subscriptions/${interest.id}`)
    } catch (error) {
      // A call whose answer was lost had its effect all the same.
      if (tries === 0 || !/ answered 404: /.test(String(error))) throw error
    }
  })
  interest.deletedAt = world.now()
}

async function put<T>(world: World, tenant: string, path: string, body: unknown): Promise<T> {
  const { call } = await world.api(tenant)
  return insist(() => call<T>('PUT', path, body))
}

/** Does something until it succeeds. @param work told how often it was tried before */
async function insist<T>(work: (tries: number) => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++)
    try {
      return await work(tries)
    } catch (error) {
      if (tries === 20) throw error
      await sleep(20)
    }
}
