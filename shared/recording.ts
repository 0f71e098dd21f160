// What a look adds to the record of its task: the transition, and the snapshot of what somebody is to hear of. Asks no agent.
import { isNews, type Task } from './a2a/task.ts'
import { idsOf } from './asking.ts'
import type { Transition, Watch } from './model.ts'
import { type Audience, concerns } from './publish.ts'
import type { Relay } from './relay.ts'
import { getSnapshot, putSnapshot } from './store/snapshots.ts'
import type { Trail } from './store/tails.ts'
import { delayOf, merge, placeFor } from './timeline.ts'
import { changedWorks, worksOf } from './works.ts'

/** Artifacts of one transition that are named; the snapshot lists more. */
const mostNamed = 5

/** A revision that a look found: the agent's answer with its size, when and why it was seen. */
export type Found = {
  task: Task
  works: ChangedWorks
  bytes: number
  rev: number
  now: number
  pushed: boolean
}

/** A task's artifacts, and whether they are others than were known. */
export type ChangedWorks = ReturnType<typeof worksOf> & { changed: boolean }

/** What the watch keeps of it. */
export type Recorded = { works: string; snap?: number; trail: Trail }

/**
 * Records a new revision. One that somebody is to hear of, or that lasts, becomes the snapshot and takes along the
 * transitions that waited; any other waits on the watch, in the write that saves the look.
 */
export async function record(
  relay: Relay,
  watch: Watch,
  audience: Audience,
  found: Found,
): Promise<Recorded> {
  const { task, bytes, rev, now } = found
  const { digest, changed, ...works } = found.works
  const { count } = works
  const delay = delayOf(task.timestamp, now)
  const step: Transition = {
    at: now,
    source: found.pushed ? 'push' : 'look',
    ...(watch.state !== undefined && { from: watch.state }),
    to: task.state,
    rev,
    ...(delay !== undefined && { delay }),
    ...(changed && { works: { count, bytes: works.bytes } }),
  }
  const waiting = watch.tail ?? []
  if (!concerns(audience, task.state) && !isNews(task.state))
    return { works: digest, trail: { place: placeFor(waiting, step) } }
  // What a look that died put there is in what waits, too.
  const before = watch.snap === undefined ? undefined : await getSnapshot(relay.table, watch.key)
  const named = changedWorks(works.listed, before?.works.listed ?? []).slice(0, mostNamed)
  if (step.works !== undefined && named.length > 0) step.works.changed = named
  await putSnapshot(relay.table, watch.key, {
    ...(task.tooLarge === true ? { tooLarge: true } : { body: JSON.stringify(task.raw) }),
    bytes,
    start: watch.lookAt,
    rev,
    state: task.state,
    works,
    story: merge(before?.story ?? { steps: [] }, waiting, step),
  })
  relay.log({ step: 'snapshot.saved', ...idsOf(watch), rev, bytes })
  return { works: digest, snap: rev, trail: { gone: waiting.length } }
}

/** Measures the artifacts. Of a task that was too large none are known, and none changed. */
export function compareWorks(watch: Watch, task: Task): ChangedWorks {
  const works = worksOf(task)
  if (task.tooLarge === true) return { ...works, digest: watch.works ?? works.digest, changed: false }
  return {
    ...works,
    changed: works.digest !== watch.works && (works.count > 0 || watch.works !== undefined),
  }
}
