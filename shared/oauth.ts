// Asks a token endpoint for an access token: client credentials and refresh tokens (RFC 6749 sections 4.4 and 6). Leaves by the `net` it is given and keeps nothing.
import { isRecord, parseBody } from './a2a/read.ts'
import { cleanWords } from './a2a/trouble.ts'
import type { OAuth } from './model.ts'
import { type Net, NetError, type NetReply } from './net.ts'
import { readRetryAfter } from './retryafter.ts'

/** Times are in ms. `refreshToken`: a new one, where the server rotates them. */
export type Granted = { ok: true; accessToken: string; lifeMs: number; refreshToken?: string }

/**
 * `spent`: these credentials are no good any more. Everything else may go by itself. `refreshToken`: a new one that came
 * all the same, with an access token of no use; the one before may be taken no more.
 */
export type Refused = {
  ok: false
  spent: boolean
  detail: string
  retryAfterMs?: number
  refreshToken?: string
}

const timeoutMs = 5000
const maxBytes = 64 * 1024
/** Life of a token whose server states none (RFC 6749 section 5.1 leaves it to the documents). */
const unstatedMs = 5 * 60 * 1000
const longestMs = 24 * 60 * 60 * 1000
/** The longest that a token endpoint's own `Retry-After` is heeded: no look passes it meanwhile. */
const mostAskedMs = 15 * 60 * 1000

/** Errors that asking again with the same credentials does not mend (RFC 6749 section 5.2). */
const final = ['invalid_grant', 'invalid_client', 'unauthorized_client']

/**
 * @param refreshToken the latest one, which may be newer than the one that was given
 * @param now milliseconds since 1970, for a `Retry-After` that is a date
 */
export async function askForToken(
  net: Net,
  oauth: OAuth,
  refreshToken: string | undefined,
  now: number,
): Promise<Granted | Refused> {
  const secrets = [oauth.clientSecret, refreshToken].filter(secret => secret !== undefined)
  try {
    const reply = await net.request({ ...request(oauth, refreshToken), timeoutMs, maxBytes })
    const read = readAnswer(reply, now)
    return read.ok ? read : { ...read, detail: cleanWords(read.detail, secrets) }
  } catch (error) {
    if (error instanceof NetError) return { ok: false, spent: false, detail: error.message }
    throw error
  }
}

function request(oauth: OAuth, refreshToken: string | undefined) {
  const { tokenUrl, clientId, clientSecret, auth, scope } = oauth
  const form = new URLSearchParams({ grant_type: oauth.grant })
  if (scope !== undefined) form.set('scope', scope)
  if (oauth.grant === 'refresh_token') form.set('refresh_token', refreshToken ?? '')
  else {
    if (oauth.audience !== undefined) form.set('audience', oauth.audience)
    // RFC 8707.
    if (oauth.resource !== undefined) form.set('resource', oauth.resource)
  }
  const headers: Record<string, string> = {
    Accept: 'application/json',
    'Content-Type': 'application/x-www-form-urlencoded',
  }
  if (auth === 'basic' && clientSecret !== undefined) headers.Authorization = basic(clientId, clientSecret)
  else {
    form.set('client_id', clientId)
    if (clientSecret !== undefined) form.set('client_secret', clientSecret)
  }
  return { url: tokenUrl, method: 'POST' as const, headers, body: form.toString() }
}

/** Both halves are form-encoded before they are joined (RFC 6749 section 2.3.1). */
const basic = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${encoded(id)}:${encoded(secret)}`).toString('base64')}`

const encoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)

function readAnswer({ status, headers, body }: NetReply, now: number): Granted | Refused {
  const parsed = parseBody(body)
  const answer = parsed.ok && isRecord(parsed.value) ? parsed.value : {}
  const code = typeof answer.error === 'string' ? answer.error : ''
  // Some servers send their errors, too, with 200.
  if (status === 200 && (code === '' || answer.access_token !== undefined)) return readToken(answer)
  const words = typeof answer.error_description === 'string' ? answer.error_description : ''
  const retryAfterMs = readRetryAfter(headers.get('retry-after'), now, mostAskedMs)
  return {
    ok: false,
    spent: status < 500 && status !== 429 && final.includes(code),
    detail: `${code || `HTTP ${status}`} ${words}`.trim(),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}

function readToken(answer: Record<string, unknown>): Granted | Refused {
  const { access_token: accessToken, token_type: type, expires_in: seconds, refresh_token: next } = answer
  const rotated = typeof next === 'string' && next !== '' ? { refreshToken: next } : {}
  const useless = (detail: string): Refused => ({ ok: false, spent: false, detail, ...rotated })
  // What a header cannot carry unchanged is no bearer token (RFC 6750 section 2.1).
  if (typeof accessToken !== 'string' || !/^[\x21-\x7e]{1,8192}$/.test(accessToken))
    return useless('The answer holds no access token.')
  // RFC 6749 section 7.1: a type that is not known must not be used. Its case does not count.
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    return useless('The access token is no bearer token.')
  const stated = Number(seconds) * 1000
  return {
    ok: true,
    accessToken,
    lifeMs: stated > 0 ? Math.min(stated, longestMs) : unstatedMs,
    ...rotated,
  }
}
