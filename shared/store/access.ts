// Keeps tenants and API keys. Keys are stored by their SHA-256 only.
import type { ApiKey, Tenant } from '../model.ts'
import { apiKeyKey, tenantKey } from './keys.ts'
import { get, put, remove, type Table } from './table.ts'

/** For how long a deleted tenant's name is taken: its watches are kept for 400 days, and TTL deletes some days late. */
const nameTakenMs = 410 * 24 * 60 * 60 * 1000

/** A tenant, or the stone over a deleted one. */
type Stored = Tenant & { takenUntil?: number }

export async function getTenant(table: Table, tenant: string): Promise<Tenant | undefined> {
  const found = await findTenant(table, tenant)
  return found?.takenUntil === undefined ? found : undefined
}

/** The tenant of a name, or the deleted one that has the name until `takenUntil` (ms). */
export const findTenant = (table: Table, tenant: string): Promise<Stored | undefined> =>
  get<Stored>(table, tenantKey(tenant))

/** True when nobody has a name: none stands there, or a deleted one whose time is over. */
export const isFree = (found: Stored | undefined, now: number): boolean =>
  found === undefined || (found.takenUntil ?? Number.POSITIVE_INFINITY) <= now

/**
 * Puts a tenant; the time of its making survives a repeat. One that is deleted meanwhile stays deleted.
 * @returns what stands: the tenant, or with `takenUntil` a deleted one whose name is still taken
 */
export async function putTenant(table: Table, tenant: Tenant): Promise<Stored> {
  const item = { ...tenantKey(tenant.tenant), ...tenant }
  const now = tenant.createdAt
  const made = await put<Stored>(table, item, 'attribute_not_exists(#pk) OR #takenUntil <= :now', { now })
  if (made.ok) return tenant
  const { old } = made
  if (old === undefined || old.takenUntil !== undefined) return { ...tenant, ...old }
  const kept = { ...tenant, createdAt: old.createdAt }
  const unlessGone = 'attribute_exists(#pk) AND attribute_not_exists(#takenUntil)'
  const again = await put<Stored>(table, { ...item, ...kept }, unlessGone)
  return again.ok ? kept : { ...kept, takenUntil: again.old?.takenUntil ?? now }
}

/**
 * Puts a stone in the place of a tenant: some of what belonged to it is kept under its name, which nobody else may
 * have until that has gone. Of two who delete it the first sets the date.
 */
export const buryTenant = (table: Table, { tenant, createdAt }: Tenant, now: number) =>
  put(
    table,
    {
      ...tenantKey(tenant),
      ...{ tenant, createdAt, takenUntil: now + nameTakenMs },
      ttl: Math.ceil((now + nameTakenMs) / 1000),
    },
    'attribute_exists(#pk) AND attribute_not_exists(#takenUntil)',
  )

/** @param keyHash SHA-256 of the key, hex */
export const getApiKey = (table: Table, keyHash: string): Promise<ApiKey | undefined> =>
  get<ApiKey>(table, apiKeyKey(keyHash), true)

export const putApiKey = (table: Table, keyHash: string, key: ApiKey) =>
  put(table, { ...apiKeyKey(keyHash), ...key })

export const removeApiKey = (table: Table, keyHash: string): Promise<boolean> =>
  remove(table, apiKeyKey(keyHash))
