// Floods the local ground in three ways, with its doors in processes of their own, and makes rows of what that did to whom.
import type { QueueHandler } from '../../functions/lambda.ts'
import { limits } from '../../shared/limits.ts'
import { writeWakeId } from '../../shared/names.ts'
import { windowMs } from '../../shared/policy.ts'
import { runApart } from './apart.ts'
import { type CrowdFlood, endCrowd } from './floods/crowd.ts'
import { type DeadFlood, type Handed, wakeMany } from './floods/dead.ts'
import { calm, loud } from './floods/ends.ts'
import { floodTask, type TaskFlood } from './floods/task.ts'
import { type Stand, startStand } from './stand.ts'
import { type Budget, median, type Row } from './table.ts'

/** How large the floods are. The local ground, on one machine, takes minutes for the usual ones and an hour for the full ones. */
const sizes = {
  usual: {
    task: { pushes: 10_000, seconds: 60 },
    crowd: { tasks: 600, seconds: 30, strangers: 10 },
    dead: { wakes: 300, every: 10 },
    live: { wakes: 300, every: 10 },
  },
  full: {
    task: { pushes: 10_000, seconds: 60 },
    crowd: { tasks: 10_000, seconds: 60, strangers: 20 },
    dead: { wakes: 50_000, every: 500 },
    // To compare with: how long a wake takes does not hang on how long that goes on.
    live: { wakes: 5000, every: 50 },
  },
}

/** Of a batch each function on AWS has one at a time; here all have one process, and one table. */
const batches = 12

type World = { stand: Stand; handed: Handed; size: (typeof sizes)['full'] }

/** Plays one flood in a world of its own. @param full in the size that is promised, instead of one that there is time for each day */
const flood =
  (play: (world: World) => Promise<Row[]>) =>
  async (full: boolean): Promise<Row[]> => {
    const apart = runApart()
    const handed: Handed = new Map()
    const deliver: typeof apart.doors.deliver = relay => noting(handed, relay.now, apart.doors.deliver(relay))
    const stand = await startStand({
      tenants: [loud, calm],
      doors: { ...apart.doors, deliver },
      batches,
      env: { DUE_SHARDS: '2' },
    })
    try {
      return await play({ stand, handed, size: sizes[full ? 'full' : 'usual'] })
    } finally {
      await stand.stop()
      apart.stop()
    }
  }

/** By the names of the bench's parts. */
export const floods = {
  'flood-task': flood(async ({ stand, size }) => taskRows(await floodTask(stand, size.task))),
  'flood-crowd': flood(async ({ stand, size }) => crowdRows(await endCrowd(stand, size.crowd))),
  'flood-dead': flood(async ({ stand, handed, size }) => {
    const live = await wakeMany(stand, handed, { name: 'live', ...size.live })
    const dead = await wakeMany(stand, handed, { name: 'dead', dead: 'never', ...size.dead })
    return deadRows(dead, live)
  }),
}

/** Notes when each wake is handed to its door. */
const noting =
  (handed: Handed, now: () => number, handler: QueueHandler): QueueHandler =>
  event => {
    for (const { body } of event.Records) {
      const { subject, id } = JSON.parse(body)
      if (id !== undefined) handed.set(writeWakeId(subject, id), { at: now(), ms: performance.now() })
    }
    return handler(event)
  }

const count = (says: string, kept: boolean): Budget => ({ kind: 'count', says, kept })
const within = (ms: number | undefined, most: number): boolean => ms !== undefined && ms <= most
const seconds = (ms: number | undefined): string =>
  ms === undefined ? 'never' : `${(ms / 1000).toFixed(0)} s`
const millis = (values: readonly number[]): string => `${median(values).toFixed(1)} ms`
const shares = (values: readonly number[], base: readonly number[]): number[] =>
  values.map((value, at) => value / (base[at] ?? Number.NaN))

function taskRows({ pushes, seconds: lasted, refused, looked, late, ms }: TaskFlood): Row[] {
  const what = `${pushes} pushes of one task in ${lasted} s`
  const gaps = looked.slice(1).map((at, n) => at - (looked[n] ?? 0))
  const inOrder = gaps.every(gap => gap >= windowMs)
  const other = (whose: string, among: number | undefined, before: number | undefined): Row => ({
    what: `${what}: ${whose}, told after`,
    value: seconds(among),
    against: 'before the flood',
    base: seconds(before),
    budget: count(`≤ ${2 * (windowMs / 1000)} s`, within(among, 2 * windowMs)),
  })
  return [
    {
      what: `${what}: looks`,
      value: String(looked.length),
      against: 'windows that it lasted',
      base: String(lasted),
      budget: count('≤ 1 a window', inOrder && looked.length <= lasted + 2),
    },
    {
      what: `${what}: last state told after`,
      value: seconds(late.flooded),
      against: 'a window',
      base: seconds(windowMs),
      budget: count('told', late.flooded !== undefined),
    },
    {
      what: `${what}: answers but 202`,
      value: String(refused),
      against: 'all pushes are genuine',
      base: '0',
      budget: count('0', refused === 0),
    },
    other('another task of the agent', late.sibling, late.siblingBefore),
    other('another tenant’s task', late.stranger, late.strangerBefore),
    {
      what: `${what}: the door’s answer`,
      value: millis(ms.flood),
      against: 'pushes of other tasks in calm',
      base: millis(ms.alone),
      ratios: shares(ms.flood, ms.alone),
    },
    {
      what: `${what}: its answer to others meanwhile`,
      value: millis(ms.among),
      against: 'pushes of other tasks in calm',
      base: millis(ms.alone),
      ratios: shares(ms.among, ms.alone),
    },
  ]
}

function crowdRows(flood: CrowdFlood): Row[] {
  const { tasks, late } = flood
  const what = `${tasks} tasks of one agent end in ${flood.seconds} s`
  const cap = limits.callsOfAgent
  return [
    {
      what: `${what}: calls at a time`,
      value: String(flood.most),
      against: 'the agent’s limit',
      base: String(cap),
      budget: count(`≤ ${cap}`, flood.most <= cap),
    },
    {
      what: `${what}: tasks told`,
      value: `${flood.told}, the last ${seconds(flood.lastMs)} after`,
      against: 'tasks',
      base: String(tasks),
      budget: count(String(tasks), flood.told === tasks),
    },
    {
      what: `${what}: longest wait that health shows`,
      value: `${flood.waitedSeconds} s`,
      against: 'when all are told',
      base: flood.waitsAtEnd === null ? 'nobody waits' : `${flood.waitsAtEnd} s`,
      budget: count('shown, then none', flood.waitedSeconds > 0 && flood.waitsAtEnd === null),
    },
    {
      what: `${what}: ${flood.strangers} of another tenant, told after`,
      value: seconds(late.among),
      against: 'before the flood',
      base: seconds(late.before),
      budget: count(`≤ ${windowMs / 1000} s`, within(late.among, windowMs)),
    },
  ]
}

function deadRows(dead: DeadFlood, live: DeadFlood): Row[] {
  const what = `${dead.wakes} wakes for a dead target`
  const cap = limits.attemptsAtTarget
  return [
    {
      what: `${what}: calls of it at a time`,
      value: `${dead.most}, ${dead.calls} in all`,
      against: 'a target’s limit',
      base: String(cap),
      budget: count(`≤ ${cap}`, dead.most <= cap),
    },
    {
      what: `${what}: kept until it is back`,
      value: `${dead.kept}, told by ${dead.callsAfter}`,
      against: 'wakes, of one client',
      base: String(dead.wakes),
      budget: count('all, by 2: a probe and the newest', dead.kept === dead.wakes && dead.callsAfter <= 2),
    },
    {
      what: `${what}: another tenant’s told at once`,
      value: String(dead.atOnce),
      against: 'all of its among them',
      base: String(dead.others),
      budget: count(String(dead.others), dead.atOnce === dead.others),
    },
    {
      what: `${what}: another tenant’s, queue to webhook`,
      value: millis(dead.ms),
      against: `among ${live.wakes} for a live target`,
      base: millis(live.ms),
      ratios: [median(dead.ms) / median(live.ms)],
    },
  ]
}
