// Tells why an agent's answer is no good: from status, error body or network fault to one trouble. Pure.
import type { Trouble } from '../model.ts'
import type { NetError, NetReply } from '../net.ts'
import { readRetryAfter } from '../retryafter.ts'
import { isGiven, isRecord } from './read.ts'

/** A call that gave nothing usable. */
export type Failure = {
  ok: false
  trouble: Trouble
  /** The agent's own words where it had some: one line, at most 300 characters, without our secrets. */
  detail: string
  /** A2A or JSON-RPC error code (A2A 1.0 section 5.4), whatever the binding. */
  code?: number
  /** Not the agent failed, but what stands before it: its token endpoint. `busy`: another worker renews the token, or the credentials were replaced. */
  elsewhere?: true
  busy?: true
  /** What `Retry-After` asked for, at most a day. */
  retryAfterMs?: number
}

/** Error codes that callers act on (A2A 1.0 section 5.4, JSON-RPC 2.0 section 5.1). */
export const codes = {
  taskNotFound: -32001,
  taskNotCancelable: -32002,
  pushNotSupported: -32003,
  unsupportedOperation: -32004,
  versionNotSupported: -32009,
  methodNotFound: -32601,
  invalidParams: -32602,
} as const

/** HTTP+JSON names its errors by `reason` (A2A 1.0 section 11.6). */
const reasons: ReadonlyMap<unknown, number> = new Map([
  ['TASK_NOT_FOUND', codes.taskNotFound],
  ['TASK_NOT_CANCELABLE', codes.taskNotCancelable],
  ['PUSH_NOTIFICATION_NOT_SUPPORTED', codes.pushNotSupported],
  ['UNSUPPORTED_OPERATION', codes.unsupportedOperation],
  ['VERSION_NOT_SUPPORTED', codes.versionNotSupported],
  ['METHOD_NOT_FOUND', codes.methodNotFound],
  ['INVALID_PARAMS', codes.invalidParams],
])

/** The longest `Retry-After` of an agent, or what stands before it, that is read. */
const longestWaitMs = 24 * 60 * 60 * 1000

/**
 * Judges an answer; an error inside a 200 is an error.
 * @param value the parsed body, undefined if it is no JSON
 * @param now milliseconds since 1970, for a `Retry-After` that is a date
 * @returns undefined if the answer is a success
 */
export function judgeReply(
  { status: answered, headers }: Pick<NetReply, 'status' | 'headers'>,
  value: unknown,
  now: number,
): Failure | undefined {
  const error = errorOf(value, answered)
  const success = answered >= 200 && answered < 300
  if (success && error === undefined) return undefined
  const status = success ? (error?.status ?? answered) : answered
  const code = error?.code ?? (status === 400 ? codes.invalidParams : undefined)
  const retryAfterMs = readRetryAfter(headers.get('retry-after'), now, longestWaitMs)
  return {
    ok: false,
    trouble: troubleOf(status, code),
    detail: error?.words || `HTTP ${answered}`,
    ...(code !== undefined && { code }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}

/** Judges an exchange that did not come to an answer. */
export const judgeFault = ({ fault, message }: NetError): Failure => ({
  ok: false,
  trouble: fault === 'too_large' ? 'too_large' : 'unreachable',
  detail: message,
})

/** Makes an agent's words fit to be stored and shown. */
export function cleanWords(words: string, secrets: string[]): string {
  let clean = words
  for (const one of secrets.flatMap(spellings)) clean = clean.replaceAll(one, '…')
  return clean
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, 300)
    .toWellFormed()
}

/** A secret as it may come back: plain, or within JSON, a URL or a form; the longest first, for one may hold another. */
function spellings(secret: string): string[] {
  const escaped = [
    encodeURIComponent(secret.toWellFormed()),
    new URLSearchParams({ '': secret }).toString().slice(1),
  ]
  const lower = escaped.map(text => text.replace(/%[\dA-F]{2}/g, byte => byte.toLowerCase()))
  const all = new Set([secret, JSON.stringify(secret).slice(1, -1), ...escaped, ...lower])
  return [...all].filter(text => text !== '').sort((a, b) => b.length - a.length)
}

function troubleOf(status: number, code: number | undefined): Trouble {
  if (status === 401) return 'unauthorized'
  if (status === 403) return 'forbidden'
  if (status === 429) return 'rate_limited'
  if (status >= 300 && status < 400) return 'unreadable'
  if (code === codes.taskNotFound) return 'not_found'
  if (code === codes.versionNotSupported || code === codes.methodNotFound) return 'unsupported_version'
  if (status === 404 || status === 410) return 'not_found'
  return status >= 500 ? 'unreachable' : 'failed'
}

type AgentError = { code?: number; status?: number; words: string }

/** Finds the error in a body: JSON-RPC's and v1.0 HTTP+JSON's `error`, v0.3's bare `{ code, message }`, a problem (RFC 9457). */
function errorOf(value: unknown, status: number): AgentError | undefined {
  if (!isRecord(value)) return undefined
  if (isGiven(value.result) && saysNothing(value.error)) return undefined
  if (typeof value.error === 'string') return { words: text(value.error_description) || value.error }
  if (isRecord(value.error)) return readError(value.error)
  if (isGiven(value.code) && typeof value.message === 'string' && !isGiven(value.id)) return readError(value)
  return status >= 400 ? { words: text(value.detail) || text(value.title) || text(value.message) } : undefined
}

/** An error as some write who have none: the empty text, or an object that holds neither code nor word. */
const saysNothing = (error: unknown): boolean =>
  error === '' || (isRecord(error) && Object.values(error).every(part => !part))

function readError(error: Record<string, unknown>): AgentError {
  const details: unknown[] = [error.data, error.details].filter(Array.isArray).flat()
  const reason = details.filter(isRecord).find(detail => isGiven(detail.reason))?.reason
  // Some agents write the number as text, or the reason where the number belongs.
  const number = Number(error.code)
  const code = reasons.get(reason) ?? reasons.get(error.code) ?? (number <= -32000 ? number : undefined)
  return {
    ...(code !== undefined && { code }),
    ...(number >= 400 && number < 600 && { status: number }),
    words: `${text(error.message)} ${text(error.data)}`.trim(),
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
