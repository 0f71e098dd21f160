// Starts Rouse with its real doors on a laptop, with tenants and their API keys; the one entry for tests, the demo and `npm start`.
import { setTimeout as pause } from 'node:timers/promises'
import { door as api } from '../../functions/api/app.ts'
import { door as deliver } from '../../functions/deliver.ts'
import { door as look } from '../../functions/look.ts'
import { door as receive } from '../../functions/receive.ts'
import { door as tick } from '../../functions/tick.ts'
import { type Ground, startGround } from './ground.ts'
import type { Doors, GroundOptions } from './parts.ts'
import { isRecord } from './wire.ts'

export type LocalOptions = GroundOptions & {
  /** Tenants that get an API key at the first start; `demo` unless given. */
  tenants?: string[]
  /** Doors that stand in for the real ones, such as those that run in a process of their own. */
  doors?: Doors
}

export type Local = Omit<Ground, 'secrets' | 'save'> & {
  operatorKey: string
  /** API keys by tenant, with all scopes. */
  keys: Record<string, string>
}

/**
 * Starts everything in this process; see {@link GroundOptions} for what can be chosen.
 * @throws Error saying what is in the way
 */
export async function startLocal({
  tenants = ['demo'],
  doors,
  ...options
}: LocalOptions = {}): Promise<Local> {
  const { secrets, save, ...ground } = await startGround(
    { receive, api, look, deliver, tick, ...doors },
    options,
  )
  try {
    for (const tenant of tenants) {
      if (secrets.keys[tenant] !== undefined) continue
      secrets.keys[tenant] = await makeKey(ground.apiOrigin, secrets.operatorKey, tenant)
      save(secrets)
    }
  } catch (error) {
    await ground.stop()
    throw error
  }
  return { ...ground, operatorKey: secrets.operatorKey, keys: secrets.keys }
}

/** For how long a busy machine may say that something is not available yet, in ms. */
const patienceMs = 30_000

/** Makes a tenant and an API key for it, as an operator would. What is not available (503) is asked for again when the answer says. */
async function makeKey(origin: string, operatorKey: string, tenant: string): Promise<string> {
  const until = performance.now() + patienceMs
  const call = async (method: string, path: string, body: unknown): Promise<unknown> => {
    const response = await fetch(new URL(path, origin), {
      method,
      headers: { authorization: `Bearer ${operatorKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (response.status === 503 && performance.now() < until) {
      await response.body?.cancel()
      await pause(Number(response.headers.get('retry-after') ?? 1) * 1000)
      return call(method, path, body)
    }
    if (!response.ok) throw new Error(`${method} ${path} gave ${response.status}: ${await response.text()}`)
    return response.json()
  }
  await call('PUT', `/v1/tenants/${tenant}`, {})
  const made = await call('POST', '/v1/keys', { tenant, scopes: ['admin', 'write', 'read'], label: 'local' })
  if (!isRecord(made) || typeof made.key !== 'string') throw new Error('The API gave no key')
  return made.key
}
