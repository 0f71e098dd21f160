// Keeps where tasks stand in a chain of delegation: pointers to watches by principal, by parent and by context.
import type { ParentTask, Subscription } from '../model.ts'
import { point } from './directory.ts'
import type { Listing } from './keys.ts'
import type { Table } from './table.ts'

/** A pointer outlives every subscription that may need it. */
const pointedSeconds = 800 * 24 * 60 * 60

/** Where in which listing a watch is to be found. */
type Place = { tenant: string; listing: Listing; id: string }

/** Points at a watch; to be written before what it is pointed at for. Pointing twice changes nothing. */
export async function pointAt(
  table: Table,
  { tenant, listing, id }: Place,
  watch: string,
  now: number,
): Promise<void> {
  await point(table, tenant, listing, id, watch, Math.ceil(now / 1000) + pointedSeconds)
}

/** The tasks that were delegated from one. */
export const below = ({ agent, taskId }: ParentTask): Listing => ({
  kind: 'tasks',
  by: 'parent',
  of: agent,
  task: taskId,
})

/** The tasks of one conversation, whichever agent they run at (A2A 1.0 section 3.4.1). */
export const inContext = (contextId: string): Listing => ({ kind: 'tasks', by: 'context', of: contextId })

export const writeParent = ({ agent, taskId }: ParentTask): string => `${agent}/${taskId}`

/** The task that a subscription's own was delegated from, as `agent/task`. */
export const parentOf = ({ parentTask }: Pick<Subscription, 'parentTask'>): string | undefined =>
  parentTask && writeParent(parentTask)

/** The task that `agent/task` names; an agent's id holds no slash. */
export function readParent(text: string): ParentTask | undefined {
  const at = text.indexOf('/')
  return at > 0 && at < text.length - 1 ? { agent: text.slice(0, at), taskId: text.slice(at + 1) } : undefined
}
