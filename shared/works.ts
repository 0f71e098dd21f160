// Sizes and hashes of a task's artifacts, over one stated form of them; tells work that was never finished. Pure.
import { isGiven, isRecord } from './a2a/read.ts'
import type { Task, TaskState } from './a2a/task.ts'
import { canonical, idOf, sha256Hex } from './hash.ts'
import type { Work, Works } from './model.ts'

/** Artifacts of one task that are listed one by one; of more, only their number and size. */
const mostListed = 50
/** Artifacts that are hashed one by one; the rest as one piece, so that millions of tiny ones cost no minutes. */
const mostHashed = 10_000
const longestName = 100

/**
 * Measures the artifacts of a task, each over its canonical JSON (RFC 8785) in UTF-8: so what a client gets is compared
 * with what was kept, whatever the order of members and the blanks. Artifacts that are no list count as one.
 */
export function worksOf({ raw }: Pick<Task, 'raw'>): Works & { digest: string } {
  const all: unknown[] = Array.isArray(raw.artifacts)
    ? raw.artifacts
    : isGiven(raw.artifacts)
      ? [raw.artifacts]
      : []
  const each = all.slice(0, mostHashed).map(workOf)
  const rest = canonical(all.slice(mostHashed))
  // Brackets and commas of that piece are nobody's.
  const restBytes = all.length > mostHashed ? Buffer.byteLength(rest) - (all.length - mostHashed + 1) : 0
  return {
    listed: each.slice(0, mostListed),
    count: all.length,
    bytes: each.reduce((sum, { bytes }) => sum + bytes, restBytes),
    digest: idOf(each.map(({ sha256 }) => sha256).join(''), sha256Hex(rest)).slice(0, 16),
  }
}

function workOf(artifact: unknown): Work {
  const { artifactId, artifact_id, name } = isRecord(artifact) ? artifact : {}
  const text = canonical(artifact)
  return {
    ...short('id', artifactId ?? artifact_id),
    ...short('name', name),
    bytes: Buffer.byteLength(text),
    sha256: sha256Hex(text),
  }
}

const short = (name: 'id' | 'name', value: unknown): { id?: string; name?: string } =>
  typeof value === 'string' && value !== '' ? { [name]: value.slice(0, longestName).toWellFormed() } : {}

/** The artifacts of one list that the other does not have as they are. */
export const changedWorks = (now: readonly Work[], before: readonly Work[]): Work[] =>
  now.filter(one => !before.some(({ id, sha256 }) => id === one.id && sha256 === one.sha256))

/** True when a task in this state has ended without finishing: whatever it made so far is partial work. */
export const endsUnfinished = (state: TaskState | undefined): boolean =>
  state === 'failed' || state === 'rejected' || state === 'canceled'
