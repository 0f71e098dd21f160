// Looks at what is left in table and queues when all is done: nothing may be leased, due, queued or dead for ever.
import { present, type Task } from './agents.ts'
import type { Violation } from './judge.ts'
import type { World } from './world.ts'

type Item = Record<string, unknown>

/** @param tasks all tasks, every one of which has ended */
export async function judgeRemains(world: World, tasks: ReadonlyMap<string, Task>): Promise<Violation[]> {
  const { ground, now } = world
  const items = await ground.items()
  const [look, deliver, dead] = await Promise.all([
    ground.messages('look'),
    ground.messages('deliver'),
    ground.dead(),
  ])
  return [
    ...items.flatMap(item => judgeItem(item, tasks, now())),
    ...[...look, ...deliver].map(({ body, place }) => stuck('', `a message is still ${place}: ${body}`)),
    ...dead.map(({ body, queue }) => stuck('', `a message of ${queue} is dead: ${body}`)),
  ]
}

const stuck = (task: unknown, says: string): Violation => ({ rule: 'stuck', task: String(task), says })

function judgeItem(item: Item, tasks: ReadonlyMap<string, Task>, now: number): Violation[] {
  const { pk, sk, taskId, lease, due, state, status } = item
  const kind = String(pk).slice(0, 2)
  const found: Violation[] = []
  if (Number(lease) > now)
    found.push(stuck(taskId, `${pk} ${sk} is leased for ${Number(lease) - now} ms more`))
  if (kind === 'N#' && due !== undefined) found.push(stuck(taskId, `the notice ${pk} is still due`))
  if (kind === 'K#' && String(sk).startsWith('W#') && status === 'pending')
    found.push(stuck(taskId, `the wake ${sk} is still pending: ${JSON.stringify(item.attempts)}`))
  if (kind !== 'K#' || sk !== '.') return found
  const task = tasks.get(String(taskId))
  if (due !== undefined) found.push(stuck(taskId, `the watch is still due, in state ${state}`))
  // Nobody looks any more at what nobody waits for.
  if (task !== undefined && item.subs !== undefined && state !== present(task).state)
    found.push({
      ...{ rule: 'wrong', task: task.id },
      says: `the watch says ${state} (${item.trouble ?? 'no trouble'}), the agent ${present(task).state}`,
    })
  return found
}
