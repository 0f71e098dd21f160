// Begins tasks on a stand, lets them end, and tells how long after that their clients were told. Judges nothing.
import type { Stand, Watched } from '../stand.ts'

/** Tenants of the floods: one that floods or is flooded, and one that has no part in it. */
export const loud = 'demo'
export const calm = 'other'

/** An end that was pushed; `late` is how long after it was told by the ground's clock in ms, undefined as long as it was not. */
export type End = { late: () => number | undefined }

/** Subscribes a client of its own to a task that is at work. */
export async function begin(
  stand: Stand,
  tenant: string,
  agent: string,
  taskId: string,
): Promise<Watched & { path: string }> {
  const path = `/woken/${tenant}/${taskId}`
  stand.agent.set(taskId, 'working')
  return { ...(await stand.subscribe(tenant, agent, taskId, path)), path }
}

/** Ends a task and pushes that. @param path where its client is told */
export async function end(
  { local, agent, target, push }: Pick<Stand, 'local' | 'agent' | 'target' | 'push'>,
  task: Watched & { path: string },
): Promise<End> {
  const at = local.now()
  agent.set(task.taskId, 'completed')
  const { status } = await push(task, 'completed', 0)
  if (status !== 202) throw new Error(`An end was answered ${status}`)
  const isTold = ({ taskId, state }: { taskId: string; state: string }): boolean =>
    taskId === task.taskId && state === 'completed'
  return {
    late: () => {
      const arrived = target.told.get(task.path)?.find(isTold)
      return arrived && arrived.at - at
    },
  }
}

/** The latest of them; undefined if one was never told. */
export function latest(ends: readonly End[]): number | undefined {
  const all = ends.map(({ late }) => late())
  return all.includes(undefined) ? undefined : Math.max(...all.map(late => late ?? 0))
}
