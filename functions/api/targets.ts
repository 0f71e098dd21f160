// Routes of targets: where a tenant is told, each with its own signing secret.
import { Hono } from 'hono'
import * as z from 'zod'
import { isSecret } from '../../shared/channels/standard.ts'
import { invalidField, RouseError } from '../../shared/errors.ts'
import type { Target } from '../../shared/model.ts'
import { NetError } from '../../shared/net.ts'
import type { Relay } from '../../shared/relay.ts'
import { list, point, unpoint } from '../../shared/store/directory.ts'
import { giveBack, takeOne } from '../../shared/store/quota.ts'
import { getTarget, putTarget, removeTarget } from '../../shared/store/targets.ts'
import { makeTarget, openSecrets } from '../../shared/targets.ts'
import { type Env, tenantOf } from './auth.ts'
import { readPage } from './cursor.ts'
import { newPathId, onlyQuery, overLimit, pathId, readBody } from './input.ts'

/** A webhook: its address, and the caller's own secret if it has one. */
export const TargetRequest = z.strictObject({
  url: z.string().max(2048),
  secret: z.string().refine(isSecret, 'Expected whsec_ and the base64 of 24 to 64 bytes').optional(),
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
      return c.json({ ...shownTarget(made), secret: (await openSecrets(relay, made))[0] })
    })
    .get('/targets/:target', async c => {
      onlyQuery(c)
      const tenant = tenantOf(c.get('caller'), 'read')
      const found = await getTarget(table, tenant, pathId(c, 'target'))
      if (found === undefined) throw new RouseError('not_found')
      return c.json(shownTarget(found))
    })
    .get('/targets', async c => {
      onlyQuery(c, 'limit', 'after')
      const tenant = tenantOf(c.get('caller'), 'read')
      const { limit, after, cursor } = readPage(relay, c, tenant)
      const page = await list(table, tenant, targetsOf, limit, after)
      const found = await Promise.all(page.pointers.map(({ id }) => getTarget(table, tenant, id)))
      return c.json({
        targets: found.filter(one => one !== undefined).map(shownTarget),
        next: cursor(page.next),
      })
    })
    .delete('/targets/:target', async c => {
      onlyQuery(c)
      const tenant = tenantOf(c.get('caller'), 'write')
      const target = pathId(c, 'target')
      if ((await getTarget(table, tenant, target)) === undefined) throw new RouseError('not_found')
      await dropTarget(relay, tenant, target)
      return c.body(null, 204)
    })
}

/** What is shown of a target: never its secrets. */
export const shownTarget = ({ target, url, generation, status, reason, createdAt }: Target) => ({
  target,
  kind: 'webhook',
  url,
  generation,
  status,
  reason,
  createdAt,
})

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
  const wish = { url, secret: asked.secret }
  const before = await getTarget(table, name.tenant, name.target)
  const standing = await fulfilled(relay, before, wish)
  if (standing !== undefined) return standing
  const made = await makeTarget(relay, name, wish, before)
  const counts = before === undefined && !isInline(name.target)
  if (counts && !(await takeOne(table, name.tenant, 'targets', relay.now()))) throw overLimit('targets')
  await point(table, name.tenant, targetsOf, name.target, name.target, ttl)
  if (await putTarget(table, made, before?.generation, ttl)) return made
  if (counts) await giveBack(table, name.tenant, 'targets', relay.now())
  const theirs = await fulfilled(relay, await getTarget(table, name.tenant, name.target), wish)
  if (theirs !== undefined) return theirs
  throw new RouseError('conflict', { detail: 'The target was changed by somebody else; try again.' })
}

/** Removes a target, then its place in the list. */
export async function dropTarget(relay: Relay, tenant: string, target: string): Promise<void> {
  await removeTarget(relay.table, tenant, target)
  await unpoint(relay.table, tenant, targetsOf, target)
  if (!isInline(target)) await giveBack(relay.table, tenant, 'targets', relay.now())
}

/** The target, if it is what is asked for already. */
async function fulfilled(
  relay: Relay,
  target: Target | undefined,
  wish: { url: string; secret: string | undefined },
): Promise<Target | undefined> {
  if (target?.url !== wish.url || target.status !== 'active') return undefined
  if (wish.secret === undefined) return target
  const [secret] = await openSecrets(relay, target)
  return secret === wish.secret ? target : undefined
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
