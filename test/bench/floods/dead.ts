// Queues many wakes for one target, live or dead, and some of another tenant's among them; tells what became of all. Judges nothing.
import { idOf } from '../../../shared/hash.ts'
import { refOf } from '../../../shared/hooks.ts'
import { writeWakeId } from '../../../shared/names.ts'
import { sendDeliver } from '../../../shared/queue.ts'
import { createRelay, type Relay } from '../../../shared/relay.ts'
import { targetGroup, watchOf } from '../../../shared/store/keys.ts'
import { each, type Stand } from '../stand.ts'
import { calm, loud } from './ends.ts'

/** When a wake was handed to its door, by its public id: by the ground's clock and by the machine's, in ms. */
export type Handed = Map<string, { at: number; ms: number }>

export type DeadFlood = {
  wakes: number
  /** The most calls of the target that were under way at a time, and all of them until its wakes were at rest. */
  most: number
  calls: number
  /** Wakes that are kept for it, and calls that it got once it was back. */
  kept: number
  callsAfter: number
  /** Wakes of the other tenant, those that were told, and those while no time passed by the ground's clock since they left their queue. */
  others: number
  told: number
  atOnce: number
  /** From the queue's hand to the webhook, each of the other tenant's, in the machine's ms. */
  ms: number[]
}

const second = 1000
const abreast = 4
/** Fifty thousand wakes take a machine so long at most until they are at rest. */
const longestMs = 3 * 60 * 60 * second
/** How often a send is made anew on a machine too busy to answer in time: the same wake twice is one wake. */
const tries = 5

/** A target with a subscription of its own, to whom wakes can be queued as a look queues them. */
async function aim(stand: Stand, relay: Relay, tenant: string, name: string) {
  const path = `/aimed/${name}`
  await stand.register(tenant, name)
  stand.agent.set(name, 'working')
  const { hook } = await stand.follow(tenant, name, name, { path })
  const taskId = name
  await stand.push({ taskId, client: name, hook }, 'working', 0)
  const subject = watchOf(tenant, name, 'agent', taskId)
  const sub = refOf(hook.url.slice(hook.url.lastIndexOf('/') + 1))
  const wake = async (n: number): Promise<string> => {
    const id = idOf('flood', name, String(n))
    const of = { target: name, sub, at: relay.now(), state: 'completed', rev: 1 } as const
    const send = (left: number): Promise<void> =>
      sendDeliver(relay.queues, targetGroup(tenant, name), { v: 1, kind: 'wake', subject, id, of }).catch(
        error => (left > 0 ? send(left - 1) : Promise.reject(error)),
      )
    await send(tries)
    return writeWakeId(subject, id)
  }
  return { path, wake }
}

/**
 * @param flood `dead`: how the target answers if it is not live; `every` so many wakes there is one of the other tenant's
 * @param handed filled by the stand's deliver door
 */
export async function wakeMany(
  stand: Stand,
  handed: Handed,
  { name, dead, wakes, every }: { name: string; dead?: number | 'never'; wakes: number; every: number },
): Promise<DeadFlood> {
  const { local, target } = stand
  const relay = createRelay('bench', { ...local.env, AWS_ACCESS_KEY_ID: 'bench' }, { now: local.now })
  const many = await aim(stand, relay, loud, name)
  const few = await aim(stand, relay, calm, `beside-${name}`)
  await stand.pass(2 * second, 2)
  if (dead !== undefined) target.answer(many.path, dead)
  const others: string[] = []
  await each(
    Array.from({ length: wakes }, (_, n) => n),
    abreast,
    async n => {
      await many.wake(n)
      if (n % every === 0) others.push(await few.wake(n))
    },
  )
  // No time passes while calls are under way: their slots would run out, and they would not.
  await stand.pass(0, 1, longestMs)
  await stand.pass(10 * 60 * second, 10, longestMs)
  const told = new Map(target.told.get(few.path)?.map(one => [one.wakeId, one]))
  const arrived = others.flatMap(id => {
    const [one, from] = [told.get(id), handed.get(id)]
    return one && from ? [{ at: one.at - from.at, ms: one.ms - from.ms }] : []
  })
  const callsOf = (): number => target.told.get(many.path)?.length ?? 0
  const calls = callsOf()
  const kept = (await local.items()).filter(
    item => String(item.sk).startsWith('W#') && item.target === name && item.status === 'pending',
  ).length
  target.answer(many.path, 200)
  await stand.pass(2 * 60 * 60 * second, 8, longestMs)
  return {
    ...{ wakes, most: target.most(many.path), calls, kept, callsAfter: callsOf() - calls },
    others: others.length,
    told: others.filter(id => told.has(id)).length,
    atOnce: arrived.filter(({ at }) => at === 0).length,
    ms: arrived.map(({ ms }) => ms),
  }
}
