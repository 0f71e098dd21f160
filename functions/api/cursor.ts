// Reads `?limit=` and `?after=` of lists, and marks the cursors that lists give out: the store trusts what stands in them.
import type { Context } from 'hono'
import { invalidField } from '../../shared/errors.ts'
import { canonical, deriveKey, hmac, sameSecret } from '../../shared/hash.ts'
import { limits } from '../../shared/limits.ts'
import type { Relay } from '../../shared/relay.ts'
import { readWhole } from './input.ts'

/** The page that is asked for. */
export type Page = {
  limit: number
  /** The store's own cursor. */
  after: string | undefined
  /** Turns the store's cursor of the next page into the one to give out. */
  cursor: (next: string | undefined) => string | undefined
}

const usual = 50
const markLength = 16

/**
 * Reads which page of a list is asked for.
 * @param body filters of a list that come in the body
 * @throws RouseError `invalid` for a cursor that this list, with these filters, did not give out
 */
export function readPage(relay: Relay, c: Context, tenant: string, body: unknown = null): Page {
  const { limit: _, after = '', ...filters } = c.req.query()
  const list = canonical([tenant, c.req.path, filters, body])
  const marked = (root: Uint8Array, next: string): string =>
    Buffer.from(hmac(deriveKey(root, 'cursor'), `${list} ${next}`))
      .toString('base64url')
      .slice(0, markLength) + next
  const inner = after.slice(markLength)
  // A cursor goes on while keys rotate, for each key that is held opens it.
  const roots = [...relay.config.rootKeys.values()]
  const [root = new Uint8Array(0)] = roots
  if (after !== '' && !roots.some(one => sameSecret(marked(one, inner), after)))
    throw invalidField('?after', 'Expected the cursor of a page before')
  return {
    limit: readWhole(c, 'limit', { least: 1, most: limits.itemsOfPage, fallback: usual }),
    after: inner || undefined,
    cursor: next => (next === undefined ? undefined : marked(root, next)),
  }
}
