// A world with agents that a test scripts, one each, and somebody who waits for a task of theirs.
import { beforeAll } from 'vitest'
import type { Client } from './clients.ts'
import { type Scripted, startScripted, status } from './scripted.ts'
import { type Subscribed, startTrip, type Trip } from './trip.ts'

export const minute = 60_000
export const hour = 60 * minute
export const day = 24 * hour

export type Waits = {
  trip: Trip
  /** An agent of its own, so that what it is asked and how it fares is of one test alone. */
  agentOf: (more?: Record<string, unknown>) => Promise<{ agent: Scripted; id: string }>
  /** A number that no other agent of this world has. */
  count: () => number
  /** Somebody waits for a task that works. */
  begin: (
    more?: Record<string, unknown>,
    asked?: Record<string, unknown>,
  ) => Promise<Subscribed & { agent: Scripted; id: string; taskId: string }>
  /** Ends with the world, too. */
  alsoStop: (stop: () => Promise<unknown>) => void
  stop: () => Promise<void>
}

/** Starts the world. */
async function startWaits(options?: Parameters<typeof startTrip>[0]): Promise<Waits> {
  const trip = await startTrip(options)
  const stops: (() => Promise<unknown>)[] = [trip.stop]
  let made = 0
  const agentOf: Waits['agentOf'] = async more => {
    const agent = await startScripted()
    stops.push(agent.stop)
    const id = `odd-${++made}`
    await trip.call('PUT', `/v1/agents/${id}`, {
      ...{ url: `${agent.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true, ...more },
    })
    return { agent, id }
  }
  return {
    trip,
    agentOf,
    count: () => ++made,
    begin: async (more, asked) => {
      const { agent, id } = await agentOf(more)
      const taskId = `task-of-${id}`
      agent.put(taskId, status('working'))
      const subscribed = await trip.subscribe(id, { taskId, ...asked })
      await trip.pass(3000, 3)
      return { ...subscribed, agent, id, taskId }
    },
    alsoStop: stop => {
      stops.push(stop)
    },
    stop: async () => {
      await Promise.all(stops.map(stop => stop()))
    },
  }
}

/** The world of the test file that runs, and its trip; `waitsOfFile` starts it. */
export let world: Waits
export let trip: Trip

/** Has a world for the tests of the file that calls it: started before them, stopped after them. One worker runs one file at a time. */
export function waitsOfFile(options?: Parameters<typeof startTrip>[0]): void {
  beforeAll(async () => {
    world = await startWaits(options)
    trip = world.trip
    // Given back, it is run after the tests, and only if the world began.
    return world.stop
  })
}

/** What a client was told, by type. */
export const typesTold = (client: Client): string[] => client.told().map(({ type }) => type)

/** A client that hears what the tenant's operations are told. @returns what it was told of an agent so far, by type */
export async function hearOperations(trip: Trip): Promise<(agent: string) => string[]> {
  const client = trip.clients.make()
  const { secret } = await trip.call<{ secret: string }>('PUT', '/v1/targets/operations', { url: client.url })
  client.secret = secret
  await trip.call('PUT', '/v1/operations', { targets: ['operations'] })
  return agent =>
    client
      .told()
      .filter(({ data }) => (data as { about?: { agent?: string } }).about?.agent === agent)
      .map(({ type }) => type)
}
