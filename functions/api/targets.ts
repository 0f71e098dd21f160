// Routes of targets: where a tenant is told, each with its own signing secret.
import { Hono } from 'hono'
import * as z from 'zod'
import { isSecret } from '../../shared/channels/standard.ts'
import { invalidField, RouseError } from '../../shared/errors.ts'
import type { Target } from '../../shared/model.ts'
import { NetError } from '../../shared/net.ts'
import type { Relay } from '../../shared/relay.ts'
import { list, point, unpoint } from '../../shared/store/directory.ts'
import { getTarget, putTarget, removeTarget } from '../../shared/store/targets.ts'
import { makeTarget, openSecrets } from '../../shared/targets.ts'
import { type Env, tenantOf } from './auth.ts'
import { newPathId, onlyQuery, pathId, readBody, readPage } from './input.ts'

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
      const made = await saveTarget(relay, { tenant, target }, await readBody(c, TargetRequest), '')
      return c.json({ ...shownTarget(made), secret: (await openSecrets(relay, made))[0] })
    })
    .get('/targets/:target', async c => {
      const tenant = tenantOf(c.get('caller'), 'read')
      const found = await getTarget(table, tenant, pathId(c, 'target'))
      if (found === undefined) throw new RouseError('not_found')
      return c.json(shownTarget(found))
    })
    .get('/targets', async c => {
      onlyQuery(c, 'limit', 'after')
      const tenant = tenantOf(c.get('caller'), 'read')
      const { limit, after } = readPage(c)
      const page = await list(table, tenant, targetsOf, limit, after)
      const found = await Promise.all(page.pointers.map(({ id }) => getTarget(table, tenant, id)))
      return c.json({ targets: found.filter(one => one !== undefined).map(shownTarget), next: page.next })
    })
    .delete('/targets/:target', async c => {
      const tenant = tenantOf(c.get('caller'), 'write')
      const target = pathId(c, 'target')
      if ((await getTarget(table, tenant, target)) === undefined) throw new RouseError('not_found')
      await removeTarget(table, tenant, target)
      await unpoint(table, tenant, targetsOf, target)
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

/**
 * Makes or replaces a target. Putting the same again changes nothing.
 * @param at pointer in front of the request's fields
 */
export async function saveTarget(
  relay: Relay,
  name: Pick<Target, 'tenant' | 'target'>,
  asked: TargetRequest,
  at: string,
): Promise<Target> {
  const { table } = relay
  const url = allowedUrl(relay, asked.url, `${at}/url`)
  const before = await getTarget(table, name.tenant, name.target)
  if (before?.url === url && before.status === 'active' && asked.secret === undefined) return before
  const made = await makeTarget(relay, name, { url, secret: asked.secret }, before)
  await point(table, name.tenant, targetsOf, name.target, name.target)
  if (!(await putTarget(table, made, before?.generation)))
    throw new RouseError('conflict', { detail: 'The target was changed by somebody else; try again.' })
  return made
}

/** The normal form of an address that may be called; the refusal says no more than that it may not. */
export function allowedUrl(relay: Relay, url: string, pointer: string): string {
  try {
    return relay.net.check(url).href
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    const { code, detail } = new RouseError('address_not_allowed')
    throw new RouseError(code, {
      ...(detail !== undefined && { detail }),
      fields: [
        {
          pointer,
          detail: invalidField(pointer, 'Not an address that may be called').fields[0]?.detail ?? '',
        },
      ],
    })
  }
}
