// What every variant of the bench is given: one tenant, its agents, hooks, signed pushes and the items that AWS would hold. Made once a run, plain JSON.
import type { LambdaFunctionURLEvent } from 'aws-lambda'
import { sha256Hex } from '../../shared/hash.ts'
import { hookSecret, makeHook, refOf } from '../../shared/hooks.ts'
import { readJwks } from '../../shared/jwks.ts'
import type { Agent, Subscription, Verification } from '../../shared/model.ts'
import { agentKey, agentKeysKey, type Key, subscriptionKey } from '../../shared/store/keys.ts'
import { makeKey, type SigningKey, signJwt } from '../support/keys.ts'

/** Kinds of pushes, each by an agent of its own but for the two that are refused. */
export const kinds = ['RS256', 'ES256', 'EdDSA', 'token', 'wrong_token', 'bad_signature'] as const
export type Kind = (typeof kinds)[number]

export type Scene = {
  /** When the first push arrives, ms since 1970. */
  at: number
  env: Record<string, string>
  issuer: string
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

/** Makes a scene for pushes that arrive from now on. */
export function makeScene(at: number): Scene {
  const keys = new Map(['RS256', 'ES256', 'EdDSA'].map(alg => [alg, makeKey(alg, `key-${alg}`)]))
  const jwks = { keys: [...keys.values()].map(({ jwk, alg }) => ({ ...jwk, alg, use: 'sig' })) }
  const scene: Scene = {
    at,
    env: envOf(),
    issuer,
    jwks,
    items: [],
    pushes: { RS256: [], ES256: [], EdDSA: [], token: [], wrong_token: [], bad_signature: [] },
  }
  for (const alg of ['RS256', 'ES256', 'EdDSA', 'token'] as const) addAgent(scene, alg, keys.get(alg))
  scene.pushes.wrong_token = scene.pushes.RS256.map(push => withHeader(push, tokenHeader, 'x'.repeat(43)))
  scene.pushes.bad_signature = scene.pushes.RS256.map(({ headers, ...push }) => {
    const [head, claims, signature = ''] = headers.authorization?.split('.') ?? []
    const wrong = `${signature[0] === 'A' ? 'B' : 'A'}${signature.slice(1)}`
    return withHeader({ ...push, headers }, 'authorization', [head, claims, wrong].join('.'))
  })
  return scene
}

const tokenHeader = 'x-a2a-notification-token'

const envOf = (): Record<string, string> => ({
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'bench',
  // Lambda's credentials always carry one of several hundred characters.
  AWS_SESSION_TOKEN: 'Fw'.repeat(350),
  TABLE_NAME: 'rouse',
  LOOK_QUEUE_URL: 'https://sqs.us-east-1.amazonaws.com/123456789012/look',
  DELIVER_QUEUE_URL: 'https://sqs.us-east-1.amazonaws.com/123456789012/deliver',
  PUBLIC_ORIGIN: 'https://rouse.example',
  HOOK_ORIGIN: hookOrigin,
  ROOT_KEYS: `1:${root.toString('base64url')}`,
})

/** An agent with its key set, and hooks bound to one task each, with one push each. */
function addAgent(scene: Scene, kind: 'RS256' | 'ES256' | 'EdDSA' | 'token', key: SigningKey | undefined): void {
  const { at, items, pushes } = scene
  const jwt = { jwksUrl, issuer, algorithms: [kind], windowSeconds: 300, skewSeconds: 60 }
  const agent = agentOf(kind, at, { token: true, ...(key && { jwt: { ...jwt, digest: 'required' as const } }) })
  items.push({ ...agentKey(agent.tenant, agent.agent), ...agent })
  if (key !== undefined) items.push(keySetOf(agent, scene))
  for (let n = 0; n < hooks; n++) {
    const hook = makeHook(new Map([[1, root]]), Buffer.from(sha256Hex(`${kind} ${n}`), 'hex').subarray(0, 16))
    const sub = subscriptionOf(agent, hook, `task-${kind}-${n}`, at)
    items.push({ ...subscriptionKey(sub.ref), ...sub })
    const body = bodyOf(sub.taskId ?? '', n)
    const token = hookSecret(new Map([[1, root]]), hook, sub.tenant, sub.generation, 'token')
    const bearer = key && signJwt(key, claimsOf(sub, body, at, n))
    pushes[kind].push(eventOf(hook, body, { [tokenHeader]: token, ...(bearer && { authorization: `Bearer ${bearer}` }) }))
  }
}

const agentOf = (kind: string, at: number, verification: Verification): Agent => ({
  tenant: 'acme',
  agent: `agent-${kind.toLowerCase()}`,
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
  verification,
})

/** The set as the table keeps it, fresh for as long as any run takes. */
function keySetOf({ tenant, agent }: Agent, { at, jwks }: Scene): Key & Record<string, unknown> {
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

/** A v1.0 status update as the official SDKs send it, with a sentence of the agent's. */
const bodyOf = (taskId: string, n: number): string =>
  JSON.stringify({
    statusUpdate: {
      taskId,
      contextId: `context-${n}`,
      status: {
        state: 'TASK_STATE_COMPLETED',
        timestamp: '2026-01-01T00:00:00.000Z',
        message: {
          messageId: `message-${n}`,
          role: 'ROLE_AGENT',
          taskId,
          contextId: `context-${n}`,
          parts: [{ text: 'The report is ready: 14 pages, 3 findings, none of them urgent. '.repeat(4) }],
        },
      },
      metadata: { model: 'example', step: n },
    },
  })

const claimsOf = (sub: Subscription, body: string, at: number, n: number): Record<string, unknown> => ({
  iss: issuer,
  aud: `${hookOrigin}/hooks/${sub.hook}`,
  iat: Math.floor(at / 1000),
  exp: Math.floor(at / 1000) + 3600,
  jti: `jti-${sub.taskId}-${n}`,
  taskId: sub.taskId,
  request_body_sha256: sha256Hex(body),
})

const withHeader = (event: LambdaFunctionURLEvent, name: string, value: string): LambdaFunctionURLEvent => ({
  ...event,
  headers: { ...event.headers, [name]: value },
})

/** An event as a Function URL makes it: the body in base64, the gateway's own headers beside the sender's. */
function eventOf(hook: string, body: string, headers: Record<string, string>): LambdaFunctionURLEvent {
  const rawPath = `/hooks/${hook}`
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath,
    rawQueryString: '',
    headers: {
      'content-length': String(Buffer.byteLength(body)),
      'x-amzn-tls-version': 'TLSv1.3',
      'x-forwarded-proto': 'https',
      'x-forwarded-port': '443',
      'x-forwarded-for': '203.0.113.7',
      'x-amzn-tls-cipher-suite': 'TLS_AES_128_GCM_SHA256',
      'x-amzn-trace-id': 'Root=1-6759e988-bd862e3fe1be46a994272793',
      host: 'hooks.rouse.example',
      'content-type': 'application/json',
      'user-agent': 'python-httpx/0.28.1',
      accept: '*/*',
      'accept-encoding': 'gzip, deflate',
      ...headers,
    },
    requestContext: {
      accountId: 'anonymous',
      apiId: 'bench',
      domainName: 'hooks.rouse.example',
      domainPrefix: 'bench',
      http: { method: 'POST', path: rawPath, protocol: 'HTTP/1.1', sourceIp: '203.0.113.7', userAgent: 'python-httpx/0.28.1' },
      requestId: 'e1506fd5-9e7b-434f-bd42-4f8fa224b599',
      routeKey: '$default',
      stage: '$default',
      time: '01/Jan/2026:00:00:00 +0000',
      timeEpoch: 1_767_225_600_000,
    },
    body: Buffer.from(body).toString('base64'),
    isBase64Encoded: true,
  }
}
