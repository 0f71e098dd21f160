// Lets many tasks of one agent end in one minute, and a few of another tenant's agent meanwhile; tells how they came through. Judges nothing.
import { startFast } from '../agent.ts'
import { each, type Stand } from '../stand.ts'
import { calm, type End, end, latest, loud } from './ends.ts'

export type CrowdFlood = {
  tasks: number
  seconds: number
  /** Tasks that were told. */
  told: number
  /** The most calls of the agent that were under way at a time. */
  most: number
  /** How long the longest waited by the agent's health, at its highest and when all was over; null says that nobody waits. */
  waitedSeconds: number
  waitsAtEnd: number | null
  /** From the last end until the last was told, by the ground's clock in ms. */
  lastMs: number
  strangers: number
  /** How late the ends of the other tenant's tasks were told at most, before and in the flood. */
  late: { before: number | undefined; among: number | undefined }
}

const second = 1000
const abreast = 8
/** How long an agent takes for an answer, so that its calls overlap. */
const answerMs = 20
/** By then whatever is not told is lost. */
const longestMs = 60 * 60 * second

type Health = { calls: { oldestWaitingSeconds: number | null } }

/** @param flood `limit`: calls of the agent at a time, if not the usual number */
export async function endCrowd(
  stand: Stand,
  { tasks, seconds, strangers, limit }: { tasks: number; seconds: number; strangers: number; limit?: number },
): Promise<CrowdFlood> {
  const { local, target } = stand
  const [agent, other] = [await startFast(local.now), await startFast(local.now)]
  agent.delayMs = other.delayMs = answerMs
  try {
    await stand.register(loud, 'crowd', {
      url: agent.url,
      ...(limit !== undefined && { maxConcurrentCalls: limit }),
    })
    await stand.register(calm, 'few', { url: other.url })
    const follow = async (tenant: string, name: string) => {
      const path = `/${name}`
      // The agent's calls are what is to be scarce.
      return { ...(await stand.follow(tenant, name, name, { path, maxConcurrency: 100 })), path }
    }
    const [all, few] = [await follow(loud, 'crowd'), await follow(calm, 'few')]
    const endOne = (n: number): Promise<End> =>
      end({ ...stand, agent: other }, { ...few, taskId: `few-${n}` })
    await stand.pass(second)
    const before = [await endOne(-1)]
    await stand.pass(second)
    const among: End[] = []
    let waited = 0
    const waits = async (): Promise<number | null> => {
      const { calls } = await stand.routes(loud).call<Health>('GET', '/v1/agents/crowd/health')
      waited = Math.max(waited, calls.oldestWaitingSeconds ?? 0)
      return calls.oldestWaitingSeconds
    }
    const told = (): number => new Set(target.told.get('/crowd')?.map(({ taskId }) => taskId)).size
    const ids = Array.from({ length: tasks }, (_, n) => `crowd-${n}`)
    const perSecond = Math.ceil(tasks / seconds)
    for (let at = 0; at < seconds; at++) {
      await each(ids.slice(at * perSecond, (at + 1) * perSecond), abreast, taskId =>
        end({ ...stand, agent }, { ...all, taskId }),
      )
      if ((at * strangers) % seconds < strangers) among.push(await endOne(at))
      await stand.pass(second)
      await waits()
    }
    const over = local.now()
    while (told() < tasks && local.now() < over + longestMs) {
      await stand.pass(5 * second)
      await waits()
    }
    return {
      ...{ tasks, seconds, told: told(), most: agent.most() },
      ...{ waitedSeconds: waited, waitsAtEnd: await waits() },
      lastMs: Math.max(...(target.told.get('/crowd') ?? []).map(({ at }) => at)) - over,
      strangers: among.length,
      late: { before: latest(before), among: latest(among) },
    }
  } finally {
    await Promise.all([agent.stop(), other.stop()])
  }
}
