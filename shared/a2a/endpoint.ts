// Builds the HTTP exchange of one A2A operation in either version and binding. Pure.
import type { Binding, Credentials, ProtocolVersion } from '../model.ts'
import type { NetRequest } from '../net.ts'

/** Limit of a whole exchange, answer's body included. */
export const exchangeMs = 10_000

/** Where and how an agent is called, and as whom. */
export type Endpoint = {
  url: string
  binding: Binding
  version: ProtocolVersion
  /** A2A's own tenant, echoed in every v1.0 request (A2A 1.0 section 8.3.2). */
  agentTenant?: string
  credentials?: Shown
  /** Gives each call its W3C `traceparent`. */
  traceparent?: () => string
}

/** Credentials as the agent sees them. */
export type Shown = Exclude<Credentials, { type: 'oauth2' }>

/** One operation, as JSON-RPC and as HTTP+JSON name it. */
export type Operation = {
  method: string
  params: Record<string, unknown>
  rest: {
    verb: 'GET' | 'POST' | 'DELETE'
    /** Path segments below the agent's URL, unencoded and without version or tenant. */
    path: string[]
    /** Stands behind the path after a colon (A2A 1.0 section 11.3, custom methods). */
    action?: 'cancel'
    query?: Record<string, string>
    body?: unknown
  }
}

/**
 * Builds the request of an operation.
 * @param id id of the JSON-RPC request
 * @returns undefined if a path segment cannot be put in a URL: `.` and `..` would climb to another path, encoded or not
 */
export function buildRequest(
  endpoint: Endpoint,
  operation: Operation,
  id: string,
): Omit<NetRequest, 'timeoutMs' | 'maxBytes'> | undefined {
  const { method, params, rest } = operation
  const url = new URL(endpoint.url)
  const headers: Record<string, string> = { 'A2A-Version': endpoint.version, Accept: accept }
  if (endpoint.traceparent !== undefined) headers.traceparent = endpoint.traceparent()
  const { agentTenant } = endpoint
  let body: unknown
  if (endpoint.binding === 'JSONRPC') {
    const tenanted = endpoint.version === '1.0' && agentTenant !== undefined
    body = { jsonrpc: '2.0', id, method, params: tenanted ? { tenant: agentTenant, ...params } : params }
  } else {
    const prefix = endpoint.version === '0.3' ? ['v1'] : agentTenant !== undefined ? [agentTenant] : []
    const path = [...prefix, ...rest.path]
    if (path.some(segment => segment === '.' || segment === '..' || !segment.isWellFormed())) return undefined
    url.pathname = `${url.pathname.replace(/\/+$/, '')}/${path.map(encodeURIComponent).join('/')}${rest.action === undefined ? '' : `:${rest.action}`}`
    for (const [name, value] of Object.entries(rest.query ?? {})) url.searchParams.set(name, value)
    body = rest.body
  }
  authenticate(endpoint.credentials, url, headers)
  // Servers of every version read application/json; application/a2a+json is new in 1.0.1 (section 11.1).
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  return {
    url: url.href,
    method: endpoint.binding === 'JSONRPC' ? 'POST' : rest.verb,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }
}

/** The secrets that a call shows the agent, so that its words can be freed of them. */
export function secretsOf(credentials: Shown | undefined): string[] {
  if (credentials === undefined) return []
  if (credentials.type === 'bearer') return [credentials.token]
  if (credentials.type === 'basic') return [credentials.password, basic(credentials)]
  return [credentials.value]
}

const accept = 'application/a2a+json, application/json'

function authenticate(credentials: Shown | undefined, url: URL, headers: Record<string, string>): void {
  if (credentials === undefined) return
  if (credentials.type === 'bearer') headers.Authorization = `Bearer ${credentials.token}`
  else if (credentials.type === 'basic') headers.Authorization = `Basic ${basic(credentials)}`
  else if (credentials.in === 'header') headers[credentials.name] = credentials.value
  else url.searchParams.set(credentials.name, credentials.value)
}

/** RFC 7617 with UTF-8. */
const basic = ({ username, password }: { username: string; password: string }): string =>
  Buffer.from(`${username}:${password}`).toString('base64')
