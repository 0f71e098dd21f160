// Routes that bring a target back or try it out: enable, test, rotate. Each may be repeated.
import { Hono } from 'hono'
import * as z from 'zod'
import { RouseError } from '../../shared/errors.ts'
import { backstopMs, lookAfter } from '../../shared/gate.ts'
import { idOf } from '../../shared/hash.ts'
import { writeWakeId } from '../../shared/names.ts'
import { isBehind } from '../../shared/pausing.ts'
import type { Relay } from '../../shared/relay.ts'
import { sendWake } from '../../shared/sending.ts'
import { cutPause, getGate } from '../../shared/store/gates.ts'
import { subjectOf } from '../../shared/store/keys.ts'
import { enableTarget, rotateTarget } from '../../shared/store/targets.ts'
import { nextGeneration, nextSecrets, openSecret } from '../../shared/targets.ts'
import type { Gate, Target, Wake } from '../../shared/telling.ts'
import { type Env, tenantOf } from './auth.ts'
import { Nothing, Overlap, pathId, readBody } from './input.ts'
import { Secret, seenTarget, targetFor } from './targets.ts'

/** The secret to be replaced is named, so that a request that is sent twice does not replace its own. */
export const RotateRequest = z.strictObject({
  secretGeneration: z.number().int().min(1),
  secret: Secret.optional(),
  overlapSeconds: Overlap,
})

type RotateRequest = z.infer<typeof RotateRequest>

export function mending(relay: Relay): Hono<Env> {
  return new Hono<Env>()
    .post('/targets/:target/enable', async c => {
      const tenant = tenantOf(c.get('caller'), 'write')
      await readBody(c, Nothing)
      const { target, gate } = await enable(relay, await targetFor(relay, tenant, pathId(c, 'target')))
      return c.json(await seenTarget(relay, target, gate))
    })
    .post('/targets/:target/test', async c => {
      const tenant = tenantOf(c.get('caller'), 'write')
      await readBody(c, Nothing)
      return c.json(await tryOut(relay, await targetFor(relay, tenant, pathId(c, 'target'))))
    })
    .post('/targets/:target/rotate', async c => {
      const tenant = tenantOf(c.get('caller'), 'write')
      const asked = await readBody(c, RotateRequest)
      const rotated = await rotate(relay, await targetFor(relay, tenant, pathId(c, 'target')), asked)
      return c.json({ ...(await seenTarget(relay, rotated)), secret: await openSecret(relay, rotated) })
    })
}

/**
 * A disabled target begins anew; a paused one is probed at once by one of the wakes that wait. Any other stays, but those
 * that wait since before it was put anew go out.
 */
async function enable(relay: Relay, target: Target): Promise<{ target: Target; gate: Gate | undefined }> {
  const { table } = relay
  const now = relay.now()
  const gate = await getGate(table, target)
  if (target.status === 'active') {
    const paused = gate?.generation === target.generation && gate.pausedUntil !== undefined
    const at = { now, due: now + backstopMs }
    const cut = paused ? await cutPause(table, target, target.generation, at) : gate
    if (paused || isBehind(gate, target)) await lookAfter(relay, target)
    return { target, gate: cut }
  }
  const enabled = await enableTarget(table, target, nextGeneration(target, gate))
  if (enabled === undefined)
    throw new RouseError('conflict', { detail: 'The target was changed by somebody else; try again.' })
  relay.log({ step: 'target.enabled', tenant: target.tenant, target: target.target })
  await lookAfter(relay, enabled)
  return { target: enabled, gate }
}

/** Sends a wake that tells nothing, and says what came of it. It counts neither for the target nor against it. */
async function tryOut(relay: Relay, target: Target) {
  const { tenant, target: name } = target
  const subject = subjectOf(tenant, { target: name })
  const begun = relay.now()
  const id = idOf('test', subject, Buffer.from(relay.random(16)).toString('base64url'))
  const wake: Wake = {
    ...{ id: writeWakeId(subject, id), tenant, about: { target: name }, target: name, type: 'rouse.test' },
    ...{ at: begun, attempts: [], tries: 0, lease: 0 },
    status: 'pending',
  }
  const { kind, ...outcome } = await sendWake(relay, target, wake)
  relay.log({ step: 'target.tested', tenant, target: name, verdict: kind, status: outcome.status })
  return {
    target: name,
    wakeId: wake.id,
    verdict: kind,
    ...outcome,
    milliseconds: relay.now() - begun,
  }
}

async function rotate(
  relay: Relay,
  target: Target,
  { secretGeneration, secret, overlapSeconds }: RotateRequest,
): Promise<Target> {
  const seen = target.secretGeneration === secretGeneration
  const written = seen
    ? await rotateTarget(relay.table, target, await nextSecrets(relay, target, secret, overlapSeconds * 1000))
    : { ok: false as const, old: target }
  const stands = written.ok ? written.item : written.old
  if (stands === undefined) throw new RouseError('not_found')
  const isRepeat = stands.secretGeneration === secretGeneration + 1
  if (!isRepeat || (secret !== undefined && (await openSecret(relay, stands)) !== secret))
    throw new RouseError('conflict', {
      detail: `The present generation of the secret is ${stands.secretGeneration}.`,
    })
  if (written.ok)
    relay.log({
      ...{ step: 'target.rotated', tenant: stands.tenant, target: stands.target },
      generation: stands.secretGeneration,
    })
  return stands
}
