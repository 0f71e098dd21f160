// Replaces the token and credentials that were handed out with a hook; those before them are accepted for a while longer.
import * as z from 'zod'
import { RouseError } from '../../shared/errors.ts'
import { signs } from '../../shared/issued.ts'
import type { Agent, Subscription } from '../../shared/model.ts'
import { type Relay, within } from '../../shared/relay.ts'
import { getAgent } from '../../shared/store/agents.ts'
import { rotateSubscription } from '../../shared/store/subscriptions.ts'
import { parentOf } from '../../shared/store/trees.ts'
import { handedOut, lookSoon, register } from '../../shared/subscribing.ts'
import { Overlap } from './input.ts'
import { shown } from './subscribing.ts'

/** The generation to be replaced is named, so that a request that is sent twice does not replace its own. */
export const RotateRequest = z.strictObject({
  generation: z.number().int().min(1),
  overlapSeconds: Overlap,
})

type RotateRequest = z.infer<typeof RotateRequest>

/**
 * Hands out the push config anew and gives it to the agent too, if the task is known. A repeat finishes what a crash
 * left, and changes nothing.
 */
export async function rotate(world: Relay, sub: Subscription, asked: RotateRequest) {
  const relay = within(world, { trace: sub.traceparent, parent: parentOf(sub) })
  const agent = await getAgent(relay.table, sub.tenant, sub.agent)
  if (agent === undefined) throw new RouseError('not_found')
  if (signs(agent))
    throw new RouseError('conflict', { detail: 'Its agent signs its pushes: no secrets were handed out.' })
  const rotated = await nextGeneration(relay, sub, asked)
  const registration = await register(relay, rotated, agent)
  // Whatever was pushed by secrets that are not accepted any more is found by a look.
  if (rotated.taskId !== undefined || rotated.scope === 'agent') await lookSoon(relay, rotated)
  relay.log({ step: 'subscription.rotated', ...namesOf(rotated, agent), generation: rotated.generation })
  return { ...shown(relay, { ...rotated, registration }), ...handedOut(relay, rotated, agent) }
}

const namesOf = ({ tenant, id }: Subscription, { agent }: Agent) => ({ tenant, subscription: id, agent })

async function nextGeneration(
  relay: Relay,
  sub: Subscription,
  { generation, overlapSeconds }: RotateRequest,
): Promise<Subscription> {
  const until = relay.now() + overlapSeconds * 1000
  const written = await rotateSubscription(relay.table, sub.ref, generation, until)
  const stands = written.ok ? written.item : written.old
  if (stands?.status !== 'active') throw new RouseError('not_found')
  if (stands.generation !== generation + 1)
    throw new RouseError('conflict', { detail: `The present generation is ${stands.generation}.` })
  return stands
}
