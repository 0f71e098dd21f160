// Targets by name for trips: made for a client of their own, seen as the API shows them, and told the end of a task.
import type { Client } from './clients.ts'
import type { Scene, Trip } from './trip.ts'

export type SeenTarget = {
  target: string
  secret: string
  status: string
  generation: number
  secretGeneration: number
  nextProbeAt?: number
}

/** What a trip does with its targets. */
export const aimsOf = (trip: Trip, scene: Scene) => {
  const put = (target: string, { url }: Client, more: Record<string, unknown> = {}): Promise<SeenTarget> =>
    trip.call<SeenTarget>('PUT', `/v1/targets/${target}`, { url, ...more })
  return {
    put,
    makeTarget: async (target: string, more?: Record<string, unknown>): Promise<Client> => {
      const client = trip.clients.make()
      client.secret = (await put(target, client, more)).secret
      return client
    },
    see: (target: string): Promise<SeenTarget> => trip.call<SeenTarget>('GET', `/v1/targets/${target}`),
    /** A task that targets are told the end of. */
    tell: async (...targets: string[]): Promise<void> => {
      const { taskId } = await trip.begin(scene, { targets })
      await scene.agent.setState(taskId, 'completed')
      await trip.settle()
    },
  }
}
