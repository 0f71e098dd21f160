// Keeps what the last look showed that somebody was to hear of, beside its watch: body, artifacts' hashes and the story so far, gzipped as one.
import { gunzipSync, gzipSync } from 'node:zlib'
import { limits } from '../limits.ts'
import type { Snapshot } from '../model.ts'
import { snapshotKey } from './keys.ts'
import { get, put, type Table } from './table.ts'

/** How long a snapshot is kept after its look. */
const keptSeconds = 90 * 24 * 60 * 60

type Lists = Pick<Snapshot, 'works' | 'story'>

/** Lists and body are packed together: apart they would take a write unit more. Old snapshots have no `packed`. */
type Stored = Omit<Snapshot, 'body' | keyof Lists> & { packed?: Uint8Array }

/** Puts a snapshot unless a later look put one. */
export async function putSnapshot(table: Table, watch: string, snapshot: Snapshot): Promise<void> {
  const { body, works, story, ...facts } = snapshot
  await put(
    table,
    {
      ...snapshotKey(watch),
      ...facts,
      packed: pack({ works, story }, body),
      ttl: Math.ceil(snapshot.start / 1000) + keptSeconds,
    },
    'attribute_not_exists(#pk) OR #start < :start',
    { start: snapshot.start },
  )
}

export async function getSnapshot(table: Table, watch: string): Promise<Snapshot | undefined> {
  const stored = await get<Stored>(table, snapshotKey(watch))
  if (stored === undefined) return undefined
  const { packed, tooLarge, bytes, start, rev, state } = stored
  return {
    ...{ bytes, start, rev, state },
    ...unpack(packed),
    ...(tooLarge === true && { tooLarge }),
  }
}

/**
 * The lists in the first line, the body in the second. A DynamoDB item holds 400 KB: of a body that is too large the
 * lists alone are kept.
 */
function pack(lists: Lists, body: string | undefined): Uint8Array {
  const first = JSON.stringify(lists)
  const whole = gzipSync(body === undefined ? first : `${first}\n${body}`)
  return body === undefined || whole.length <= limits.snapshotBytes ? whole : gzipSync(first)
}

function unpack(packed: Uint8Array | undefined): Lists & Pick<Snapshot, 'body'> {
  if (packed === undefined) return { works: { listed: [], count: 0, bytes: 0 }, story: { steps: [] } }
  const text = gunzipSync(packed).toString()
  const end = text.indexOf('\n')
  const lists: Lists = JSON.parse(end < 0 ? text : text.slice(0, end))
  return { ...lists, ...(end >= 0 && { body: text.slice(end + 1) }) }
}
