// What the API reads and asks of watched tasks: those of one task, and that one be canceled. Looks and their leases are watches.ts's.
import { isTerminal, type TaskState, taskStates } from '../a2a/task.ts'
import type { Cancel, Watch } from '../model.ts'
import { list } from './directory.ts'
import { watchKey, watchOf } from './keys.ts'
import { type Table, update } from './table.ts'
import { getWatch, usualPrincipal } from './watches.ts'

/** When a cancellation is looked for whose message was lost. */
const backstopMs = 60 * 1000

/** Values of a condition, by their own names. */
const terminal = Object.fromEntries(taskStates.filter(isTerminal).map(state => [state, state]))

/**
 * Notes that a client wants a task canceled, by whichever look comes next. Who asked first is the one who is noted.
 * @returns what is noted now; undefined if the task has ended or nobody is on it
 */
export async function askCancel(table: Table, watch: string, cancel: Cancel): Promise<Cancel | undefined> {
  const asked = await update<{ subs?: Set<string>; state?: TaskState; cancel?: Cancel }>(
    table,
    watchKey(watch),
    'SET #cancel = :cancel, #due = :soon',
    { cancel, soon: cancel.at + backstopMs, ...terminal },
    `attribute_not_exists(#cancel) AND attribute_exists(#subs) AND attribute_exists(#slot) AND (attribute_not_exists(#state) OR NOT #state IN (${Object.keys(
      terminal,
    )
      .map(name => `:${name}`)
      .join(', ')}))`,
  )
  if (asked.ok) return cancel
  const { old } = asked
  return old?.subs === undefined || isTerminal(old.state) ? undefined : old.cancel
}

/** Notes under a look's lease that the agent is being asked to cancel the task, if the wish for that stands and does not say so. */
export async function noteAsked(
  table: Table,
  { key, lookAt }: Pick<Watch, 'key' | 'lookAt'>,
  { by, asked }: Cancel,
): Promise<void> {
  if (asked === true) return
  const wish = by === 'client' ? '#cancel' : '#overdueCancel'
  await update(
    table,
    watchKey(key),
    `SET ${wish}.#asked = :asked`,
    { asked: true, lookAt },
    `#lookAt = :lookAt AND attribute_exists(${wish})`,
  )
}

/** All watches of one task, one a principal. */
export async function watchesOf(
  table: Table,
  tenant: string,
  agent: string,
  taskId: string,
): Promise<Watch[]> {
  const listed = await list(table, tenant, { kind: 'tasks', by: 'agent', of: agent, task: taskId }, 100)
  const keys = [watchOf(tenant, agent, usualPrincipal, taskId), ...listed.pointers.map(({ ref }) => ref)]
  const found = await Promise.all(keys.map(key => getWatch(table, key)))
  return found.filter(watch => watch !== undefined)
}
