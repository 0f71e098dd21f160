// Answers refusals as problem details (RFC 9457) whose type points into the error table, and hides everything else behind a 500.
import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { type ErrorCode, RouseError, says } from '../../shared/errors.ts'
import type { Relay } from '../../shared/relay.ts'

/** The answer to anything that was thrown in a route. */
export function answerProblem(relay: Relay, error: unknown, c: Context): Response {
  const refusal = asRefusal(error)
  if (refusal.code === 'internal')
    relay.log({ step: 'request.broke', level: 'error', path: c.req.routePath, error, stack: stackOf(error) })
  // RFC 9110 section 15.5.2 demands a challenge.
  if (refusal.code === 'unauthorized') c.header('WWW-Authenticate', 'Bearer')
  if (refusal.retryAfterSeconds !== undefined) c.header('Retry-After', String(refusal.retryAfterSeconds))
  const body = {
    type: `${relay.config.publicOrigin}/docs/errors#${refusal.code}`,
    title: says(refusal.code),
    status: refusal.status,
    code: refusal.code,
    ...(refusal.detail !== undefined && { detail: refusal.detail }),
    ...(refusal.fields.length > 0 && { errors: refusal.fields }),
  }
  return c.body(JSON.stringify(body), {
    status: refusal.status as 400,
    headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store' },
  })
}

/** What the SDKs throw when a service behind us is busy or away. */
const passing = /Throttl|ProvisionedThroughput|RequestLimit|ServiceUnavailable|Timeout|ECONN|InternalServer/i

function asRefusal(error: unknown): RouseError {
  if (error instanceof RouseError) return error
  if (error instanceof HTTPException) return new RouseError(codeOf(error.status), { cause: error })
  if (error instanceof Error && passing.test(`${error.name} ${'code' in error ? error.code : ''}`))
    return new RouseError('unavailable', { retryAfterSeconds: 2, cause: error })
  return new RouseError('internal', { cause: error })
}

const codeOf = (status: number): ErrorCode =>
  status === 404 ? 'not_found' : status === 413 ? 'too_large' : status < 500 ? 'bad_request' : 'internal'

const stackOf = (error: unknown): string | undefined => (error instanceof Error ? error.stack : undefined)
