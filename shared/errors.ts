// The one table of refusals: code, HTTP status and public words. What is private stays in `cause`.

const table = {
  bad_request: { status: 400, says: 'The request cannot be read.' },
  invalid: { status: 422, says: 'Some fields are wrong.' },
  unauthorized: { status: 401, says: 'The credentials are missing or wrong.' },
  forbidden: { status: 403, says: 'This key does not have the scope for that.' },
  not_found: { status: 404, says: 'There is no such thing here.' },
  loop_detected: { status: 400, says: 'This is a wake of a relay; passing it on could go round for ever.' },
  method_not_allowed: { status: 405, says: 'This address does not take that method.' },
  conflict: { status: 409, says: 'It exists already and differs, or it changed meanwhile.' },
  ambiguous: { status: 409, says: 'Several principals see this task; say which by ?principal=.' },
  tenant_deleted: {
    status: 409,
    says: 'A tenant of this name was deleted; some of what belonged to it is kept for 400 days, so nobody may have the name yet.',
  },
  too_large: { status: 413, says: 'The body is larger than what is taken here.' },
  unsupported_media_type: { status: 415, says: 'The body is not JSON, or in an encoding that is not taken.' },
  unreadable_push: { status: 422, says: 'The body is JSON but no A2A push notification.' },
  address_not_allowed: { status: 422, says: 'That address may not be called from here.' },
  agent_unreachable: { status: 422, says: 'The agent could not be reached, so nothing was stored.' },
  agent_card_unreadable: { status: 422, says: 'The agent card cannot be read or names no usable interface.' },
  origin_changed: { status: 409, says: 'The card names an origin that was not pinned at registration.' },
  limit_reached: { status: 409, says: 'The tenant has reached a stated limit.' },
  rate_limited: { status: 429, says: 'Too many requests; wait before the next one.' },
  internal: { status: 500, says: 'Something broke on our side; it was logged.' },
  unavailable: { status: 503, says: 'A service behind this one is not answering; try again soon.' },
} as const

export type ErrorCode = keyof typeof table

export const errorCodes = Object.keys(table) as ErrorCode[]

/** One wrong field of a request: an RFC 6901 pointer into the body (or `?name` for a query parameter) and why. */
export type FieldError = { pointer: string; detail: string }

/** A refused request. Everything else that is thrown is a bug. */
export class RouseError extends Error {
  override readonly name = 'RouseError'
  readonly code: ErrorCode
  readonly detail: string | undefined
  readonly fields: FieldError[]
  readonly retryAfterSeconds: number | undefined

  constructor(
    code: ErrorCode,
    more: { detail?: string; fields?: FieldError[]; retryAfterSeconds?: number; cause?: unknown } = {},
  ) {
    super(more.detail ?? table[code].says, { cause: more.cause })
    this.code = code
    this.detail = more.detail
    this.fields = more.fields ?? []
    this.retryAfterSeconds = more.retryAfterSeconds
  }

  get status(): number {
    return table[this.code].status
  }
}

/** Refuses one field of a request by name. */
export const invalidField = (pointer: string, detail: string): RouseError =>
  new RouseError('invalid', { detail: `${pointer}: ${detail}`, fields: [{ pointer, detail }] })

/** Public words of a code, for the docs page and problem details. */
export const says = (code: ErrorCode): string => table[code].says

/** HTTP status of a code. */
export const statusOf = (code: ErrorCode): number => table[code].status
