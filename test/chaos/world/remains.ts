// Looks at what is left in table and queues when all is done: nothing may be leased, due, queued or dead for ever.
import { present, type Task } from './agents.ts'
import type { Cast } from './cast.ts'
import { interestsOf, isHidden, type Violation } from './judge.ts'
import type { World } from './world.ts'

type Item = Record<string, unknown>

/** @param tasks all tasks, every one of which has ended */
export async function judgeRemains(
  world: World,
  cast: Cast,
  tasks: ReadonlyMap<string, Task>,
): Promise<Violation[]> {
  const { ground, now } = world
  const items = await ground.items()
  const [look, deliver, dead] = await Promise.all([
    ground.messages('look'),
    ground.messages('deliver'),
    ground.dead(),
  ])
  // What nobody's credentials show is waited for as long as somebody is subscribed.
  const hidden = [...tasks.values()].filter(task => isHidden(interestsOf(cast, task))).map(({ id }) => id)
  const waiting = items
    .filter(({ taskId }) => hidden.includes(String(taskId)))
    .flatMap(({ pk, taskId }) => [String(pk).slice(2), String(taskId)])
  const left = [...look, ...deliver].filter(({ body }) => !waiting.some(name => body.includes(name)))
  return [
    ...items.flatMap(item => judgeItem(item, now())),
    ...items
      .filter(({ taskId }) => !hidden.includes(String(taskId)))
      .flatMap(item => judgeTask(item, tasks.get(String(item.taskId)))),
    ...left.map(({ body, place }) => stuck('', `a message is still ${place}: ${body}`)),
    ...dead.map(({ body, queue }) => stuck('', `a message of ${queue} is dead: ${body}`)),
  ]
}

const stuck = (task: unknown, says: string): Violation => ({ rule: 'stuck', task: String(task), says })

const isWatch = ({ pk, sk }: Item): boolean => String(pk).startsWith('K#') && sk === '.'

function judgeItem({ pk, sk, taskId, lease, status, attempts }: Item, now: number): Violation[] {
  const found: Violation[] = []
  if (Number(lease) > now)
    found.push(stuck(taskId, `${pk} ${sk} is leased for ${Number(lease) - now} ms more`))
  if (String(pk).startsWith('K#') && String(sk).startsWith('W#') && status === 'pending')
    found.push(stuck(taskId, `the wake ${sk} is still pending: ${JSON.stringify(attempts)}`))
  return found
}

function judgeTask(item: Item, task: Task | undefined): Violation[] {
  const { pk, taskId, due, state, subs, trouble } = item
  const found: Violation[] = []
  if (String(pk).startsWith('N#') && due !== undefined)
    found.push(stuck(taskId, `the notice ${pk} is still due`))
  if (!isWatch(item)) return found
  if (due !== undefined) found.push(stuck(taskId, `the watch is still due, in state ${state}`))
  // Nobody looks any more at what nobody waits for.
  if (task !== undefined && subs !== undefined && state !== present(task).state)
    found.push({
      ...{ rule: 'wrong', task: task.id },
      says: `the watch says ${state} (${trouble ?? 'no trouble'}), the agent ${present(task).state}`,
    })
  return found
}
