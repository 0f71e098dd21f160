// Lets many notices through doors that have a process each, while table and queues are in another, and makes rows of what their memory came to.
import type { DoorName } from '../../infra/topology.ts'
import { type Apart, runApart } from './apart.ts'
import { each, type Stand, startStand, type Watched } from './stand.ts'
import { atMost, median, type Row } from './table.ts'

const second = 1000
const abreast = 8
const tenant = 'demo'
/** Tasks that tell their progress all the time, ten times a round. */
const busyTasks = 20
const pushesEach = 10
/** Tasks that end as soon as they begin: names that no door has met before, each with a wake. */
const freshTasks = 10
const perRound = busyTasks * pushesEach + freshTasks
const samples = 12
/** Samples that count as warming up: code is compiled, pools and caches fill. */
const warming = samples / 4
const megabyte = 1024 * 1024
/** Growth of what is reachable, in MB per 10 000 notices, beyond which something is kept for each: 50 bytes. */
const mostGrowth = 0.5

const names: readonly DoorName[] = ['receive', 'look', 'deliver', 'tick']

/** Resident and reachable memory in MB of one door, sample by sample, garbage collected before each. */
type Course = { name: DoorName; resident: number[]; heap: number[] }

/**
 * @param folder for the table, so that what it holds is in no memory that counts
 * @param full a hundred thousand notices instead of a twentieth of that, after which doors still warm up: then growth is judged
 */
export async function memoryRows(folder: string, full: boolean): Promise<Row[]> {
  const rounds = Math.ceil((full ? 100_000 : 5000) / perRound / samples)
  const apart = runApart(['--expose-gc'])
  const dir = `${folder}/memory`
  const stand = await startStand({ doors: apart.doors, dir, batches: 4, env: { DUE_SHARDS: '2' } })
  try {
    const play = await playing(stand)
    const courses = names.map((name): Course => ({ name, resident: [], heap: [] }))
    for (let sample = 0; sample < samples; sample++) {
      for (let round = 0; round < rounds; round++) await play()
      for (const course of courses) await take(apart, course)
    }
    return courses.flatMap(course => rowsOf(course, rounds * perRound, full))
  } finally {
    await stand.stop()
    apart.stop()
  }
}

/** A round of notices: a second passes, and all of them are looked at. */
async function playing(stand: Stand): Promise<() => Promise<void>> {
  await stand.register(tenant, 'busy')
  await stand.register(tenant, 'brief')
  const busy = await each([...Array(busyTasks).keys()], abreast, n => {
    const taskId = `busy-${n}`
    stand.agent.set(taskId, 'working')
    return stand.subscribe(tenant, 'busy', taskId)
  })
  const brief = await stand.follow(tenant, 'brief', 'brief', { path: '/brief', maxConcurrency: 100 })
  const round = busy.flatMap(task => Array.from({ length: pushesEach }, () => task))
  let step = 0
  const push = async (task: Watched, state: string): Promise<void> => {
    const { status } = await stand.push(task, state, ++step)
    if (status !== 202) throw new Error(`A push was answered ${status}`)
  }
  return async () => {
    await each(round, abreast, task => push(task, 'working'))
    const fresh = Array.from({ length: freshTasks }, (_, n) => `brief-${step}-${n}`)
    await each(fresh, abreast, taskId => {
      stand.agent.set(taskId, 'completed')
      return push({ ...brief, taskId }, 'completed')
    })
    await stand.pass(second)
  }
}

async function take(apart: Apart, { name, resident, heap }: Course): Promise<void> {
  const used = await apart.used(name)
  resident.push(used.resident / megabyte)
  heap.push(used.heap / megabyte)
}

function rowsOf({ name, resident, heap }: Course, noticesEach: number, full: boolean): Row[] {
  const what = `memory of ${name}, ${noticesEach * samples} notices`
  const warm = resident.slice(warming)
  const third = Math.floor(warm.length / 3)
  const [begin, end] = [median(warm.slice(0, third)), median(warm.slice(-third))]
  const growth = (slope(heap.slice(warming)) / noticesEach) * 10_000
  const grows = (slope(warm) / noticesEach) * 10_000
  return [
    {
      what: `${what}: resident`,
      value: `${end.toFixed(1)} MB, ${signed(grows)} MB per 10 000`,
      against: `once ${noticesEach * warming} were through`,
      base: `${begin.toFixed(1)} MB`,
      ratios: [end / begin],
      ...(full && { budget: atMost('ratio', 1.1, [end / begin]) }),
    },
    {
      what: `${what}: reachable`,
      value: `${signed(growth)} MB per 10 000`,
      against: 'nothing kept for a notice',
      base: '0 MB',
      ...(full && { budget: { kind: 'bytes', says: `≤ ${mostGrowth} MB`, kept: growth <= mostGrowth } }),
    },
  ]
}

const signed = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(2)}`

/** The middle of the slopes between all pairs of values (Theil and Sen): single outliers do not bend it. */
function slope(values: readonly number[]): number {
  return median(
    values.flatMap((value, at) => values.slice(0, at).map((before, n) => (value - before) / (at - n))),
  )
}
