// Hands out push configs in either version's shape, and sets and deletes them at the agent. Keeps nothing.
import type { ProtocolVersion, Registration, Trouble } from '../model.ts'
import type { Net } from '../net.ts'
import { type Answer, call } from './client.ts'
import type { Endpoint, Operation } from './endpoint.ts'
import { isRecord } from './read.ts'
import { codes, type Failure } from './trouble.ts'

/** A push config as Rouse makes it. */
export type PushConfig = {
  url: string
  id: string
  token?: string
  authentication?: { scheme: string; credentials: string }
}

/** The same in the agent's version: Python and Java agents refuse any field they do not know. */
export type HandedOut = {
  url: string
  id: string
  token?: string
  authentication?: { scheme: string; credentials: string } | { schemes: string[]; credentials: string }
}

/** Shapes a config for a version: v1.0 AuthenticationInfo has one `scheme`, v0.3's a list of `schemes`. */
export function handOut(config: PushConfig, version: ProtocolVersion): HandedOut {
  const { url, id, token, authentication } = config
  const handed: HandedOut = { url, id }
  if (token !== undefined) handed.token = token
  if (authentication !== undefined) {
    const { scheme, credentials } = authentication
    handed.authentication = version === '1.0' ? { scheme, credentials } : { schemes: [scheme], credentials }
  }
  return handed
}

/**
 * Creates a config at the agent and confirms it by listing: some agents take a config and drop it without a word.
 * @returns `registered`, `unsupported`, or `failed` with the agent's own words; the failure itself of a call that better
 * credentials, or another version, may mend
 */
export async function registerConfig(
  net: Net,
  endpoint: Endpoint,
  taskId: string,
  config: PushConfig,
): Promise<Registration | Failure> {
  const ask = (operation: Operation): Promise<Answer> =>
    call(net, endpoint, operation, { id: config.id, secrets: secretsIn(config) })
  const created = await create(ask, endpoint, taskId, config)
  if (!created.ok) return mendable.has(created.trouble) ? created : refused(created)
  let pageToken: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const listed = await ask(listOperation(endpoint.version, taskId, pageToken))
    // An agent that cannot list has at least echoed what it keeps.
    if (!listed.ok) return holds([created.value], config) && cannot(listed) ? registered : refused(listed)
    if (holds(configsIn(listed.value), config)) return registered
    pageToken = nextPage(listed.value)
    if (pageToken === undefined) break
  }
  return { status: 'failed', detail: 'The agent took the push config but does not list it.' }
}

/** Deletes a config at the agent; one that is gone already is fine (A2A 1.0 section 3.1.10). */
export async function removeConfig(
  net: Net,
  endpoint: Endpoint,
  taskId: string,
  id: string,
): Promise<{ ok: true } | Failure> {
  const v1 = endpoint.version === '1.0'
  const deleted = await call(
    net,
    endpoint,
    {
      method: v1 ? 'DeleteTaskPushNotificationConfig' : 'tasks/pushNotificationConfig/delete',
      params: v1 ? { taskId, id } : { id: taskId, pushNotificationConfigId: id },
      rest: { verb: 'DELETE', path: [...configsPath(taskId), id] },
    },
    { id },
  )
  return deleted.ok || deleted.trouble === 'not_found' ? { ok: true } : deleted
}

type Ask = (operation: Operation) => Promise<Answer>

const mostPages = 5

const mendable: ReadonlySet<Trouble> = new Set(['unauthorized', 'unsupported_version'])

const registered: Registration = { status: 'registered' }

const configsPath = (taskId: string): string[] => ['tasks', taskId, 'pushNotificationConfigs']

async function create(
  ask: Ask,
  { version, binding }: Endpoint,
  taskId: string,
  config: PushConfig,
): Promise<Answer> {
  const handed = handOut(config, version)
  const path = configsPath(taskId)
  if (version === '1.0') {
    const body = { taskId, ...handed }
    return ask({
      method: 'CreateTaskPushNotificationConfig',
      params: body,
      rest: { verb: 'POST', path, body },
    })
  }
  const method = 'tasks/pushNotificationConfig/set'
  const params = { taskId, pushNotificationConfig: handed }
  const parent = `tasks/${taskId}`
  const bare = { name: `${parent}/pushNotificationConfigs/${config.id}`, pushNotificationConfig: handed }
  // v0.3 over HTTP+JSON has two dialects: the request message of the proto, and its `config` alone (a2a-js 1.x).
  const wrapped = { parent, configId: config.id, config: bare }
  const first = await ask({ method, params, rest: { verb: 'POST', path, body: wrapped } })
  if (first.ok || first.code !== codes.invalidParams || binding === 'JSONRPC') return first
  return ask({ method, params, rest: { verb: 'POST', path, body: bare } })
}

function listOperation(version: ProtocolVersion, taskId: string, pageToken: string | undefined): Operation {
  const page = pageToken === undefined ? {} : { pageToken }
  const rest: Operation['rest'] = { verb: 'GET', path: configsPath(taskId), query: page }
  return version === '1.0'
    ? { method: 'ListTaskPushNotificationConfigs', params: { taskId, ...page }, rest }
    : { method: 'tasks/pushNotificationConfig/list', params: { id: taskId }, rest }
}

/** v0.3 JSON-RPC lists an array, everything else `{ configs }`. */
function configsIn(value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  return isRecord(value) && Array.isArray(value.configs) ? value.configs : []
}

const nextPage = (value: unknown): string | undefined =>
  isRecord(value) && typeof value.nextPageToken === 'string' && value.nextPageToken !== ''
    ? value.nextPageToken
    : undefined

/** True if one of the entries, flat as in v1.0 or nested as in v0.3, is this config. */
const holds = (entries: unknown[], { id, url }: PushConfig): boolean =>
  entries.filter(isRecord).some(entry => {
    const kept = isRecord(entry.pushNotificationConfig) ? entry.pushNotificationConfig : entry
    return kept.id === id && kept.url === url
  })

const cannot = ({ code, trouble }: Failure): boolean =>
  code === codes.unsupportedOperation || trouble === 'unsupported_version'

/** Troubles that need not meet the next try. */
const passing: ReadonlySet<Trouble> = new Set(['unreachable', 'rate_limited', 'unauthorized'])

/** What a failure makes of a push config. */
export const refused = ({ code, trouble, detail }: Failure): Registration => ({
  status: code === codes.pushNotSupported ? 'unsupported' : 'failed',
  detail,
  ...(passing.has(trouble) && { again: true }),
})

/** The hook is as secret as what is handed out with it, and an agent may quote its address in part. */
const secretsIn = ({ url, token, authentication }: PushConfig): string[] =>
  [url, url.slice(url.lastIndexOf('/') + 1), token, authentication?.credentials].filter(
    secret => secret !== undefined,
  )
