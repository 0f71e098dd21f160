// Tells who calls: a tenant's API key with its scopes, or the operator. Keys are looked up by their SHA-256.
import { createMiddleware } from 'hono/factory'
import { RouseError } from '../../shared/errors.ts'
import { sameSecret, sha256Hex } from '../../shared/hash.ts'
import type { ApiKey, Scope } from '../../shared/model.ts'
import type { Relay } from '../../shared/relay.ts'
import { getApiKey, getTenant } from '../../shared/store/access.ts'

/** Who calls. The operator belongs to no tenant. */
export type Caller = { kind: 'operator' } | { kind: 'tenant'; tenant: string; scopes: Scope[]; key: string }

export type Env = { Variables: { caller: Caller } }

/** How long a key found in the table is trusted without reading it again; a deleted key works on for that long. */
const keyTrustMs = 30_000
const keysRemembered = 10_000

/** Middleware that demands `Authorization: Bearer <key>` and says whose key it is. */
export function authenticate(relay: Relay) {
  const remembered = new Map<string, { key: ApiKey; until: number }>()
  const find = async (hash: string): Promise<ApiKey | undefined> => {
    const known = remembered.get(hash)
    if (known !== undefined && known.until > relay.now()) return known.key
    const found = await getApiKey(relay.table, hash)
    // One that was made while its tenant was deleted opens nothing.
    const key = found && (await getTenant(relay.table, found.tenant)) && found
    if (key === undefined) remembered.delete(hash)
    else remembered.set(hash, { key, until: relay.now() + keyTrustMs })
    if (remembered.size > keysRemembered) remembered.clear()
    return key
  }
  return createMiddleware<Env>(async (c, next) => {
    const presented = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(c.req.header('authorization') ?? '')?.[1]
    if (presented === undefined) throw unauthorized('Send Authorization: Bearer <API key>.')
    const hash = sha256Hex(presented)
    const operator = relay.config.operatorKeySha256
    if (operator !== undefined && sameSecret(hash, operator)) c.set('caller', { kind: 'operator' })
    else {
      const key = await find(hash)
      if (key === undefined) throw unauthorized('This key is not known.')
      c.set('caller', { kind: 'tenant', tenant: key.tenant, scopes: key.scopes, key: key.id })
    }
    await next()
  })
}

const unauthorized = (detail: string) => new RouseError('unauthorized', { detail })

/** The scopes that include another: admin may all, write may read. */
const including: Record<Scope, readonly Scope[]> = {
  admin: ['admin'],
  write: ['admin', 'write'],
  read: ['admin', 'write', 'read'],
}

/**
 * The tenant a caller acts for.
 * @throws RouseError `forbidden` without the scope, or for the operator, who has no tenant's data
 */
export function tenantOf(caller: Caller, scope: Scope): string {
  if (caller.kind === 'operator')
    throw new RouseError('forbidden', {
      detail: 'The operator key manages tenants and keys, and redrives what belongs to nobody.',
    })
  if (!caller.scopes.some(held => including[scope].includes(held)))
    throw new RouseError('forbidden', { detail: `This needs the scope ${scope}.` })
  return caller.tenant
}

/** @throws RouseError `forbidden` for anybody but the operator */
export function operatorOnly(caller: Caller): void {
  if (caller.kind !== 'operator')
    throw new RouseError('forbidden', { detail: 'This needs the operator key.' })
}
