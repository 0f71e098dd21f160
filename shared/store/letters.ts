// Keeps messages that their queues gave up, until they have been put back for good or nobody wanted them for two weeks.
import type { QueueName } from '../queue.ts'
import { letterKey, slotOf } from './keys.ts'
import { get, put, query, type Table, update } from './table.ts'

const keptSeconds = 14 * 24 * 60 * 60

/** Why a message came to nothing: no such text can be read, not by this version, or each try of it died or failed. */
export type Fault = 'unreadable' | 'future_version' | 'failed'

/** A message that its queue gave up. */
export type Letter = {
  id: string
  queue: QueueName
  /** Its text and fair-queue group, as they were. */
  body: string
  group: string
  fault: Fault
  /** What it is about, as far as that is known. */
  agent?: string
  taskId?: string
  target?: string
  /** When it was given up first and last (ms), and how often. */
  since: number
  at: number
  times: number
  /** When it was put back last (ms). */
  backAt?: number
}

type Found = Omit<Letter, 'since' | 'at' | 'times' | 'backAt'>

/**
 * Notes a message that was given up, or that it was so again. Only the one who took it out of its queue writes it.
 * @param tenant whose it is, if that is known
 * @param dueAfter how long to wait before it is put back by itself, in ms, by how often it was given up; undefined for never
 */
export async function saveLetter(
  table: Table,
  tenant: string | undefined,
  found: Found,
  now: number,
  dueAfter: (times: number) => number | undefined,
): Promise<Letter> {
  const key = letterKey(tenant, found.id)
  const old = await get<Letter>(table, key)
  const times = (old?.times ?? 0) + 1
  const letter: Letter = { ...found, since: old?.since ?? now, at: now, times }
  const after = dueAfter(times)
  const timer = after !== undefined && { slot: slotOf(key.pk, table.shards), due: now + after, holds: 0 }
  await put(table, { ...key, ...letter, ...timer, ttl: Math.ceil(now / 1000) + keptSeconds })
  return letter
}

export const getLetter = (
  table: Table,
  tenant: string | undefined,
  id: string,
): Promise<Letter | undefined> => get<Letter>(table, letterKey(tenant, id))

/** Notes that a letter was put back, unless it was given up anew since it was read. */
export async function letterBack(
  table: Table,
  tenant: string | undefined,
  letter: Letter,
  now: number,
): Promise<void> {
  await update(
    table,
    letterKey(tenant, letter.id),
    'SET #backAt = :now REMOVE #slot, #due, #holds',
    { now, times: letter.times },
    '#times = :times',
  )
}

/** True while a letter was not put back since it was given up last. */
const isWaiting = (letter: Letter): boolean => (letter.backAt ?? 0) < letter.at

export type Letters = { letters: Letter[]; next: string | undefined }

/** A tenant's letters that wait, a page of them. */
export async function listLetters(
  table: Table,
  tenant: string | undefined,
  limit: number,
  after: string | undefined,
): Promise<Letters> {
  const page = await query<Letter>(table, {
    condition: '#pk = :pk',
    values: { pk: letterKey(tenant, '').pk },
    limit,
    ...(after !== undefined && { after: letterKey(tenant, after) }),
  })
  return { letters: page.items.filter(isWaiting), next: page.next?.sk }
}
