// What every variant of the bench is given: agents, hooks, signed pushes and the items that AWS would hold. Made anew for each part, plain JSON.
import type { LambdaFunctionURLEvent } from 'aws-lambda'
import { sha256Hex } from '../../shared/hash.ts'
import { hookSecret, makeHook, refOf } from '../../shared/hooks.ts'
import { readJwks } from '../../shared/jwks.ts'
import type { Agent, Subscription } from '../../shared/model.ts'
import { agentKey, agentKeysKey, type Key, subscriptionKey } from '../../shared/store/keys.ts'
import { makeKey, type SigningKey, signJwt } from '../support/keys.ts'
import { eventOf } from './event.ts'

const algorithms = ['RS256', 'ES256', 'EdDSA'] as const

/** Pushes of an agent that signs by an algorithm, of one that shows its token only, and two that are refused. */
export type Kind = (typeof algorithms)[number] | 'token' | 'wrong_token' | 'bad_signature'

export type Scene = {
  /** When the first push arrives, ms since 1970. */
  at: number
  env: Record<string, string>
  jwks: { keys: Record<string, unknown>[] }
  items: (Key & Record<string, unknown>)[]
  pushes: Record<Kind, LambdaFunctionURLEvent[]>
}

const issuer = 'https://agent.example'
const jwksUrl = `${issuer}/.well-known/jwks.json`
const hookOrigin = 'https://hooks.rouse.example'
/** Many enough that no rate of one hook or task is reached at 100 pushes a second. */
const hooks = 20
const hour = 60 * 60 * 1000
const root = Buffer.alloc(32, 7)
const rootKeys = new Map([[1, root]])
const tokenHeader = 'x-a2a-notification-token'

/** Makes a scene for pushes that arrive from now on. */
export function makeScene(at: number): Scene {
  const keys = new Map(algorithms.map(alg => [alg, makeKey(alg, `key-${alg}`)]))
  const jwks = { keys: [...keys.values()].map(({ jwk, alg }) => ({ ...jwk, alg, use: 'sig' })) }
  const pushes = { RS256: [], ES256: [], EdDSA: [], token: [], wrong_token: [], bad_signature: [] }
  const scene: Scene = { at, env: environment(), jwks, items: [], pushes }
  for (const [alg, key] of keys) addAgent(scene, alg, key)
  addAgent(scene, 'token', undefined)
  scene.pushes.wrong_token = scene.pushes.RS256.map(push => replaced(push, tokenHeader, () => 'x'.repeat(43)))
  scene.pushes.bad_signature = scene.pushes.RS256.map(push => replaced(push, 'authorization', bend))
  return scene
}

/** The settings of the receive door and of the floor; Lambda's credentials always carry a long session token. */
const environment = (): Record<string, string> => ({
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'bench',
  AWS_SESSION_TOKEN: 'Fw'.repeat(350),
  TABLE_NAME: 'rouse',
  LOOK_QUEUE_URL: 'https://sqs.us-east-1.amazonaws.com/123456789012/look',
  DELIVER_QUEUE_URL: 'https://sqs.us-east-1.amazonaws.com/123456789012/deliver',
  PUBLIC_ORIGIN: 'https://rouse.example',
  HOOK_ORIGIN: hookOrigin,
  ROOT_KEYS: `1:${root.toString('base64url')}`,
  ISSUER: issuer,
  JWKS_URL: jwksUrl,
})

/** An agent with its key set, and hooks that are bound to one task each, with one push each. */
function addAgent(scene: Scene, kind: Kind, key: SigningKey | undefined): void {
  const { at, items, pushes } = scene
  const agent = agentOf(kind, at, key?.alg)
  items.push({ ...agentKey(agent.tenant, agent.agent), ...agent }, keySetOf(agent, scene))
  for (let n = 0; n < hooks; n++) {
    const hook = makeHook(rootKeys, Buffer.from(sha256Hex(`${kind} ${n}`), 'hex').subarray(0, 16))
    const sub = subscriptionOf(agent, hook, `task-${kind}-${n}`, at)
    items.push({ ...subscriptionKey(sub.ref), ...sub })
    const body = bodyOf(`task-${kind}-${n}`, n)
    const token = hookSecret(rootKeys, hook, sub.tenant, sub.generation, 'token')
    const jwt = key && `Bearer ${signJwt(key, claimsOf(sub, body, at))}`
    pushes[kind].push(eventOf(hook, body, { [tokenHeader]: token, ...(jwt && { authorization: jwt }) }))
  }
}

const agentOf = (kind: Kind, at: number, alg: string | undefined): Agent => ({
  tenant: 'acme',
  agent: `agent-${kind}`,
  etag: 'e1',
  createdAt: at - hour,
  updatedAt: at - hour,
  url: `${issuer}/a2a`,
  binding: 'JSONRPC',
  version: '1.0',
  origins: [issuer],
  pushes: true,
  streams: true,
  road: 'push',
  verification: {
    token: true,
    ...(alg !== undefined && {
      jwt: { jwksUrl, issuer, algorithms: [alg], digest: 'required', windowSeconds: 300, skewSeconds: 60 },
    }),
  },
})

/** The set as the table keeps it, fresh for longer than any run takes. */
function keySetOf({ tenant, agent }: Agent, { at, jwks }: Scene): Scene['items'][number] {
  const read = readJwks(Buffer.from(JSON.stringify(jwks)))
  if (!read.ok) throw new Error(read.why)
  const times = { leasedAt: at - 1000, settledAt: at - 900, nextFetch: at + hour, freshUntil: at + 24 * hour }
  return { ...agentKeysKey(tenant, agent), url: jwksUrl, ...times, failures: 0, keys: read.text, flags: [] }
}

const subscriptionOf = (agent: Agent, hook: string, taskId: string, at: number): Subscription => ({
  ref: refOf(hook),
  hook,
  tenant: agent.tenant,
  id: `sub-${taskId}`,
  agent: agent.agent,
  principal: 'agent',
  scope: 'task',
  taskId,
  states: ['completed', 'failed', 'input-required'],
  client: 'client-1',
  targets: ['target-1'],
  generation: 1,
  status: 'active',
  registration: { status: 'registered' },
  asked: sha256Hex(taskId),
  createdAt: at - hour,
  expiresAt: at + 24 * hour,
})

/** A v1.0 status update as the official SDKs send it, with some sentences of the agent's. */
const bodyOf = (taskId: string, n: number): string => {
  const contextId = `context-${n}`
  const parts = [{ text: 'The report is ready: 14 pages, 3 findings, none of them urgent. '.repeat(4) }]
  const message = { messageId: `message-${n}`, role: 'ROLE_AGENT', taskId, contextId, parts }
  const status = { state: 'TASK_STATE_COMPLETED', timestamp: '2026-01-01T00:00:00.000Z', message }
  return JSON.stringify({ statusUpdate: { taskId, contextId, status, metadata: { step: n } } })
}

const claimsOf = ({ hook, taskId }: Subscription, body: string, at: number): Record<string, unknown> => ({
  iss: issuer,
  aud: `${hookOrigin}/hooks/${hook}`,
  iat: Math.floor(at / 1000),
  exp: Math.floor(at / 1000) + 3600,
  jti: `jti-${taskId}`,
  taskId,
  request_body_sha256: sha256Hex(body),
})

const replaced = (
  event: LambdaFunctionURLEvent,
  name: string,
  change: (value: string) => string,
): LambdaFunctionURLEvent => ({
  ...event,
  headers: { ...event.headers, [name]: change(event.headers[name] ?? '') },
})

/** The same JWT with one character of its signature replaced. */
function bend(authorization: string): string {
  const at = authorization.lastIndexOf('.') + 1
  return `${authorization.slice(0, at)}${authorization[at] === 'A' ? 'B' : 'A'}${authorization.slice(at + 1)}`
}
