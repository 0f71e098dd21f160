// Stands the world up: table and queues here, the doors in processes that may be killed, agents and targets of all kinds, and one bent clock for all.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda'
import { createClock } from '../../../infra/local/clock.ts'
import { type Ground, startGround } from '../../../infra/local/ground.ts'
import type { Call, Fault } from '../../../infra/local/wire.ts'
import type { DoorName, QueueName } from '../../../infra/topology.ts'
import { type Routes, routesOf } from '../../support/routes.ts'
import { type Agents, startAgents } from './agents.ts'
import { type Hosts, startHosts } from './hosts.ts'
import type { Random } from './random.ts'
import { startTargets, type Targets } from './targets.ts'
import { createSky, type Sky } from './weather.ts'

export type World = {
  now: () => number
  ground: Ground
  hosts: Hosts
  sky: Sky
  agents: Agents
  targets: Targets
  /** A tenant's API, made at the first call. */
  api: (tenant: string) => Promise<Routes>
  /** Moves the clock by less than any time-out, whatever is under way. */
  flow: (milliseconds: number) => void
  /** Moves the clock by any time, while nothing is under way: a function never sees its own time-out pass. */
  leap: (milliseconds: number) => Promise<void>
  /** Does all that is due; then nothing is under way. */
  settle: () => Promise<void>
  /** Invocations that failed, or gave messages back, since the last call. */
  stumbles: () => number
  /** Whether this machine stood still for so long, since the last call, that agents and targets seemed to be gone. */
  stalled: () => boolean
  stop: () => Promise<void>
}

/** Targets are given up after 3 s, and the doors' processes stand still as this one does. */
const longestStallMs = 700

export type WorldOptions = {
  random: Random
  /** Processes that share the work. */
  hosts: number
  /** Kills come at this step of the log. */
  step?: string | undefined
  /** The program of the doors' processes, from `bundleHost`. */
  program: string
  haste?: number
  /** How far the clock of a process may be off, in ms. */
  skewMs?: number
  /** Told of each call after its effect. */
  onCall?: (call: Call) => void
  meddle?: ((call: Call) => Fault | undefined | Promise<Fault | undefined>) | undefined
}

export async function startWorld({
  random,
  hosts: count,
  step,
  program,
  haste = 5,
  skewMs = 400,
  meddle,
  onCall,
}: WorldOptions): Promise<World> {
  const clock = createClock()
  const parts: { hosts?: Hosts } = {}
  const hosts = (): Hosts => {
    if (parts.hosts === undefined) throw new Error('No process runs yet')
    return parts.hosts
  }
  const sky = createSky(random.stream('sky'), { victims: hosts, step, meddle })
  const invoke =
    (door: DoorName) =>
    (event: unknown): Promise<never> =>
      hosts().call(door, event) as Promise<never>
  const ground = await startGround(
    {
      receive: () => invoke('receive'),
      api: () => invoke('api'),
      look: () => carry('look', sky, hosts),
      deliver: () => carry('deliver', sky, hosts),
      tick: () => invoke('tick'),
    },
    { clock, tick: 'manual', env: { DUE_SHARDS: '2' }, faults: sky.faults, ...(onCall && { onCall }) },
  )
  const clocks = random.stream('clocks')
  const skew = (): number => clocks.int(-skewMs, skewMs)
  // A step can only be died at if it is logged.
  const env = { ...ground.env, LOG_LEVEL: step === undefined ? 'error' : 'debug' }
  parts.hosts = await startHosts({ count, env, program, haste, skew })
  const agents = await startAgents(clock.now, random.stream('agents'), sky.strike)
  const targets = await startTargets(clock.now, random.stream('targets'), sky.strike)
  let stumbles = 0
  hosts().onStumble(() => {
    stumbles += 1
  })
  const stalls = monitorEventLoopDelay({ resolution: 20 })
  stalls.enable()
  let bent = 0
  const bend = (milliseconds: number): void => {
    bent += milliseconds
    hosts().bend(bent)
    ground.advance(milliseconds)
  }
  const keys = new Map<string, Promise<Routes>>()
  return {
    ...{ now: clock.now, ground, hosts: hosts(), sky, agents, targets },
    api: tenant => {
      const known = keys.get(tenant) ?? makeTenant(ground, tenant)
      keys.set(tenant, known)
      return known
    },
    flow: bend,
    leap: async milliseconds => {
      await hosts().hold()
      bend(milliseconds)
      hosts().release()
    },
    settle: () => settle(ground, agents),
    stumbles: () => {
      const since = stumbles
      stumbles = 0
      return since
    },
    stalled: () => {
      const longestMs = stalls.max / 1e6
      stalls.reset()
      return longestMs > longestStallMs
    },
    stop: async () => {
      stalls.disable()
      await hosts().stop()
      await Promise.all([ground.kill(), agents.stop(), targets.stop()])
    },
  }
}

/** Brings messages as SQS may: some twice, some late. A copy that comes again is deleted with the first, so its answer is nobody's. */
const carry =
  (queue: QueueName, sky: Sky, hosts: () => Hosts) =>
  async (event: SQSEvent): Promise<SQSBatchResponse> => {
    const { now, late, again } = sky.shuffle(event)
    if (again.length > 0) {
      const second = async (): Promise<void> => {
        await sleep(200)
        await hosts().call(queue, { Records: again })
      }
      second().catch(() => {})
    }
    const answer = now.Records.length > 0 ? await hosts().call(queue, now) : { batchItemFailures: [] }
    const { batchItemFailures } = answer as SQSBatchResponse
    return { batchItemFailures: [...batchItemFailures, ...late.map(itemIdentifier => ({ itemIdentifier }))] }
  }

async function settle(ground: Ground, agents: Agents): Promise<void> {
  for (let tries = 0; ; tries++) {
    await agents.settled()
    try {
      await ground.drain(60_000)
      return
    } catch (error) {
      // What stumbles under the weather comes again by itself.
      if (tries === 4) throw error
    }
  }
}

async function makeTenant(ground: Ground, tenant: string): Promise<Routes> {
  const { call } = routesOf(ground.apiOrigin, ground.secrets.operatorKey)
  await call('PUT', `/v1/tenants/${tenant}`, {})
  const made = await call<{ key: string }>('POST', '/v1/keys', { tenant, scopes: ['admin', 'write', 'read'] })
  return routesOf(ground.apiOrigin, made.key)
}
