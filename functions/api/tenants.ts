// Routes of tenants (operator only) and of API keys.
import { Hono } from 'hono'
import * as z from 'zod'
import { invalidField, RouseError } from '../../shared/errors.ts'
import { idOf, sha256Hex } from '../../shared/hash.ts'
import type { ApiKey, Tenant } from '../../shared/model.ts'
import type { Relay } from '../../shared/relay.ts'
import {
  buryTenant,
  findTenant,
  getApiKey,
  getTenant,
  isFree,
  putApiKey,
  putTenant,
  removeApiKey,
} from '../../shared/store/access.ts'
import { follow, list, point, unpoint } from '../../shared/store/directory.ts'
import { removeOperations } from '../../shared/store/operations.ts'
import { type Caller, type Env, operatorOnly, tenantOf } from './auth.ts'
import { readPage } from './cursor.ts'
import { Id, idPattern, newPathId, onlyQuery, pathId, readBody, Text } from './input.ts'

const TenantRequest = z.strictObject({ label: Text.max(200).optional() })

export const KeyRequest = z.strictObject({
  /** The operator says for whom; a tenant's admin makes keys for its own tenant. */
  tenant: Id.optional(),
  scopes: z
    .array(z.enum(['admin', 'write', 'read']))
    .min(1)
    .max(3),
  label: Text.max(200).optional(),
})

const keys = { kind: 'keys' } as const

export function tenants(relay: Relay): Hono<Env> {
  const { table } = relay
  return new Hono<Env>()
    .put('/tenants/:tenant', async c => {
      operatorOnly(c.get('caller'))
      const tenant = newPathId(c, 'tenant')
      const { label } = await readBody(c, TenantRequest)
      const createdAt = relay.now()
      // What a key that was still remembered made after its tenant's deletion goes to nobody else.
      if (isFree(await findTenant(table, tenant), createdAt)) await mustHaveNothing(relay, tenant)
      const kept = await putTenant(table, { tenant, ...(label !== undefined && { label }), createdAt })
      if (kept.takenUntil !== undefined) throw nameTaken(kept.takenUntil)
      return c.json(shownTenant(kept))
    })
    .get('/tenants/:tenant', async c => {
      onlyQuery(c)
      operatorOnly(c.get('caller'))
      const tenant = await getTenant(table, pathId(c, 'tenant'))
      if (tenant === undefined) throw new RouseError('not_found')
      return c.json(shownTenant(tenant))
    })
    .delete('/tenants/:tenant', async c => {
      onlyQuery(c)
      operatorOnly(c.get('caller'))
      const found = await findTenant(table, pathId(c, 'tenant'))
      if (found === undefined) throw new RouseError('not_found')
      const { tenant } = found
      if (found.takenUntil === undefined) await mustHaveNothing(relay, tenant)
      await buryTenant(table, found, relay.now())
      await removeOperations(table, tenant)
      return c.body(null, 204)
    })
    .post('/keys', async c => {
      managesKeys(c.get('caller'))
      const { tenant: named, scopes, label } = await readBody(c, KeyRequest)
      const tenant = await tenantNamed(relay, c.get('caller'), named, '/tenant')
      const key = `rk_${Buffer.from(relay.random(32)).toString('base64url')}`
      const hash = sha256Hex(key)
      const made: ApiKey = {
        id: `key_${idOf('api key', hash)}`,
        tenant,
        scopes: [...new Set(scopes)],
        ...(label !== undefined && { label }),
        createdAt: relay.now(),
      }
      await point(table, tenant, keys, made.id, hash)
      await putApiKey(table, hash, made)
      return c.json({ ...shown(made), key }, 201)
    })
    .get('/keys', async c => {
      onlyQuery(c, 'tenant', 'limit', 'after')
      const tenant = await tenantNamed(relay, c.get('caller'), c.req.query('tenant'), '?tenant')
      const { limit, after, cursor } = readPage(relay, c, tenant)
      const page = await list(table, tenant, keys, limit, after)
      const found = await Promise.all(page.pointers.map(({ ref }) => getApiKey(table, ref)))
      return c.json({ keys: found.filter(key => key !== undefined).map(shown), next: cursor(page.next) })
    })
    .delete('/keys/:id', async c => {
      onlyQuery(c, 'tenant')
      const tenant = await tenantNamed(relay, c.get('caller'), c.req.query('tenant'), '?tenant')
      const id = pathId(c, 'id')
      const hash = await follow(table, tenant, keys, id)
      if (hash === undefined) throw new RouseError('not_found')
      await removeApiKey(table, hash)
      await unpoint(table, tenant, keys, id)
      return c.body(null, 204)
    })
}

/** What is shown of a key: never its hash. */
const shown = ({ id, tenant, scopes, label, createdAt }: ApiKey) => ({ id, tenant, scopes, label, createdAt })

const shownTenant = ({ tenant, label, createdAt }: Tenant) => ({ tenant, label, createdAt })

/** @throws RouseError `conflict` if anything is listed under the tenant's name */
async function mustHaveNothing({ table }: Relay, tenant: string): Promise<void> {
  for (const kind of ['keys', 'subscriptions', 'agents', 'targets'] as const)
    if ((await list(table, tenant, { kind }, 1)).pointers.length > 0)
      throw new RouseError('conflict', { detail: `The tenant still has ${kind}; delete them first.` })
}

/** @throws RouseError `not_found`, or `tenant_deleted` */
async function tenantFor(relay: Relay, name: string): Promise<Tenant> {
  const found = idPattern.test(name) ? await findTenant(relay.table, name) : undefined
  if (found === undefined) throw new RouseError('not_found')
  if (found.takenUntil !== undefined) throw nameTaken(found.takenUntil)
  return found
}

/** Refuses what would be made under the name of a deleted tenant. */
function nameTaken(until: number): RouseError {
  const detail = `A deleted tenant has this name until ${new Date(until).toISOString()}`
  return new RouseError('tenant_deleted', {
    detail: `/tenant: ${detail}`,
    fields: [{ pointer: '/tenant', detail }],
  })
}

/** @throws RouseError `forbidden` for anybody but the operator and a tenant's admin */
function managesKeys(caller: Caller): void {
  if (caller.kind === 'tenant') tenantOf(caller, 'admin')
}

/**
 * Whose keys a request is about: the operator names the tenant, an admin has its own.
 * @param pointer where the request names it
 */
async function tenantNamed(
  relay: Relay,
  caller: Caller,
  named: string | undefined,
  pointer: string,
): Promise<string> {
  if (caller.kind === 'operator') {
    if (named === undefined) throw invalidField(pointer, 'The operator must name the tenant')
    return (await tenantFor(relay, named)).tenant
  }
  const own = tenantOf(caller, 'admin')
  if (named !== undefined && named !== own) throw new RouseError('not_found')
  return own
}
