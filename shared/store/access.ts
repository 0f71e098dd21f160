// Keeps tenants and API keys. Keys are stored by their SHA-256 only.
import type { ApiKey, Tenant } from '../model.ts'
import { apiKeyKey, tenantKey } from './keys.ts'
import { get, put, remove, type Table } from './table.ts'

export const getTenant = (table: Table, tenant: string): Promise<Tenant | undefined> =>
  get<Tenant>(table, tenantKey(tenant))

/** Puts a tenant; the time of its making survives a repeat. */
export async function putTenant(table: Table, tenant: Tenant): Promise<Tenant> {
  const item = { ...tenantKey(tenant.tenant), ...tenant }
  const written = await put<Tenant>(table, item, 'attribute_not_exists(#pk)')
  if (written.ok || written.old === undefined) return tenant
  const kept = { ...tenant, createdAt: written.old.createdAt }
  await put(table, { ...item, ...kept })
  return kept
}

export const removeTenant = (table: Table, tenant: string): Promise<boolean> =>
  remove(table, tenantKey(tenant))

/** @param keyHash SHA-256 of the key, hex */
export const getApiKey = (table: Table, keyHash: string): Promise<ApiKey | undefined> =>
  get<ApiKey>(table, apiKeyKey(keyHash), true)

export const putApiKey = (table: Table, keyHash: string, key: ApiKey) =>
  put(table, { ...apiKeyKey(keyHash), ...key })

export const removeApiKey = (table: Table, keyHash: string): Promise<boolean> =>
  remove(table, apiKeyKey(keyHash))
