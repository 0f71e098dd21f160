// Makes hooks of every kind through the API, each with an agent of its own, and publishes the keys of these agents.
import type { Ground } from '../../infra/local/ground.ts'
import type { HandedOut } from '../../shared/a2a/configs.ts'
import type { JwtRule } from '../../shared/model.ts'
import { k1, rule } from './pushes.ts'
import { type Receiver, type Answer as Served, startReceiver } from './receiver.ts'
import { type Routes, routesOf } from './routes.ts'

/** What kind of hook: by signed pushes (key k1 unless said), by token or by Authorization. Equal kinds share one hook. */
export type Kind = {
  published?: unknown[]
  /** Changes to the usual rule. */
  jwt?: Partial<Record<keyof JwtRule, unknown>>
  token?: true
  authorization?: 'Bearer' | 'Basic'
  tenant?: 'demo' | 'other'
  /** The one task that it is for; without it every task of the agent is expected. */
  taskId?: string
  /** Tells hooks of one kind apart. */
  n?: number
}

/** A hook, and where the keys of its agent are published. */
export type Spot = { hook: HandedOut; id: string; agent: string; jwksPath: string; signed: boolean }

/** Publishes key sets by path. */
export type KeyHost = { receiver: Receiver; serve: (path: string, served: Served) => void }

export async function startKeyHost(): Promise<KeyHost> {
  const receiver = await startReceiver()
  const served = new Map<string, Served>()
  receiver.answer(({ url }) => served.get(url) ?? { status: 404 })
  return { receiver, serve: (path, answer) => served.set(path, answer) }
}

/** The API as each tenant sees it. */
export type Tenants = Record<'demo' | 'other', Routes & { key: string }>

export async function makeTenants({ apiOrigin, secrets }: Ground): Promise<Tenants> {
  const operator = routesOf(apiOrigin, secrets.operatorKey)
  const make = async (tenant: string): Promise<Routes & { key: string }> => {
    await operator.call('PUT', `/v1/tenants/${tenant}`, {})
    const scopes = ['admin', 'write', 'read']
    const { key } = await operator.call<{ key: string }>('POST', '/v1/keys', { tenant, scopes })
    return { ...routesOf(apiOrigin, key), key }
  }
  const [demo, other] = await Promise.all([make('demo'), make('other')])
  return { demo, other }
}

/** Makes each kind of hook when it is asked for, with an agent of its own. */
export function spotsOf(host: KeyHost, tenants: Tenants) {
  const made = new Map<string, Promise<Spot>>()
  let agents = 0
  const make = async (
    { published = [k1.jwk], taskId, tenant = 'demo', ...kind }: Kind,
    served?: Served,
  ): Promise<Spot> => {
    const agent = `agent-${++agents}`
    const jwksPath = `/keys/${agent}`
    host.serve(jwksPath, served ?? { body: JSON.stringify({ keys: published }) })
    const { token, authorization } = kind
    const signed = token === undefined && authorization === undefined
    const jwksUrl = host.receiver.origin + jwksPath
    const jwt = { issuer: rule.issuer, algorithms: rule.algorithms, ...kind.jwt, jwksUrl }
    await tenants[tenant].call('PUT', `/v1/agents/${agent}`, {
      ...{ url: `${host.receiver.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true },
      verification: signed ? { jwt } : { token, authorization },
    })
    const wish = taskId === undefined ? { scope: 'agent' } : { taskId }
    const { id, pushNotificationConfig } = await tenants[tenant].call<{
      id: string
      pushNotificationConfig: HandedOut
    }>('POST', '/v1/subscriptions', { agent, client: 'client', ...wish })
    return { hook: pushNotificationConfig, id, agent, jwksPath, signed }
  }
  return {
    /** @param served what the key host answers from the start, if it is no set of the keys that are published */
    find: (to: Kind | Spot, served?: Served): Promise<Spot> => {
      if ('hook' in to) return Promise.resolve(to)
      const name = JSON.stringify(to, (_key, value: unknown) => value ?? null)
      const found = made.get(name) ?? make(to, served)
      made.set(name, found)
      return found
    },
  }
}
