// Fake agents, many on one port of 127.0.0.1: each keeps its tasks' true history, pushes as its kind does, and answers as truly as its kind does.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { close, isRecord, listen } from '../../../infra/local/wire.ts'
import type { HandedOut } from '../../../shared/a2a/configs.ts'
import { isTerminal, type TaskState } from '../../../shared/a2a/task.ts'
import { type AgentKind, type Bar, ownPass, type PassKind, passKinds, type Trick } from './kinds.ts'
import { startPost } from './post.ts'
import { proofOf, published } from './proof.ts'
import type { Random } from './random.ts'
import { configsOf, pushOf, taskOf, type Version } from './words.ts'

/** A hook with what proves a push to it. */
type Addressed = { hook: HandedOut; proof: Record<string, string> }

/** A task as it really is. */
export type Task = {
  id: string
  agent: Agent
  history: Version[]
  configs: Map<string, HandedOut>
  /** Steps whose push was taken (2xx), by subscription: they are the relay's from then on. */
  taken: Map<string, Set<number>>
}

export type Agent = {
  name: string
  tenant: string
  kind: AgentKind
  url: string
  tasks: Map<string, Task>
  /** Whom every task of the agent is pushed to. */
  wide: HandedOut[]
  /** When credentials that lapse are of no use, in the bent clock's ms. */
  lapses: { from: number; until: number }[]
}

export type Agents = {
  make: (tenant: string, kind: AgentKind, name: string) => Agent
  /** Begins a task. */
  begin: (agent: Agent, id: string) => Task
  /** Changes a task, unless it has ended, and pushes the news, as its agent's kind does. */
  change: (task: Task, state: TaskState) => void
  /** Holds the next answer to GetTask, made when it was asked: `came` resolves when it is made, `release` lets it go. */
  holdNext: () => { came: Promise<void>; release: () => void }
  /** Resolves once all pushes were answered or given up. */
  settled: () => Promise<void>
  counts: { events: number; pushes: number; taken: number; looks: number; tricks: number; canceled: number }
  stop: () => Promise<void>
}

/** @param onLook called when an agent is asked for a task */
export async function startAgents(now: () => number, random: Random, onLook: () => void): Promise<Agents> {
  const agents = new Map<string, Agent>()
  const counts = { events: 0, pushes: 0, taken: 0, looks: 0, tricks: 0, canceled: 0 }
  const poster = startPost()
  const pushing = new Set<Promise<void>>()
  const holds: { come: () => void; released: Promise<void> }[] = []

  const push = async (task: Task, version: Version): Promise<void> => {
    const { kind } = task.agent
    const due = now() + random.int(0, kind.lateMs)
    while (now() < due) await sleep(5)
    const body = JSON.stringify(pushOf(named(task), version, random.chance(0.3)))
    const send = async ({ hook: { url, id }, proof }: Addressed): Promise<void> => {
      counts.pushes += 1
      const status = await poster.post(url, proof, body)
      if (status < 200 || status > 299) return
      counts.taken += 1
      const taken = task.taken.get(id) ?? new Set()
      task.taken.set(id, taken.add(version.step))
    }
    const hooks = [...task.configs.values(), ...task.agent.wide]
    const addressed = hooks.map(hook => ({ hook, proof: proofOf(task, hook, body, now()) }))
    const copies = Array.from({ length: kind.copies }, () => addressed).flat()
    await Promise.all(copies.map(send))
  }
  const change = (task: Task, state: TaskState): void => {
    // It was canceled before it came to that.
    if (isTerminal(present(task).state)) return
    const step = task.history.length
    const version = { state, at: now(), step }
    task.history.push(version)
    counts.events += 1
    if (!random.chance(task.agent.kind.pushes ?? 0)) return
    const pushed = push(task, version).finally(() => pushing.delete(pushed))
    pushing.add(pushed)
  }
  /** What asking to cancel a task comes to: the task, or that it is not canceled. */
  const cancel = (task: Task): unknown => {
    if (task.agent.kind.cancels === 'heeds' && !isTerminal(present(task).state)) {
      counts.canceled += 1
      change(task, 'canceled')
    }
    return present(task).state === 'canceled' ? taskOf(named(task), present(task)) : undefined
  }
  const server = createServer((request, response) => {
    response.on('error', () => {})
    serve(request, response).catch(() => request.socket.destroy())
  })
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method === 'GET') return void response.end(published)
    const asked = await read(request)
    const agent = agents.get(request.url?.split('/')[2] ?? '')
    if (agent === undefined || asked === undefined) return void response.writeHead(404).end()
    const { id, method, params } = asked
    const barred = barring(agent, passOf(request.headers.authorization), now())
    if (method === 'GetTask' || method === 'tasks/get') {
      counts.looks += 1
      onLook()
      if (agent.kind.slowMs > 0) await sleep(random.int(0, agent.kind.slowMs))
      const task = agent.tasks.get(String(params.id))
      const drawn = barred === undefined && task !== undefined ? drawTrick(task, now(), random) : undefined
      if (barred !== undefined || drawn !== undefined) counts.tricks += 1
      if (barred !== undefined) return bars[barred](response, id)
      if (drawn === 'other' && task !== undefined) return reply(response, id, otherThan(task))
      if (drawn !== undefined && drawn !== 'other') return bars[drawn](response, id)
      const answer = task && taskOf(named(task), shown(task, now(), random))
      const held = holds.shift()
      held?.come()
      await held?.released
      return reply(response, id, answer)
    }
    if (barred !== undefined) return bars[barred](response, id)
    const unwanted = agent.tasks.get(String(params.id))
    if (unwanted !== undefined && (method === 'CancelTask' || method === 'tasks/cancel'))
      return reply(response, id, cancel(unwanted), notCancelable)
    return reply(response, id, configCall(agent, String(method), params))
  }
  const port = await listen(server, 0)
  return {
    make: (tenant, kind, name) => {
      const url = `http://127.0.0.1:${port}/a/${name}`
      const agent: Agent = { name, tenant, kind, url, tasks: new Map(), wide: [], lapses: [] }
      agents.set(name, agent)
      return agent
    },
    begin: (agent, id) => {
      const first: Version = { state: 'submitted', at: now(), step: 0 }
      const task: Task = { id, agent, history: [first], configs: new Map(), taken: new Map() }
      agent.tasks.set(id, task)
      return task
    },
    change,
    holdNext: () => {
      const [coming, releasing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      holds.push({ come: coming.resolve, released: releasing.promise })
      return { came: coming.promise, release: releasing.resolve }
    },
    settled: async () => {
      while (pushing.size > 0) await Promise.all(pushing)
    },
    counts,
    stop: async () => {
      poster.stop()
      await close(server)
    },
  }
}

const named = ({ id, agent: { kind } }: Task) => ({ id, protocol: kind.protocol, stamps: kind.stamps })

/** What a task is now. */
export function present({ history }: Task): Version {
  const version = history.at(-1)
  if (version === undefined) throw new Error('A task begins with a state')
  return version
}

/** What a replica shows: what the task was up to `lagMs` ago. */
function shown(task: Task, now: number, random: Random): Version {
  const at = now - random.int(0, task.agent.kind.lagMs)
  return task.history.findLast(version => version.at <= at) ?? task.history[0] ?? present(task)
}

/** Credentials of a kind, as a header: the agent tells them apart by it. */
export const tokenOf = ({ name }: PassKind, id: string): string => `${name}.${id}`

const passOf = (header = ''): PassKind =>
  passKinds.find(({ name }) => header.startsWith(`Bearer ${tokenOf({ name }, '')}`)) ?? ownPass

/** What a guarded agent answers at some time to whoever shows these credentials; undefined for what it knows. */
export function barring({ kind, lapses }: Agent, pass: PassKind | undefined, at: number): Bar | undefined {
  if (!kind.guarded || pass === undefined) return undefined
  const isLapsed = lapses.some(({ from, until }) => at >= from && at < until)
  return pass.lapses === true && !isLapsed ? undefined : pass.how
}

/** The trick that a task's agent may play at some time, if its kind has one. */
export function trickOf({ agent, history }: Task, at: number): Trick | undefined {
  const { how = [], forMs = 0 } = agent.kind.trick ?? {}
  const changed = history.findLast(version => version.at <= at)
  if (changed === undefined || at - changed.at >= forMs) return undefined
  const part = Math.floor(((at - changed.at) / forMs) * how.length)
  return how[(part + changed.step) % how.length]
}

const drawTrick = (task: Task, now: number, random: Random): Trick | undefined =>
  random.chance(task.agent.kind.trick?.chance ?? 0) ? trickOf(task, now) : undefined

/** Another task of the same agent. */
const otherThan = (task: Task): unknown => taskOf({ ...named(task), id: `${task.id}-other` }, present(task))

type Answer = (response: ServerResponse, id: unknown) => void

const withStatus =
  (status: number, headers: Record<string, string> = {}): Answer =>
  response => {
    response.writeHead(status, headers).end()
  }

/** Each has an answer of its own: one that is new is a fault of type until it has. */
const bars: Record<Bar, Answer> = {
  refuse: withStatus(401),
  forbid: withStatus(403),
  fail: withStatus(500),
  busy: withStatus(429, { 'retry-after': '20' }),
  wait: withStatus(429, { 'retry-after': '1800' }),
  forget: (response, id) => reply(response, id, undefined),
  cut: response => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 5000 })
    response.write('{"jsonrpc":"2.0",', () => response.socket?.destroy())
  },
}

/** Keeps, lists and deletes push configs; lists tasks. Undefined: there is no such task, or method. */
function configCall(agent: Agent, method: string, params: Record<string, unknown>): unknown {
  const { protocol, stamps } = agent.kind
  if (method === 'ListTasks' && protocol === '1.0') {
    const since = Date.parse(String(params.statusTimestampAfter ?? '')) || 0
    const tasks = [...agent.tasks.values()].filter(task => !stamps || present(task).at >= since)
    return { tasks: tasks.map(task => taskOf(named(task), present(task))), nextPageToken: '' }
  }
  const task = agent.tasks.get(String(protocol === '1.0' ? params.taskId : (params.taskId ?? params.id)))
  if (task === undefined) return undefined
  if (/^Delete|delete$/.test(method)) {
    task.configs.delete(String(protocol === '1.0' ? params.id : params.pushNotificationConfigId))
    return {}
  }
  const given = isRecord(params.pushNotificationConfig) ? params.pushNotificationConfig : params
  const config = { url: String(given.url), id: String(given.id), token: String(given.token) }
  if (/^Create|set$/.test(method)) {
    if (!isTerminal(present(task).state)) task.configs.set(config.id, config)
    return protocol === '1.0'
      ? { taskId: task.id, ...config }
      : { taskId: task.id, pushNotificationConfig: config }
  }
  return /^List|list$/.test(method) ? configsOf(protocol, task.id, [...task.configs.values()]) : undefined
}

async function read(
  request: IncomingMessage,
): Promise<{ id: unknown; method: unknown; params: Record<string, unknown> } | undefined> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const body: unknown = JSON.parse(Buffer.concat(chunks).toString() || '{}')
  return isRecord(body)
    ? { id: body.id, method: body.method, params: isRecord(body.params) ? body.params : {} }
    : undefined
}

const notFound = { code: -32001, message: 'Task not found' }
const notCancelable = { code: -32002, message: 'Task cannot be canceled' }

/** @param error what is said if there is no result */
function reply(response: ServerResponse, id: unknown, result: unknown, error = notFound): void {
  const text = JSON.stringify({ jsonrpc: '2.0', id, ...(result === undefined ? { error } : { result }) })
  response.writeHead(200, { 'content-type': 'application/json' }).end(text)
}
