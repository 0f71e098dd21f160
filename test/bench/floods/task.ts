// Floods one task with pushes, so many a second, while others are pushed now and then; tells what that cost and whom. Judges nothing.
import { each, type Stand, type Watched } from '../stand.ts'
import { median } from '../table.ts'
import { begin, calm, type End, end, latest, loud } from './ends.ts'

export type TaskFlood = {
  pushes: number
  seconds: number
  /** Answers other than 202. */
  refused: number
  /** Times of the looks at the flooded task, ms. */
  looked: readonly number[]
  /** How late ends were told by the ground's clock in ms, if ever: the flooded task's, and of others before and in the flood. */
  late: Record<'flooded' | 'siblingBefore' | 'sibling' | 'strangerBefore' | 'stranger', number | undefined>
  /** The door's answers in ms, one median a second: pushes of the flood, others' among them, and others' while there is none. */
  ms: { flood: number[]; among: number[]; alone: number[] }
}

const second = 1000
const abreast = 8
/** Every so many pushes of the flood there is one of another task. */
const between = 20

export async function floodTask(
  stand: Stand,
  { pushes, seconds }: { pushes: number; seconds: number },
): Promise<TaskFlood> {
  await stand.register(loud, 'flooded')
  await stand.register(calm, 'quiet')
  const flooded = await begin(stand, loud, 'flooded', 'flood')
  const quiet = await each(['sibling', 'stranger'], 1, name => beside(stand, name, name))
  const early = await each(['sibling', 'stranger'], 1, name => beside(stand, name, `${name}-early`))
  await stand.pass(2 * second, 2)
  const before = await each(early, 1, task => end(stand, task))
  await stand.pass(second)
  const ms: TaskFlood['ms'] = { flood: [], among: [], alone: [] }
  const known = stand.agent.looks(flooded.taskId)
  let refused = 0
  let step = 0
  const push = async (task: Watched): Promise<number> => {
    const answer = await stand.push(task, 'working', ++step)
    if (answer.status !== 202) refused += 1
    return answer.ms
  }
  const perSecond = Math.round(pushes / seconds)
  const others = Array.from({ length: Math.ceil(perSecond / between) }, (_, n) => quiet[n % 2] ?? flooded)
  const crowd = Array.from({ length: perSecond }, (_, n) =>
    n % between === 0 ? [flooded, others[n / between] ?? flooded] : [flooded],
  ).flat()
  const ends: End[] = []
  for (let at = 0; at < seconds; at++) {
    ms.alone.push(median(await each(others, abreast, push)))
    stand.agent.set(flooded.taskId, 'working')
    const took = await each(crowd, abreast, async task => ({ task, ms: await push(task) }))
    const of = (isFlood: boolean): number =>
      median(took.filter(({ task }) => (task === flooded) === isFlood).map(one => one.ms))
    ms.flood.push(of(true))
    ms.among.push(of(false))
    if (at === Math.floor(seconds / 2)) ends.push(...(await each(quiet, 1, task => end(stand, task))))
    if (at === seconds - 1) ends.push(await end(stand, flooded))
    await stand.pass(second)
  }
  await stand.pass(5 * second, 5)
  const lateOf = (one: End | undefined): number | undefined => one && latest([one])
  const [siblingBefore, strangerBefore] = before.map(lateOf)
  const [sibling, stranger, last] = ends.map(lateOf)
  return {
    pushes: perSecond * seconds,
    seconds,
    refused,
    looked: stand.agent.looked(flooded.taskId).slice(known),
    late: { flooded: last, siblingBefore, sibling, strangerBefore, stranger },
    ms,
  }
}

/** A task of the flooded agent, or of another tenant's. */
const beside = (stand: Stand, whose: string, taskId: string): ReturnType<typeof begin> =>
  whose === 'sibling' ? begin(stand, loud, 'flooded', taskId) : begin(stand, calm, 'quiet', taskId)
