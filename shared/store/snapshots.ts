// Keeps the body of the last look beside its watch, gzipped; too large a body leaves only its size.
import { gunzipSync, gzipSync } from 'node:zlib'
import type { Snapshot } from '../model.ts'
import { snapshotKey } from './keys.ts'
import { get, put, type Table } from './table.ts'

/** A DynamoDB item holds 400 KB; the rest of it is for the timeline. */
const gzipLimit = 256 * 1024
const keptSeconds = 90 * 24 * 60 * 60

type Stored = Omit<Snapshot, 'body'> & { gz?: Uint8Array }

/** Puts a snapshot unless a later look put one. */
export async function putSnapshot(table: Table, watch: string, snapshot: Snapshot): Promise<void> {
  const { body, ...facts } = snapshot
  const gz = body === undefined ? undefined : gzipSync(body)
  await put(
    table,
    {
      ...snapshotKey(watch),
      ...facts,
      ...(gz !== undefined && gz.length <= gzipLimit && { gz }),
      ttl: Math.ceil(snapshot.start / 1000) + keptSeconds,
    },
    'attribute_not_exists(#pk) OR #start < :start',
    { start: snapshot.start },
  )
}

export async function getSnapshot(table: Table, watch: string): Promise<Snapshot | undefined> {
  const stored = await get<Stored>(table, snapshotKey(watch))
  if (stored === undefined) return undefined
  const { gz, bytes, start, rev } = stored
  return { bytes, start, rev, ...(gz !== undefined && { body: gunzipSync(gz).toString() }) }
}
