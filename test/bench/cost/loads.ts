// The three kinds of traffic that are billed, and the tasks that say nothing. Plays them on a stand and tells what they caused.
import type { DoorName } from '../../../infra/topology.ts'
import { type Apart, runApart } from '../apart.ts'
import type { Used } from '../instance.ts'
import { each, type Stand, startStand, type Watched } from '../stand.ts'
import { type Count, createMeter, type Meter } from './meter.ts'
import { itemBytes } from './prices.ts'

export type Spent = Count & {
  door: DoorName
  invocations: number
  cpuMs: number
  logLines: number
  logBytes: number
}

/** What a load caused, by door. */
export type Load = {
  notices: number
  spent: Record<DoorName, Spent>
  looks: number
  webhooks: number
  /** Bytes kept, times the months until each item expires. */
  byteMonths: number
}

export type Ground = { stand: Stand; apart: Apart; meter: Meter }

const tenant = 'demo'
const agent = 'fast'
export const shards = 2
const names: readonly DoorName[] = ['receive', 'api', 'look', 'deliver', 'tick']
const second = 1000
const day = 24 * 60 * 60 * second
const month = 30 * day
const silentTasks = 20
const floodPushes = 170
const warmRounds = 20
const tripTasks = 8
const abreast = 8

/** Everything that a load needs, in processes of its own so that CPU time is a door's own. */
export async function open(): Promise<Ground> {
  const meter = createMeter()
  const apart = runApart()
  // Few shards: what an empty tick reads is billed by itself, and is always the same.
  const stand = await startStand({
    doors: apart.doors,
    onCall: meter.onCall,
    env: { DUE_SHARDS: String(shards) },
  })
  await stand.register(tenant, agent)
  return { stand, apart, meter }
}

export async function shut({ stand, apart }: Ground): Promise<void> {
  await stand.stop()
  apart.stop()
}

/** Tasks at work, subscribed to and looked at. */
async function begin({ stand }: Ground, name: string, count: number): Promise<Watched[]> {
  const ids = Array.from(
    { length: count },
    (_, n) => `${name}-3f1c9a52-7d1e-4b7c-9d0a-${String(n).padStart(12, '0')}`,
  )
  const watched: Watched[] = []
  await each(ids, abreast, async id => {
    stand.agent.set(id, 'working')
    watched.push(await stand.subscribe(tenant, agent, id))
  })
  await stand.pass(2 * second, 2)
  return watched
}

/**
 * Measures some work.
 * @param rounds of the same work: each counts as much processor time as the lower quartile of them took, since slower
 *   ones tell of other programs on the machine
 */
async function measure(ground: Ground, notices: number, ...rounds: (() => Promise<void>)[]): Promise<Load> {
  const { stand, apart, meter } = ground
  const webhooks = (): number => [...stand.target.told.values()].reduce((sum, list) => sum + list.length, 0)
  const used = async (): Promise<Used[]> => Promise.all(names.map(name => apart.used(name)))
  meter.reset()
  const marks = [await used()]
  const callsBefore = { ...apart.calls }
  const [looksBefore, toldBefore, keptBefore] = [stand.agent.looks(), webhooks(), await kept(stand)]
  for (const round of rounds) {
    await round()
    marks.push(await used())
  }
  const spent = Object.fromEntries(
    names.map((door, at) => {
      const of = (name: 'cpuMs' | 'logLines' | 'logBytes'): number[] =>
        rounds.map((_, n) => (marks[n + 1]?.[at]?.[name] ?? 0) - (marks[n]?.[at]?.[name] ?? 0))
      const invocations = apart.calls[door] - callsBefore[door]
      const cpuMs = quartileOf(of('cpuMs')) * rounds.length
      const costs = { cpuMs, logLines: sumOf(of('logLines')), logBytes: sumOf(of('logBytes')) }
      return [door, { ...meter.of(door), door, invocations, ...costs }]
    }),
  ) as Load['spent']
  return {
    notices,
    spent,
    looks: stand.agent.looks() - looksBefore,
    webhooks: webhooks() - toldBefore,
    byteMonths: (await kept(stand)) - keptBefore,
  }
}

const quartileOf = (list: number[]): number =>
  list.toSorted((a, b) => a - b)[Math.floor(list.length / 4)] ?? 0

const sumOf = (list: number[]): number => list.reduce((sum, one) => sum + one, 0)

/** Bytes of all items that expire, each times the months until then. */
async function kept({ local }: Stand): Promise<number> {
  const items = await local.items()
  const until = (ttl: unknown): number => Math.max(0, Number(ttl) * second - local.now()) / month
  return items.reduce((sum, item) => sum + (item.ttl === undefined ? 0 : sizeOf(item) * until(item.ttl)), 0)
}

function sizeOf(item: Record<string, unknown>): number {
  const of = (value: unknown): number => {
    if (typeof value === 'string') return Buffer.byteLength(value)
    if (value instanceof Uint8Array) return value.length
    if (typeof value === 'number') return Math.ceil(String(value).length / 2) + 1
    if (typeof value !== 'object' || value === null) return 1
    const parts =
      value instanceof Set ? [...value] : Array.isArray(value) ? value : Object.entries(value).flat()
    return parts.reduce((sum: number, part) => sum + of(part) + 1, 3)
  }
  return (
    itemBytes +
    Object.entries(item)
      .flat()
      .reduce((sum: number, part) => sum + of(part), 0)
  )
}

/** Pushes each of which tells a known task's progress; what happens behind the door is not billed. */
export async function playDoor(ground: Ground): Promise<Load> {
  const { stand } = ground
  const tasks = await begin(ground, 'door', 20)
  const round = async (step: number): Promise<void> => {
    await pushEach(stand, tasks, 'working', step)
    await stand.pass(second)
  }
  // The first ones fill the door's memory and warm its code: a function on AWS lives for hours.
  for (let step = 0; step < warmRounds; step++) await round(step)
  const measured = Array.from({ length: 10 }, (_, n) => () => round(warmRounds + n))
  return measure(ground, tasks.length * measured.length, ...measured)
}

/** Seventeen pushes a second each of few tasks: just below the rate from which they ride on one look. */
export async function playFlood(ground: Ground): Promise<Load> {
  const { stand } = ground
  const tasks = await begin(ground, 'flood', 2)
  return measure(ground, tasks.length * floodPushes, async () => {
    for (let step = 0; step < floodPushes; step++) {
      for (const { taskId } of tasks) if (step % 17 === 0) stand.agent.set(taskId, 'working')
      await pushEach(stand, tasks, 'working', step)
      if (step % 17 === 16) await stand.pass(second)
    }
    await stand.pass(2 * second, 2)
  })
}

/** Ten pushes in five bursts, as an agent works, asks, is answered and ends; two of them wake the client. */
const script = [
  ['working', 'working', 'working'],
  ['working', 'working'],
  ['input-required'],
  ['working', 'working'],
  ['working', 'completed'],
]

/** From subscription to end, ten pushes and two wakes a task. */
export async function playTrip(ground: Ground): Promise<Load> {
  const { stand } = ground
  const pushes = script.flat().length
  // A first round warms the doors: a function on AWS lives for hours.
  await playTasks(stand, await begin(ground, 'warm', tripTasks))
  return measure(ground, tripTasks * pushes, async () =>
    playTasks(stand, await begin(ground, 'trip', tripTasks)),
  )
}

async function playTasks(stand: Stand, tasks: Watched[]): Promise<void> {
  let step = 0
  for (const burst of script) {
    for (const state of burst) {
      for (const { taskId } of tasks) stand.agent.set(taskId, state)
      await pushEach(stand, tasks, state, step++)
    }
    await stand.pass(3 * second, 3)
    await stand.pass(5 * second)
  }
}

/** Tasks that are subscribed to and say nothing: what each of some days costs, one load a day. */
export async function playSilence(ground: Ground, days: number): Promise<Load[]> {
  const { stand } = ground
  await begin(ground, 'silent', silentTasks)
  const loads: Load[] = []
  for (let at = 0; at < days; at++)
    loads.push(await measure(ground, silentTasks, () => stand.pass(day, at === 0 ? 288 : 72)))
  return loads
}

async function pushEach(stand: Stand, tasks: Watched[], state: string, step: number): Promise<void> {
  await each(tasks, abreast, async task => {
    const { status } = await stand.push(task, state, step)
    if (status !== 202) throw new Error(`A push was answered ${status}`)
  })
}
