// A whole relay with fast agents and targets around it, for loads: doors in this process or apart, time bent, every call of AWS told to whoever counts.
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { type Clock, createClock } from '../../infra/local/clock.ts'
import { type Local, type LocalOptions, startLocal } from '../../infra/local/run.ts'
import type { HandedOut } from '../../shared/a2a/configs.ts'
import { type Made, type Routes, routesOf } from '../support/routes.ts'
import { type FastAgent, pushOf, startFast } from './agent.ts'
import { type FastTarget, startTarget } from './target.ts'

export type Watched = { taskId: string; client: string; hook: HandedOut }

/** A target to be made: its path, and its limits if they are not the usual ones. */
type Hand = { path: string; maxConcurrency?: number }

export type Stand = {
  local: Local
  routes: (tenant: string) => Routes
  agent: FastAgent
  /** Where webhooks arrive. */
  target: FastTarget
  /** Registers the fast agent for a tenant under a name, with more fields if given. */
  register: (tenant: string, name: string, more?: object) => Promise<void>
  /** Subscribes a client of its own, with a webhook of its own, to a task. */
  subscribe: (tenant: string, agent: string, taskId: string, target?: string) => Promise<Watched>
  /** Subscribes a client to all tasks of an agent, woken at a target of its own, which has its name. */
  follow: (tenant: string, agent: string, client: string, hand: Hand) => Promise<Watched>
  /** Pushes a state; `step` makes it another event than the last. @returns status and ms until the answer */
  push: (to: Watched, state: string, step: number) => Promise<{ status: number; ms: number }>
  /** Lets time pass in strides of equal length; all that is due after each is done. */
  pass: (ms: number, strides?: number, limitMs?: number) => Promise<void>
  stop: () => Promise<void>
}

/** A clock that stands still but for its advances, so that a slow machine is no slow day. Queues follow it closely. */
function stillClock(): { clock: Clock; stop: () => void } {
  const clock = createClock()
  const cell = new BigInt64Array(clock.offset)
  let time = Date.now()
  const hold = (): bigint => Atomics.store(cell, 0, BigInt(time - Date.now()))
  const timer = setInterval(hold, 5)
  const advance = (ms: number): void => {
    time += ms
    hold()
  }
  return { clock: { offset: clock.offset, now: () => time, advance }, stop: () => clearInterval(timer) }
}

export async function startStand(options: LocalOptions = {}): Promise<Stand> {
  const still = stillClock()
  const env = { LOG_LEVEL: 'info', ...options.env }
  const local = await startLocal({ tick: 'manual', clock: still.clock, ...options, env })
  const agent = await startFast(() => local.now())
  const target = await startTarget(() => local.now())
  const kept = new Agent({ keepAlive: true, maxSockets: 16 })
  const routes = (tenant: string): Routes => routesOf(local.apiOrigin, local.keys[tenant] ?? '')
  return {
    local,
    routes,
    agent,
    target,
    register: async (tenant, name, more) => {
      const hand = { url: agent.url, binding: 'JSONRPC', version: '1.0', ...more }
      await routes(tenant).call('PUT', `/v1/agents/${name}`, hand)
    },
    subscribe: async (tenant, name, taskId, path = `/woken/${tenant}/${taskId}`) => {
      const client = `client-${taskId}`
      const whom = { taskId, client, targets: [{ url: target.origin + path }] }
      const made = await routes(tenant).call<Made>('POST', '/v1/subscriptions', { agent: name, ...whom })
      return { taskId, client, hook: made.pushNotificationConfig }
    },
    follow: async (tenant, name, client, { path, ...limits }) => {
      const { call } = routes(tenant)
      await call('PUT', `/v1/targets/${client}`, { url: target.origin + path, ...limits })
      const whom = { scope: 'agent', client, targets: [client] }
      const made = await call<Made>('POST', '/v1/subscriptions', { agent: name, ...whom })
      return { taskId: '', client, hook: made.pushNotificationConfig }
    },
    push: (to, state, step) => send(kept, to, pushOf(to.taskId, state, step)),
    pass: async (ms, strides = 1, limitMs = 600_000) => {
      for (let stride = 0; stride < strides; stride++) {
        local.advance(ms / strides)
        await local.drain(limitMs)
      }
    },
    stop: async () => {
      kept.destroy()
      still.stop()
      await Promise.all([local.stop(), agent.stop(), target.stop()])
    },
  }
}

async function send(agent: Agent, { hook }: Watched, body: string): Promise<{ status: number; ms: number }> {
  const begun = performance.now()
  const posted = request(hook.url, {
    agent,
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-a2a-notification-token': hook.token ?? '' },
  })
  posted.end(body)
  const [response] = await once(posted, 'response')
  await response.resume().toArray()
  return { status: response.statusCode, ms: performance.now() - begun }
}

/** Runs work for each, so many at a time. @returns what came of each, in the order of the list */
export async function each<T, R>(
  list: readonly T[],
  abreast: number,
  work: (one: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const left = list.entries()
  await Promise.all(
    Array.from({ length: abreast }, async () => {
      for (const [at, one] of left) results[at] = await work(one)
    }),
  )
  return results
}
