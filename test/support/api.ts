// Calls the API as it stands on the wire, byte for byte, and keeps every answer and log line, so that a suite can look for leaks.
import * as http from 'node:http'
import { expect } from 'vitest'
import { type DemoAgent, startAgent } from '../../infra/local/agent.ts'
import { type Local, type LocalOptions, startLocal } from '../../infra/local/run.ts'
import type { Call, Fault } from '../../infra/local/wire.ts'
import type { HandedOut } from '../../shared/a2a/configs.ts'
import { type ErrorCode, says, statusOf } from '../../shared/errors.ts'
import { ear } from './ear.ts'

export type Fields = Record<string, unknown>

export type Ask = {
  /** An API key; the tenant's own unless given, none at all for ''. */
  key?: string
  /** A list of values is sent as so many lines. */
  headers?: Record<string, string | string[]>
  /** An object is sent as JSON, text and bytes as they are. */
  body?: unknown
}

export type Answer<Body = Fields> = {
  status: number
  headers: http.IncomingHttpHeaders
  text: string
  /** The body if it is JSON; `{}` if it is not. */
  body: Body
}

/** What was asked, and what came of it. */
export type Exchange = { method: string; path: string; asked: string; answered: string; status: number }

export type Api = {
  local: Local
  agent: DemoAgent
  /** The tenant's key, with all scopes. */
  key: string
  /** Every call so far, and every line that was logged. */
  exchanges: Exchange[]
  lines: string[]
  ask: <Body = Fields>(method: string, path: string, ask?: Ask) => Promise<Answer<Body>>
  /** The same with a JSON body, or with none; it must succeed. */
  must: <Body = Fields>(method: string, path: string, body?: unknown) => Promise<Body>
  /**
   * All the items of the table in a stable order, without the marks of who wrote last. A tenant's counts are left out:
   * they may stay high, and name nothing. So are the generations that deleted targets leave.
   */
  items: () => Promise<Fields[]>
  stop: () => Promise<void>
}

type Route = {
  method: string
  path: string
  needs: 'operator' | 'keys' | 'mend' | 'admin' | 'write' | 'read'
}

const route = (needs: Route['needs'], method: string, path: string): Route => ({ method, path, needs })

/** Every route that asks for a key, and the least that the key must be good for. */
export const routes: readonly Route[] = [
  route('operator', 'PUT', '/v1/tenants/:tenant'),
  route('operator', 'GET', '/v1/tenants/:tenant'),
  route('operator', 'DELETE', '/v1/tenants/:tenant'),
  route('keys', 'POST', '/v1/keys'),
  route('keys', 'GET', '/v1/keys'),
  route('keys', 'DELETE', '/v1/keys/:id'),
  route('write', 'PUT', '/v1/agents/:agent'),
  route('read', 'GET', '/v1/agents/:agent'),
  route('read', 'GET', '/v1/agents'),
  route('read', 'GET', '/v1/agents/:agent/health'),
  route('write', 'DELETE', '/v1/agents/:agent'),
  route('write', 'POST', '/v1/subscriptions'),
  route('write', 'PUT', '/v1/subscriptions/:id'),
  route('read', 'GET', '/v1/subscriptions/:id'),
  route('read', 'GET', '/v1/subscriptions'),
  route('write', 'POST', '/v1/subscriptions/:id/bind'),
  route('write', 'POST', '/v1/subscriptions/:id/rotate'),
  route('write', 'PUT', '/v1/subscriptions/:id/credentials'),
  route('write', 'DELETE', '/v1/subscriptions/:id'),
  route('write', 'PUT', '/v1/targets/:target'),
  route('read', 'GET', '/v1/targets/:target'),
  route('read', 'GET', '/v1/targets'),
  route('write', 'DELETE', '/v1/targets/:target'),
  route('write', 'POST', '/v1/targets/:target/enable'),
  route('write', 'POST', '/v1/targets/:target/test'),
  route('write', 'POST', '/v1/targets/:target/rotate'),
  route('admin', 'PUT', '/v1/operations'),
  route('admin', 'GET', '/v1/operations'),
  route('admin', 'DELETE', '/v1/operations'),
  route('read', 'GET', '/v1/tasks'),
  route('read', 'GET', '/v1/tasks/:agent/:taskId'),
  route('write', 'POST', '/v1/tasks/:agent/:taskId/cancel'),
  route('read', 'GET', '/v1/inbox'),
  route('read', 'GET', '/v1/wakes'),
  route('read', 'GET', '/v1/wakes/:id'),
  route('write', 'POST', '/v1/wakes/:id/retry'),
  route('mend', 'POST', '/v1/redrive'),
  route('write', 'POST', '/v1/inbox/replay'),
]

/** A path of a route with these words in the place of its names. */
export const pathOf = ({ path }: Pick<Route, 'path'>, word = 'none'): string => path.replace(/:\w+/g, word)

/** A fault that leaves the queues' messages where they are, so that only requests change the table. */
export const unread = ({ who, operation }: Call): Fault | undefined =>
  who === 'ground' && operation === 'ReceiveMessage' ? 'throttle' : undefined

/** A subscription as it is answered to whoever made it. */
export type Made = {
  id: string
  status: string
  registration: { status: string; detail?: string }
  targets: { target: string; secret?: string }[]
  pushNotificationConfig: HandedOut
  pushNotificationConfigs: Record<'1.0' | '0.3', HandedOut>
}

/** Starts the relay with two tenants, `demo` and `other`, and an agent that is not registered yet. */
export async function startApi(options: LocalOptions = {}): Promise<Api> {
  const lines: string[] = []
  const exchanges: Exchange[] = []
  const local = await startLocal({
    tick: 'manual',
    tenants: ['demo', 'other'],
    write: line => {
      ear.line(line)
      lines.push(line)
    },
    ...options,
  })
  const agent = await startAgent({ now: local.now })
  const key = local.keys.demo ?? ''
  const ask: Api['ask'] = async (method, path, { headers, body, key: used = key } = {}) => {
    const bytes = body === undefined || isRaw(body) ? body : JSON.stringify(body)
    const answer = await exchange(local.apiOrigin, method, path, {
      headers: {
        ...(used !== '' && { authorization: `Bearer ${used}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      bytes,
    })
    const { text, status } = answer
    exchanges.push({ method, path, asked: String(bytes ?? ''), answered: text, status })
    return { ...answer, body: readJson(text) }
  }
  return {
    ...{ local, agent, key, exchanges, lines, ask },
    must: async <Body>(method: string, path: string, body?: unknown) => {
      const answer = await ask<Body>(method, path, { body })
      if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`)
      return answer.body
    },
    items: async () =>
      (await local.items())
        .filter(({ sk }) => !String(sk).startsWith('quota#'))
        .map(({ req: _, ...item }): Fields => item)
        .filter(item => !isStone(item))
        .sort((a, b) => (`${a.pk} ${a.sk}` < `${b.pk} ${b.sk}` ? -1 : 1)),
    stop: async () => {
      await agent.stop()
      await local.stop()
    },
  }
}

const isStone = ({ sk, ...rest }: Fields): boolean =>
  sk === 'gate' && Object.keys(rest).sort().join() === 'generation,pk,resumedAt,ttl'

const isRaw = (body: unknown): body is string | Uint8Array =>
  typeof body === 'string' || body instanceof Uint8Array

/** The one border where an answer gets its type: whoever asks knows what the route answers. */
const readJson = <Body>(text: string): Body => {
  try {
    return JSON.parse(text)
  } catch {
    return {} as Body
  }
}

/** One request on a connection of its own; path and headers go out as they are written. */
function exchange(
  origin: string,
  method: string,
  path: string,
  {
    headers,
    bytes = '',
  }: { headers: Record<string, string | string[]>; bytes: string | Uint8Array | undefined },
): Promise<Omit<Answer, 'body'>> {
  const { host, hostname, port } = new URL(origin)
  const length = String(Buffer.byteLength(bytes))
  const all = { host, connection: 'close', ...(length !== '0' && { 'content-length': length }), ...headers }
  const lines = Object.entries(all).flatMap(([name, values]) =>
    [values].flat().flatMap(value => [name, value]),
  )
  return new Promise((resolve, reject) => {
    const asked = http.request({ hostname, port, method, path, headers: lines }, async reply => {
      const chunks: Buffer[] = []
      for await (const chunk of reply) chunks.push(chunk)
      const text = Buffer.concat(chunks).toString()
      resolve({ status: reply.statusCode ?? 0, headers: reply.headers, text })
    })
    asked.on('error', reject)
    asked.end(bytes)
  })
}

/** The push configs that the demo agent holds for a task, by the id and address of each. */
export async function configsAt({ agent }: Api, taskId: string): Promise<Fields[]> {
  const call = { jsonrpc: '2.0', id: 1, method: 'ListTaskPushNotificationConfigs', params: { taskId } }
  const answer = await fetch(agent.endpointUrl(), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify(call),
  })
  const { result } = await answer.json()
  return (result.configs ?? []).map(({ id, url }: Fields) => ({ id, url }))
}

/** Expects a problem (RFC 9457) with this code, naming these places. */
export function expectProblem(
  api: Api,
  { status, headers, body }: Answer,
  code: ErrorCode,
  pointers?: string[],
): void {
  expect({ status, ...body }).toMatchObject({
    type: `${api.local.apiOrigin}/docs/errors#${code}`,
    title: says(code),
    status: statusOf(code),
    code,
  })
  expect(headers['content-type']).toBe('application/problem+json')
  expect(headers['cache-control']).toBe('no-store')
  if (pointers !== undefined) expect(pointersOf(body)).toEqual(pointers)
}

const pointersOf = ({ errors = [] }: Fields): unknown[] =>
  Array.isArray(errors) ? [...new Set(errors.map(({ pointer }) => pointer))] : []

/** Fields whose values are secrets, in requests and in answers alike. */
const secretFields = new Set(['token', 'credentials', 'password', 'value', 'secret', 'key'])

/** Every secret that went over the wire so far, in requests and answers. */
export function secretsIn(exchanges: Exchange[]): Set<string> {
  const found = new Set<string>()
  const texts = exchanges.flatMap(({ asked, answered }) => [asked, answered])
  // A list of what is left instead of recursion: some bodies are deeper than the stack.
  const left: [name: string, value: unknown][] = texts.map(text => ['', readJson(text)])
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [name, value] = next
    if (typeof value === 'object' && value !== null) left.push(...Object.entries(value))
    if (typeof value !== 'string') continue
    const hook = /\/hooks\/(.+)$/.exec(value)?.[1]
    if (hook !== undefined) found.add(hook)
    if (secretFields.has(name) && value.length >= 8) found.add(value)
  }
  return found
}

/** What no log line may look like: keys, webhook secrets, hook addresses, and everything that JOSE makes. */
const forbidden = /\b(?:rk|op)_[\w-]{40}|whsec_|\/hooks\/|eyJ[\w-]{8,}\./

/** Expects that no line that was logged so far gives a secret away. */
export function expectDiscreet({ local, lines, exchanges }: Api): void {
  const secrets = [local.operatorKey, ...Object.values(local.keys), ...secretsIn(exchanges)]
  expect(lines.filter(line => forbidden.test(line) || secrets.some(secret => line.includes(secret)))).toEqual(
    [],
  )
}
