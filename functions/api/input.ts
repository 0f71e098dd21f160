// Reads what a request brings: JSON bodies against a schema, ids, numbers and parameters. Every refusal names the field.
import type { Context } from 'hono'
import * as z from 'zod'
import { parseBody } from '../../shared/a2a/read.ts'
import { type FieldError, invalidField, RouseError } from '../../shared/errors.ts'
import { type Counted, limits, tenantLimits } from '../../shared/limits.ts'

export const idPattern = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,${limits.idCharacters - 1}}$`)
const idSays = `Expected 1 to ${limits.idCharacters} of letters, digits and . _ ~ -, beginning with a letter or digit`

/** Ids that callers choose: 1 to 64 of letters, digits and `._~-`, beginning with a letter or digit. */
export const Id = z.string().regex(idPattern, idSays)

/** Text that can be stored and shown as it is: no control characters, no half of a surrogate pair. */
export const Text = z.string().regex(/^[^\p{Cc}\p{Cs}]*$/u, 'Expected no control characters')

/** Ids that agents choose, as such text of 1 to 256 bytes, which is what pushes and answers may name. */
export const TaskId = Text.min(1).refine(
  id => Buffer.byteLength(id) <= limits.taskIdBytes,
  `Expected at most ${limits.taskIdBytes} bytes`,
)

const day = 24 * 60 * 60

/** For how long what was rotated is good for beside the new, in seconds. */
export const Overlap = z
  .number()
  .int()
  .min(0)
  .max(30 * day)
  .default(day)

/** What a route is sent that takes no field. */
export const Nothing = z.strictObject({})

/**
 * Reads a JSON body by a schema; none at all is `{}` where nothing is required. Unknown fields are refused by name, so make schemas with `z.strictObject`; so are
 * parameters in the query, of which a route with a body has none but those named.
 * @throws RouseError `unsupported_media_type`, `too_large`, `bad_request` or `invalid`
 */
export async function readBody<T>(c: Context, schema: z.ZodType<T>, ...query: string[]): Promise<T> {
  onlyQuery(c, ...query)
  const type = c.req.header('content-type')
  if (type !== undefined && !/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type))
    throw new RouseError('unsupported_media_type')
  if (!/^(?:identity)?$/i.test(c.req.header('content-encoding')?.trim() ?? ''))
    throw new RouseError('unsupported_media_type', { detail: 'Compressed bodies are not taken.' })
  const bytes = new Uint8Array(await c.req.arrayBuffer())
  if (bytes.length > limits.requestBytes)
    throw new RouseError('too_large', { detail: `The body may have ${limits.requestBytes} bytes.` })
  if (bytes.length === 0) {
    const nothing = schema.safeParse({})
    if (nothing.success) return nothing.data
  }
  const parsed = parseBody(bytes)
  if (!parsed.ok) throw new RouseError('bad_request', { detail: parsed.why })
  return parse(schema, parsed.value)
}

/** Checks a value by a schema; `at` stands in front of the pointers. */
export function parse<T>(schema: z.ZodType<T>, value: unknown, at = ''): T {
  const parsed = schema.safeParse(value, {
    error: ({ input }) => (input === undefined ? 'Required' : undefined),
  })
  if (parsed.success) return parsed.data
  const issues = parsed.error.issues.slice(0, mostFields)
  throw refusedFields(issues.flatMap(issue => fieldsOf(issue, at)))
}

function fieldsOf(issue: z.core.$ZodIssue, at: string): FieldError[] {
  const pointer = at + issue.path.map(part => `/${escapePointer(String(part))}`).join('')
  if (issue.code === 'unrecognized_keys')
    return issue.keys
      .slice(0, mostFields)
      .map(key => ({ pointer: `${pointer}/${escapePointer(key)}`, detail: 'Unknown field' }))
  if (issue.code === 'invalid_union') {
    // What is wrong is told of the one form whose kind of value was given.
    const meant = issue.errors.find(issues => !issues.some(isOtherKind))
    if (meant !== undefined) return meant.flatMap(one => fieldsOf(one, pointer))
    return [{ pointer, detail: choicesOf(issue) }]
  }
  return [{ pointer, detail: plainWords(issue) }]
}

/** What a field should have been. The schema's own words for bounds are formulas. */
function plainWords(issue: z.core.$ZodIssue): string {
  if (issue.code === 'too_small')
    return issue.inclusive === true ? `Expected at least ${measure(issue, issue.minimum)}` : issue.message
  if (issue.code === 'too_big')
    return issue.inclusive === true ? `Expected at most ${measure(issue, issue.maximum)}` : issue.message
  if (issue.code === 'invalid_type' && issue.expected === 'int') return 'Expected a whole number'
  return issue.message.replace(/^Invalid (?:input|option): e/, 'E')
}

function measure({ origin }: { origin: string }, bound: number | bigint): string {
  const unit = origin === 'string' ? ' character' : origin === 'array' ? ' item' : ''
  return `${bound}${unit}${unit === '' || bound === 1 ? '' : 's'}`
}

/** The kinds of value that a field may have, or the names of its forms. */
function choicesOf(issue: z.core.$ZodIssueInvalidUnion): string {
  const named = 'options' in issue ? (issue.options ?? []) : []
  if (named.length > 0) return `Expected one of ${named.join(', ')}`
  const kinds = issue.errors.flat().flatMap(one => ('expected' in one ? [one.expected] : []))
  return `Expected ${[...new Set(kinds)].join(' or ')}`
}

/** True when the value as a whole is of another type than was expected. */
const isOtherKind = ({ code, path }: z.core.$ZodIssue): boolean =>
  code === 'invalid_type' && path.length === 0

/** RFC 6901 section 3; cut, because a field's name may be as long as the body. */
const escapePointer = (part: string): string => part.slice(0, 100).replaceAll('~', '~0').replaceAll('/', '~1')

/** Refuses what would be one too many. */
export const overLimit = (counted: Counted): RouseError =>
  new RouseError('limit_reached', {
    detail: `A tenant may have ${tenantLimits[counted].toLocaleString('en')} ${counted}${counted === 'subscriptions' ? ' made in a day' : ''}.`,
  })

/** An id from the path. One that no id can be is simply not found. */
export function pathId(c: Context, name: string): string {
  const id = c.req.param(name) ?? ''
  if (!idPattern.test(id)) throw new RouseError('not_found')
  return id
}

/** An id from the path of something that is about to be made. */
export function newPathId(c: Context, name: string): string {
  const id = c.req.param(name) ?? ''
  if (!idPattern.test(id)) throw invalidField(`/${name}`, idSays)
  return id
}

/** A whole number from the query. */
export function readWhole(
  c: Context,
  name: string,
  range: { least: number; most: number; fallback: number },
): number {
  const text = c.req.query(name)
  if (text === undefined) return range.fallback
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= range.least && value <= range.most))
    throw invalidField(`?${name}`, `Expected a whole number from ${range.least} to ${range.most}`)
  return value
}

/** Refuses query parameters that a route does not know, or that come twice, by name. */
export function onlyQuery(c: Context, ...known: string[]): void {
  const fields = Object.entries(c.req.queries())
    .filter(([name, values]) => !known.includes(name) || values.length > 1)
    .map(([name]) => ({
      pointer: `?${name.slice(0, 100)}`,
      detail: known.includes(name) ? 'Given more than once' : 'Unknown parameter',
    }))
  if (fields.length > 0) throw refusedFields(fields)
}

/** Fields that one answer names at most: whoever sends 100 000 wrong ones need not hear of all. */
const mostFields = 20

function refusedFields(all: FieldError[]): RouseError {
  const fields = all.slice(0, mostFields)
  return new RouseError('invalid', {
    detail: fields.map(({ pointer, detail }) => `${pointer || 'body'}: ${detail}`).join('; '),
    fields,
  })
}
