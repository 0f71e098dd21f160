// Routes of targets: where a tenant is told, each with its own signing secret.
import { Hono } from 'hono'
import * as z from 'zod'
import { isSecret } from '../../shared/channels/standard.ts'
import { invalidField, RouseError } from '../../shared/errors.ts'
import { lookAfter } from '../../shared/gate.ts'
import { limits } from '../../shared/limits.ts'
import { NetError } from '../../shared/net.ts'
import { isBehind } from '../../shared/pausing.ts'
import type { Relay } from '../../shared/relay.ts'
import { follow, list, point, unpoint } from '../../shared/store/directory.ts'
import { getGate, retireGate } from '../../shared/store/gates.ts'
import { getOperations } from '../../shared/store/operations.ts'
import { giveBack, takeOne } from '../../shared/store/quota.ts'
import { getTarget, limitTarget, putTarget, removeTarget } from '../../shared/store/targets.ts'
import { makeTarget, nextGeneration, openSecret, type Wish } from '../../shared/targets.ts'
import type { Gate, Target } from '../../shared/telling.ts'
import { type Env, tenantOf } from './auth.ts'
import { readPage } from './cursor.ts'
import { newPathId, onlyQuery, overLimit, pathId, readBody } from './input.ts'

/** The caller's own signing secret. */
export const Secret = z.string().refine(isSecret, 'Expected whsec_ and the base64 of 24 to 64 bytes')

/** A webhook: its address, the caller's own secret if it has one, and how much it takes. */
export const TargetRequest = z.strictObject({
  url: z.string().max(2048),
  secret: Secret.optional(),
  maxConcurrency: z.number().int().min(1).max(limits.mostAttemptsAtTarget).optional(),
  ratePerSecond: z.number().int().min(1).max(limits.attemptsInSecond).optional(),
})

export type TargetRequest = z.infer<typeof TargetRequest>

const targetsOf = { kind: 'targets' } as const

export function targets(relay: Relay): Hono<Env> {
  const { table } = relay
  return new Hono<Env>()
    .put('/targets/:target', async c => {
      const tenant = tenantOf(c.get('caller'), 'write')
      const target = newPathId(c, 'target')
      if (isInline(target) && (await getTarget(table, tenant, target)) === undefined)
        throw invalidField('/target', 'Names that begin with inline_ are given here only')
      const made = await saveTarget(relay, { tenant, target }, await readBody(c, TargetRequest), '')
      const gate = await getGate(table, made)
      // They wait for what the address before was like. A repeat finds the gate so, too, if this dies before.
      if (isBehind(gate, made)) await lookAfter(relay, made)
      return c.json({ ...(await seenTarget(relay, made, gate)), secret: await openSecret(relay, made) })
    })
    .get('/targets/:target', async c => {
      onlyQuery(c)
      const tenant = tenantOf(c.get('caller'), 'read')
      return c.json(await seenTarget(relay, await targetFor(relay, tenant, pathId(c, 'target'))))
    })
    .get('/targets', async c => {
      onlyQuery(c, 'limit', 'after')
      const tenant = tenantOf(c.get('caller'), 'read')
      const { limit, after, cursor } = readPage(relay, c, tenant)
      const page = await list(table, tenant, targetsOf, limit, after)
      const found = await Promise.all(page.pointers.map(({ id }) => getTarget(table, tenant, id)))
      const shown = found.filter(one => one !== undefined).map(one => seenTarget(relay, one))
      return c.json({ targets: await Promise.all(shown), next: cursor(page.next) })
    })
    .delete('/targets/:target', async c => {
      onlyQuery(c)
      const tenant = tenantOf(c.get('caller'), 'write')
      const target = pathId(c, 'target')
      // One that is gone but for its pointer is of a deletion that died: this one finishes it.
      if ((await follow(table, tenant, targetsOf, target)) === undefined)
        await targetFor(relay, tenant, target)
      if ((await getOperations(table, tenant))?.targets.includes(target))
        throw new RouseError('conflict', { detail: '/v1/operations names this target; change that first.' })
      await dropTarget(relay, tenant, target)
      return c.body(null, 204)
    })
}

/** @throws RouseError `not_found`, for another tenant's target just as for none */
export async function targetFor(relay: Relay, tenant: string, target: string): Promise<Target> {
  const found = await getTarget(relay.table, tenant, target)
  if (found === undefined) throw new RouseError('not_found')
  return found
}

/** What is shown of a target: never its secrets. */
export const shownTarget = (target: Target) => ({
  target: target.target,
  kind: 'webhook',
  url: target.url,
  generation: target.generation,
  secretGeneration: target.secretGeneration,
  maxConcurrency: target.maxConcurrency ?? limits.attemptsAtTarget,
  ratePerSecond: target.ratePerSecond,
  status: target.status,
  reason: target.reason,
  disabledAt: target.disabledAt,
  createdAt: target.createdAt,
})

/** The same with how it fares: whether it is paused, what failed and since when, and which secrets sign along. */
export async function seenTarget(relay: Relay, target: Target, gate?: Gate) {
  const seen = gate ?? (await getGate(relay.table, target))
  const until = (target.retiring ?? []).map(one => one.until).filter(one => one > relay.now())
  return {
    ...shownTarget(target),
    ...(seen?.generation === target.generation && standingOf(target, seen)),
    ...(until.length > 0 && { earlierSecretsUntil: Math.max(...until) }),
  }
}

/** How a target fares by its gate. Past `nextProbeAt` whatever wake comes first probes it. */
function standingOf({ status, reason }: Target, gate: Gate) {
  const paused = status === 'active' && gate.pausedUntil !== undefined
  return {
    ...(paused && { status: 'paused', nextProbeAt: gate.pausedUntil }),
    reason: reason ?? gate.reason,
    failures: gate.failures,
    failingSince: gate.failingSince,
  }
}

/** Names of targets that were given inline in a subscription; they live and end with it. */
export const isInline = (target: string): boolean => target.startsWith('inline_')

/**
 * Makes or replaces a target. Putting the same again changes nothing, and of two who put the same at once both succeed.
 * @param at pointer in front of the request's fields
 * @param ttl seconds since 1970 at which it may go, for one that ends with its subscription
 */
export async function saveTarget(
  relay: Relay,
  name: Pick<Target, 'tenant' | 'target'>,
  asked: TargetRequest,
  at: string,
  ttl?: number,
): Promise<Target> {
  const { table } = relay
  const url = allowedUrl(relay, asked.url, `${at}/url`)
  const wish = { ...asked, url, secret: asked.secret }
  const before = await getTarget(table, name.tenant, name.target)
  const standing = await fulfilled(relay, before, wish)
  if (standing !== undefined) return standing
  const made = await makeTarget(relay, name, wish, before, await getGate(table, name))
  // What a crash left of one before is its pointer, which is counted still.
  const counts =
    before === undefined &&
    !isInline(name.target) &&
    (await follow(table, name.tenant, targetsOf, name.target)) === undefined
  if (counts && !(await takeOne(table, name.tenant, 'targets', relay.now()))) throw overLimit('targets')
  await point(table, name.tenant, targetsOf, name.target, name.target, ttl)
  if (await putTarget(table, made, before, ttl)) return made
  if (counts) await giveBack(table, name.tenant, 'targets', relay.now())
  const theirs = await fulfilled(relay, await getTarget(table, name.tenant, name.target), wish)
  if (theirs !== undefined) return theirs
  throw new RouseError('conflict', { detail: 'The target was changed by somebody else; try again.' })
}

/**
 * Removes a target, what its gate holds, unless wakes may wait there for tick to end them, and last its place in the list,
 * so that a repeat finishes what a crash left.
 */
export async function dropTarget(relay: Relay, tenant: string, target: string): Promise<void> {
  const [before, gate] = await Promise.all([
    getTarget(relay.table, tenant, target),
    getGate(relay.table, { tenant, target }),
  ])
  // One that came with a subscription, and that nothing was sent to, leaves nothing.
  if (gate !== undefined || !isInline(target))
    await retireGate(relay.table, { tenant, target }, nextGeneration(before, gate) - 1, relay.now())
  await removeTarget(relay.table, tenant, target)
  // Of two who delete it one counts it.
  const counted = await unpoint(relay.table, tenant, targetsOf, target, target)
  if (counted && !isInline(target)) await giveBack(relay.table, tenant, 'targets', relay.now())
}

/** The target, if it is what is asked for already; how much it takes is set without beginning it anew. */
async function fulfilled(
  relay: Relay,
  target: Target | undefined,
  { url, secret, maxConcurrency, ratePerSecond }: Wish,
): Promise<Target | undefined> {
  if (target?.url !== url || target.status !== 'active') return undefined
  if (secret !== undefined && (await openSecret(relay, target)) !== secret) return undefined
  if (target.maxConcurrency === maxConcurrency && target.ratePerSecond === ratePerSecond) return target
  return limitTarget(relay.table, target, { maxConcurrency, ratePerSecond })
}

/** The normal form of an address that may be called; the refusal says no more than that it may not. */
export function allowedUrl(relay: Relay, url: string, pointer: string): string {
  try {
    return relay.net.check(url).href
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    throw new RouseError('address_not_allowed', {
      fields: [{ pointer, detail: 'Not an address that may be called' }],
    })
  }
}
