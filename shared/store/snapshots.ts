// Keeps what the last look showed that somebody was to hear of, beside its watch: body gzipped, artifacts' hashes, and the story so far.
import { gunzipSync, gzipSync } from 'node:zlib'
import { limits } from '../limits.ts'
import type { Snapshot } from '../model.ts'
import { snapshotKey } from './keys.ts'
import { get, put, type Table } from './table.ts'

/** How long a snapshot is kept after its look. */
const keptSeconds = 90 * 24 * 60 * 60

/** Lists are kept as text: whole, never changed in part. Snapshots of before there were any have none. */
type Stored = Omit<Snapshot, 'body' | 'works' | 'story'> & { gz?: Uint8Array; works?: string; story?: string }

/** Puts a snapshot unless a later look put one. */
export async function putSnapshot(table: Table, watch: string, snapshot: Snapshot): Promise<void> {
  const { body, works, story, ...facts } = snapshot
  const gz = body === undefined ? undefined : gzipSync(body)
  await put(
    table,
    {
      ...snapshotKey(watch),
      ...facts,
      works: JSON.stringify(works),
      story: JSON.stringify(story),
      // An item holds 400 KB; what the body leaves is for the story and the artifacts' list, which stay when it is too large.
      ...(gz !== undefined && gz.length <= limits.snapshotBytes && { gz }),
      ttl: Math.ceil(snapshot.start / 1000) + keptSeconds,
    },
    'attribute_not_exists(#pk) OR #start < :start',
    { start: snapshot.start },
  )
}

export async function getSnapshot(table: Table, watch: string): Promise<Snapshot | undefined> {
  const stored = await get<Stored>(table, snapshotKey(watch))
  if (stored === undefined) return undefined
  const { gz, tooLarge, bytes, start, rev, state, withheld = false } = stored
  return {
    ...{ bytes, start, rev, state, withheld },
    ...listsOf(stored),
    ...(tooLarge === true && { tooLarge }),
    ...(gz !== undefined && { body: gunzipSync(gz).toString() }),
  }
}

/** What is kept beside the body, without inflating that. */
export async function getStory(
  table: Table,
  watch: string,
): Promise<Pick<Snapshot, 'works' | 'story'> | undefined> {
  const stored = await get<Stored>(table, snapshotKey(watch))
  return stored && listsOf(stored)
}

const listsOf = ({ works, story }: Pick<Stored, 'works' | 'story'>): Pick<Snapshot, 'works' | 'story'> => ({
  works: works === undefined ? { listed: [], count: 0, bytes: 0 } : JSON.parse(works),
  story: story === undefined ? { steps: [] } : JSON.parse(story),
})
