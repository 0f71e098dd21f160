// Hooks of every kind for the fuzzer, and the items that the table would hold of them. Keys are made anew in each run.
import { hookSecret, makeHook, refOf } from '../../shared/hooks.ts'
import { readJwks } from '../../shared/jwks.ts'
import type { Agent, JwtRule, Subscription, Verification } from '../../shared/model.ts'
import { agentKey, agentKeysKey, type Key, subscriptionKey } from '../../shared/store/keys.ts'
import { makeKey, type SigningKey } from '../support/keys.ts'

type Fields = Record<string, unknown>

/** A hook, and what a genuine push to it carries. */
export type Hook = {
  kind: string
  hook: string
  url: string
  /** False when nothing may be accepted there any more. */
  live: boolean
  token: string | undefined
  authorization: string | undefined
  signed: boolean
  /** Whether the digest must be there, and issuer and audience need not. */
  legacy: boolean
  taskId: string | undefined
}

export type Scene = { env: Record<string, string>; items: (Key & Fields)[]; hooks: Hook[]; key: SigningKey }

/** When everything begins, ms since 1970. */
export const begin = 1_767_225_600_000
export const issuer = 'https://agent.example'

const hour = 60 * 60 * 1000
const jwksUrl = `${issuer}/keys.json`
const hookOrigin = 'https://hooks.rouse.example'
const root = Buffer.alloc(32, 7)
const roots = new Map([[1, root]])

const rule: JwtRule = {
  ...{ jwksUrl, issuer, algorithms: ['ES256', 'EdDSA'], digest: 'optional' },
  // Wide, so that the clock can run on for as many pushes as one scene is given.
  ...{ windowSeconds: 3600, skewSeconds: 300 },
}
const { issuer: _issuer, ...anonymous } = rule

type Kind = { verification: Verification; sub?: Partial<Subscription>; missing?: true }

const kinds: Record<string, Kind> = {
  token: { verification: { token: true } },
  bearer: { verification: { authorization: 'Bearer' } },
  basic: { verification: { authorization: 'Basic' } },
  either: { verification: { token: true, authorization: 'Bearer' } },
  jwt: { verification: { jwt: rule } },
  legacy: { verification: { jwt: { ...anonymous, digest: 'required' } } },
  'one task': { verification: { token: true }, sub: { scope: 'task', taskId: 'task-1' } },
  'one task, signed': { verification: { jwt: rule }, sub: { scope: 'task', taskId: 'task-1' } },
  deleted: { verification: { token: true }, sub: { status: 'deleted' } },
  expired: { verification: { token: true }, sub: { expiresAt: begin - 1 } },
  missing: { verification: { token: true }, missing: true },
}

/** Makes one hook of each kind. */
export function makeScene(): Scene {
  const key = makeKey('ES256', 'k1')
  const items: Scene['items'] = []
  const hooks = Object.entries(kinds).map(([kind, { verification, sub: changes, missing }], n) => {
    const agent = agentOf(`agent-${n}`, verification)
    const sub = { ...subscriptionOf(agent, makeHook(roots, Buffer.alloc(16, n))), ...changes }
    if (!missing)
      items.push(
        { ...agentKey(agent.tenant, agent.agent), ...agent },
        { ...subscriptionKey(sub.ref), ...sub },
        { ...agentKeysKey(agent.tenant, agent.agent), ...keySetOf(key) },
      )
    return hookOf(kind, sub, verification, !missing && sub.status === 'active' && sub.expiresAt > begin)
  })
  return { env, items, hooks, key }
}

function hookOf(
  kind: string,
  sub: Subscription,
  { jwt, token, authorization }: Verification,
  live: boolean,
): Hook {
  const secret = (label: 'token' | 'credentials'): string =>
    hookSecret(roots, sub.hook, sub.tenant, sub.generation, label)
  const credentials = secret('credentials')
  return {
    ...{ kind, hook: sub.hook, url: `${hookOrigin}/hooks/${sub.hook}`, live, taskId: sub.taskId },
    token: token ? secret('token') : undefined,
    authorization:
      authorization &&
      (authorization === 'Basic'
        ? `Basic ${Buffer.from(`rouse:${credentials}`).toString('base64')}`
        : `Bearer ${credentials}`),
    signed: jwt !== undefined,
    legacy: jwt?.digest === 'required',
  }
}

const env: Scene['env'] = {
  ...{ AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'fuzz', AWS_SECRET_ACCESS_KEY: 'fuzz' },
  TABLE_NAME: 'rouse',
  LOOK_QUEUE_URL: 'https://sqs.us-east-1.amazonaws.com/123456789012/look',
  DELIVER_QUEUE_URL: 'https://sqs.us-east-1.amazonaws.com/123456789012/deliver',
  PUBLIC_ORIGIN: 'https://rouse.example',
  HOOK_ORIGIN: hookOrigin,
  ROOT_KEYS: `1:${root.toString('base64url')}`,
}

const agentOf = (agent: string, verification: Verification): Agent => ({
  ...{ tenant: 'acme', agent, etag: 'e', createdAt: begin - hour, updatedAt: begin - hour },
  ...{ url: `${issuer}/a2a`, binding: 'JSONRPC', version: '1.0', origins: [issuer] },
  ...{ pushes: true, streams: false, road: 'push', verification },
})

const subscriptionOf = ({ tenant, agent }: Agent, hook: string): Subscription => ({
  ...{ ref: refOf(hook), hook, tenant, id: `sub-${agent}`, agent, principal: 'agent', scope: 'agent' },
  ...{ states: ['completed'], client: 'c', targets: [], generation: 1, status: 'active' },
  ...{
    registration: { status: 'handed_out' },
    asked: 'a',
    createdAt: begin - hour,
    expiresAt: begin + 24 * hour,
  },
})

/** Fresh for as long as any scene lasts, so that nothing has to be fetched. */
function keySetOf({ jwk }: SigningKey): Fields {
  const read = readJwks(Buffer.from(JSON.stringify({ keys: [jwk] })))
  if (!read.ok) throw new Error(read.why)
  const times = {
    leasedAt: begin - 1000,
    settledAt: begin - 900,
    nextFetch: begin + hour,
    freshUntil: begin + 24 * hour,
  }
  return { url: jwksUrl, ...times, failures: 0, keys: read.text, flags: [] }
}
