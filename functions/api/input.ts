// Reads what a request brings: JSON bodies against a schema, ids, cursors and limits. Every refusal names the field.
import type { Context } from 'hono'
import * as z from 'zod'
import { type FieldError, invalidField, RouseError } from '../../shared/errors.ts'

const bodyLimit = 256 * 1024
export const idPattern = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,63}$/

/** Ids that callers choose: 1 to 64 of letters, digits and `._~-`, beginning with a letter or digit. */
export const Id = z
  .string()
  .regex(idPattern, 'Expected 1 to 64 of letters, digits and . _ ~ -, beginning with a letter or digit')

/** A1 ids that agents choose: any text without control characters, 1 to 256 characters. */
export const TaskId = z
  .string()
  .min(1)
  .max(256)
  .regex(/^[^\p{Cc}\p{Cs}]+$/u, 'Expected no control characters')

/**
 * Reads a JSON body by a schema. Unknown fields are refused by name, so make schemas with `z.strictObject`.
 * @throws RouseError `unsupported_media_type`, `too_large`, `bad_request` or `invalid`
 */
export async function readBody<T>(c: Context, schema: z.ZodType<T>): Promise<T> {
  const type = c.req.header('content-type')
  if (type !== undefined && !/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type))
    throw new RouseError('unsupported_media_type')
  const bytes = new Uint8Array(await c.req.arrayBuffer())
  if (bytes.length > bodyLimit)
    throw new RouseError('too_large', { detail: `The body may have ${bodyLimit} bytes.` })
  return parse(schema, parseJson(bytes))
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new RouseError('bad_request', { detail: 'The body is not JSON in UTF-8.', cause })
  }
}

/** Checks a value by a schema; `at` stands in front of the pointers. */
export function parse<T>(schema: z.ZodType<T>, value: unknown, at = ''): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const fields = parsed.error.issues.flatMap(issue => fieldsOf(issue, at))
  throw new RouseError('invalid', {
    detail: fields.map(({ pointer, detail }) => `${pointer || 'body'}: ${detail}`).join('; '),
    fields,
  })
}

function fieldsOf(issue: z.core.$ZodIssue, at: string): FieldError[] {
  const pointer = at + issue.path.map(part => `/${escapePointer(String(part))}`).join('')
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map(key => ({ pointer: `${pointer}/${escapePointer(key)}`, detail: 'Unknown field' }))
  return [{ pointer, detail: issue.message }]
}

/** RFC 6901 section 3; cut, because a field's name may be as long as the body. */
const escapePointer = (part: string): string => part.slice(0, 100).replaceAll('~', '~0').replaceAll('/', '~1')

/** An id from the path. One that no id can be is simply not found. */
export function pathId(c: Context, name: string): string {
  const id = c.req.param(name) ?? ''
  if (!idPattern.test(id)) throw new RouseError('not_found')
  return id
}

/** An id from the path of something that is about to be made. */
export function newPathId(c: Context, name: string): string {
  const id = c.req.param(name) ?? ''
  if (!idPattern.test(id)) throw invalidField(`/${name}`, 'Expected 1 to 64 of letters, digits and . _ ~ -')
  return id
}

/** `?limit=` and `?after=` of a list. */
export function readPage(c: Context, most = 100): { limit: number; after: string | undefined } {
  const after = c.req.query('after')
  if (after !== undefined && !/^[\w-]{0,500}$/.test(after))
    throw invalidField('?after', 'Expected a cursor from a page before')
  return {
    limit: readWhole(c, 'limit', { least: 1, most, fallback: Math.min(50, most) }),
    after: after || undefined,
  }
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

/** Refuses query parameters that a route does not know, by name. */
export function onlyQuery(c: Context, ...known: string[]): void {
  const fields = Object.keys(c.req.query())
    .filter(name => !known.includes(name))
    .map(name => ({ pointer: `?${name.slice(0, 100)}`, detail: 'Unknown parameter' }))
  if (fields.length > 0)
    throw new RouseError('invalid', { detail: `Unknown: ${fields.map(f => f.pointer).join(', ')}`, fields })
}
