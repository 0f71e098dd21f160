// What is shown of a task as last seen: its state, its body, its artifacts by size and hash, and what happened to it.
import type { Context } from 'hono'
import { referencedTasks } from '../../shared/a2a/references.ts'
import { isTerminal } from '../../shared/a2a/task.ts'
import { invalidField } from '../../shared/errors.ts'
import type { Snapshot, Transition, Watch } from '../../shared/model.ts'
import type { Relay } from '../../shared/relay.ts'
import { getSnapshot } from '../../shared/store/snapshots.ts'
import { readParent } from '../../shared/store/trees.ts'
import { merge } from '../../shared/timeline.ts'
import { endsUnfinished } from '../../shared/works.ts'
import { type Env, tenantOf } from './auth.ts'

/** A Lambda answers 6 MB at most, in which JSON stands as a string: its quotes may double it (Lambda quotas). */
const mostShown = 2 * 1024 * 1024

/**
 * Whether the content of unfinished work is asked for although a subscription withholds it.
 * @throws RouseError `forbidden` for a caller who is no admin of the tenant
 */
export function asksToExpose(c: Context<Env>): boolean {
  const partial = c.req.query('partial')
  if (partial === undefined) return false
  if (partial !== 'expose') throw invalidField('?partial', 'Expected expose')
  tenantOf(c.get('caller'), 'admin')
  return true
}

const seconds = (from: number, to: number): number => Math.max(0, Math.round((to - from) / 1000))

/** A task as last seen. It is stale when the last look failed, or when its body is of an earlier revision. */
export async function shownTask(relay: Relay, watch: Watch, exposed: boolean) {
  const snapshot = await getSnapshot(relay.table, watch.key)
  const incomplete =
    (snapshot?.tooLarge === true || (snapshot?.works.count ?? 0) > 0) &&
    (endsUnfinished(watch.state) || endsUnfinished(snapshot?.state))
  const withheld = incomplete && !exposed && watch.withheld === true
  const { agent, taskId, principal, contextId, state, rev } = watch
  const body = bodyOf(snapshot, withheld)
  return {
    ...{ agent, taskId, principal, contextId },
    parentTask: readParent(watch.parent ?? ''),
    referenceTaskIds: referencedTasks(body),
    state: state ?? null,
    terminal: isTerminal(state),
    incomplete,
    rev,
    changedAt: rev > 0 ? watch.changed : null,
    lookedAt: watch.looked > 0 ? watch.looked : null,
    ageSeconds: watch.looked > 0 ? seconds(watch.looked, relay.now()) : null,
    stale:
      watch.looked === 0 || watch.trouble !== undefined || (snapshot !== undefined && snapshot.rev < rev),
    trouble: watch.trouble && { code: watch.trouble, since: watch.troubleSince },
    task: body ?? null,
    taskRev: snapshot?.rev ?? null,
    tooLarge: snapshot !== undefined && body === undefined,
    withheld,
    artifacts: snapshot?.tooLarge === true ? null : (snapshot?.works ?? null),
    timeline: timelineOf(watch, snapshot),
  }
}

/** The agent's task. Withheld, it lacks its artifacts and its history, which may repeat them. */
function bodyOf(snapshot: Snapshot | undefined, withheld: boolean): unknown {
  if (snapshot?.body === undefined || Buffer.byteLength(snapshot.body) > mostShown) return undefined
  const body = JSON.parse(snapshot.body)
  if (!withheld) return body
  const { artifacts: _, history: __, ...rest } = body
  return rest
}

function timelineOf(watch: Watch, snapshot: Snapshot | undefined) {
  const { steps, earlier } = merge(snapshot?.story ?? { steps: [] }, watch.tail ?? [])
  const shown = ({ delay, works, ...step }: Transition) => ({ ...step, delayMs: delay, artifacts: works })
  return { steps: steps.map(shown), earlier }
}
