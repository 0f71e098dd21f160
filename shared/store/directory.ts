// Lists things by pointer: a pointer is written before the thing it names, and one that names nothing is skipped.
import { directoryKey, type Listing, shardOf, shardsOf } from './keys.ts'
import { get, put, query, remove, type Table } from './table.ts'

type Pointer = { sk: string; ref: string }

const place = (tenant: string, listing: Listing, id: string) => ({
  pk: directoryKey(tenant, listing, shardOf(id, shardsOf(listing))),
  sk: id,
})

/**
 * Writes a pointer unless there is one.
 * @param ttl seconds since 1970 at which it may go, for things that end by themselves
 * @returns the ref that now stands: ours, or the one that was there first (two makers of one id settle here)
 */
export async function point(
  table: Table,
  tenant: string,
  listing: Listing,
  id: string,
  ref: string,
  ttl?: number,
): Promise<string> {
  const written = await put<Pointer>(
    table,
    { ...place(tenant, listing, id), ref, ttl },
    'attribute_not_exists(#pk)',
  )
  return written.ok ? ref : (written.old?.ref ?? ref)
}

/** Removes a pointer; with a `ref` only one that still names it, for somebody may have made another meanwhile. */
export const unpoint = (
  table: Table,
  tenant: string,
  listing: Listing,
  id: string,
  ref?: string,
): Promise<boolean> =>
  remove(table, place(tenant, listing, id), ref === undefined ? undefined : '#ref = :ref', { ref })

/** The ref behind an id, or undefined. */
export async function follow(
  table: Table,
  tenant: string,
  listing: Listing,
  id: string,
): Promise<string | undefined> {
  const pointer = await get<Pointer>(table, place(tenant, listing, id))
  return pointer?.ref
}

export type Listed = { pointers: { id: string; ref: string }[]; next: string | undefined }

/**
 * One page of a listing, in a stable order: shard by shard, by id within a shard.
 * @param after cursor from the last page's `next`
 * @param lazy read in half the units, perhaps as it stood a second ago
 */
export async function list(
  table: Table,
  tenant: string,
  listing: Listing,
  limit: number,
  after?: string,
  lazy = true,
): Promise<Listed> {
  const pointers: Listed['pointers'] = []
  let { shard, id } = readCursor(after)
  while (shard < shardsOf(listing)) {
    const pk = directoryKey(tenant, listing, shard)
    const page = await query<Pointer>(table, {
      condition: '#pk = :pk',
      values: { pk },
      limit: limit - pointers.length,
      lazy,
      ...(id !== undefined && { after: { pk, sk: id } }),
    })
    pointers.push(...page.items.map(({ sk, ref }) => ({ id: sk, ref })))
    if (page.next !== undefined && pointers.length >= limit)
      return { pointers, next: writeCursor(shard, page.next.sk) }
    id = page.next?.sk
    if (id !== undefined) continue
    shard += 1
    if (pointers.length >= limit) break
  }
  return { pointers, next: shard < shardsOf(listing) ? writeCursor(shard) : undefined }
}

const writeCursor = (shard: number, id = ''): string => Buffer.from(`${shard}:${id}`).toString('base64url')

function readCursor(cursor: string | undefined): { shard: number; id: string | undefined } {
  const text = Buffer.from(cursor ?? '', 'base64url').toString()
  const at = text.indexOf(':')
  const shard = Number(text.slice(0, Math.max(at, 0)))
  return { shard: Number.isInteger(shard) && shard >= 0 ? shard : 0, id: text.slice(at + 1) || undefined }
}
