// Judges the budgets of a task with all that was delegated from it, as far as that is watched, and has them judged again. Asks no agent.
import { isTerminal } from './a2a/task.ts'
import { type Below, countsTree, nameOf, type Timed, type Times, timesOf } from './budgets.ts'
import type { Subscription, Watch } from './model.ts'
import type { Relay } from './relay.ts'
import { watchesOf } from './store/asked.ts'
import { list } from './store/directory.ts'
import { below, readParent } from './store/trees.ts'
import { getWatch, retimeWatch } from './store/watches.ts'

/** Tasks below one that are looked into; a tree of more counts by those that are found first. */
const mostTasks = 100

/** What the time makes true of a task. The tasks below it are read only if a budget that covers them depends on them. */
export async function timesNow(
  { table }: Pick<Relay, 'table'>,
  watch: Timed & Pick<Watch, 'tenant'>,
  subs: readonly Subscription[],
  now: number,
): Promise<Times> {
  const open = countsTree(watch, subs, now) ? await openBelow(table, watch) : []
  return timesOf(watch, subs, now, open)
}

/**
 * Has the tasks above one judged again that ended before it came: their budgets from end to end cover it, or what is below
 * it. Without such a budget the timer goes at once.
 * @param named other tasks that it was delegated from, as those who join it name them
 * @returns false when one of them is being looked at, so that it may miss this: it is to be tried again
 */
export async function remindAbove(
  { table, now }: Pick<Relay, 'table' | 'now'>,
  { tenant, agent, taskId, parent }: Pick<Watch, 'tenant' | 'agent' | 'taskId' | 'parent'>,
  named: readonly string[] = [],
): Promise<boolean> {
  const seen = new Set([nameOf({ agent, taskId })])
  const above = [parent ?? '', ...named].map(readParent)
  let done = true
  for (const one of above) {
    if (one === undefined || seen.has(nameOf(one)) || seen.size > mostTasks) continue
    seen.add(nameOf(one))
    for (const watch of await watchesOf(table, tenant, one.agent, one.taskId)) {
      above.push(readParent(watch.parent ?? ''))
      if (isTerminal(watch.state)) done = (await retimeWatch(table, watch, now())) && done
    }
  }
  return done
}

/** The tasks below one that have not ended and that somebody watches, nearest first. */
async function openBelow(
  table: Relay['table'],
  { tenant, agent, taskId }: Pick<Watch, 'tenant' | 'agent' | 'taskId'>,
): Promise<Below[]> {
  const open = new Map<string, number>()
  const seen = new Set([nameOf({ agent, taskId })])
  const left = [{ agent, taskId }]
  for (let one = left.shift(); one !== undefined && seen.size <= mostTasks; one = left.shift()) {
    // Who joins the tree just now must be seen, or the timer goes.
    const { pointers } = await list(table, tenant, below(one), mostTasks, undefined, false)
    const found = await Promise.all(pointers.map(({ ref }) => getWatch(table, ref)))
    for (const child of found.filter(watch => watch !== undefined)) {
      if (seen.size > mostTasks) break
      const name = nameOf(child)
      // Whoever names its parent may name one below it: a ring is gone through once.
      if (!seen.has(name)) left.push(child)
      seen.add(name)
      // Each principal has a watch of its own.
      if (!isTerminal(child.state) && child.subs.length > 0)
        open.set(name, Math.min(child.created, open.get(name) ?? child.created))
    }
  }
  open.delete(nameOf({ agent, taskId }))
  return [...open].map(([name, created]) => ({ name, created }))
}
