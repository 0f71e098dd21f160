// Says what went wrong in a run, and how late the last state was told. Looks only at what users could see, and at what is left over.
import { isNews, isTerminal } from '../../../shared/a2a/task.ts'
import { callsAtOnce } from './crowd.ts'
import { mostLooks, type Run, type Subscriber } from './run.ts'
import { type Moment, taskId } from './story.ts'
import { clientOf, targetOf, type World } from './world.ts'

export type Verdict = {
  faults: Fault[]
  /** Milliseconds from the last state to the first try to wake for it, the slowest subscriber's. */
  lateMs: number
  /** True when a state that lasts was told more than half a minute after its push was accepted. */
  tardy: boolean
}

export type Fault =
  /** The watch shows another state than the agent, in the end. */
  | 'wrong state'
  /** The last state is not the last entry of a subscriber's inbox; or no hint was sent of it. */
  | 'no entry'
  | 'no hint'
  /** One change was told under two wake ids; the same of an agent that dates nothing, so that nobody can tell its order. */
  | 'two ids'
  | 'two ids, undated'
  /** An entry's revision is lower than that of one before it; an entry stands twice. */
  | 'order'
  | 'entry twice'
  /** An entry shows a state that was over before the one that was told last began, though the agent dates its states. */
  | 'back in time'
  /** A hint was sent before its entry could be read. */
  | 'blind hint'
  /** A timer, wake or message is left that nothing will end; an open task has no timer. */
  | 'left over'
  | 'forgotten'
  /** A state that lasted, whose push was taken, was never told though it was there for half an hour. */
  | 'missed'
  /** The last state was told, but only because its timer came. */
  | 'late'
  /** Messages beget messages. */
  | 'churn'
  /** The end of another task of the agent was never told; or long after the agent answered again. */
  | 'crowd untold'
  | 'crowd late'
  /** More calls at the agent than it takes at a time; calls to one that answers nobody, as if it did. */
  | 'too many at once'
  | 'hammered'

const minute = 60_000

/** Longer than every deadline on the way: timer, tick, a message that comes back, its second death. */
const lastingMs = 30 * minute

/** A floor may be hours away; whatever was pushed must not wait for it. */
const latestMs = 20 * minute
/** What may take its time when nothing goes wrong: a webhook 15 s, the agent 6 s, a message in the queue 6 s. */
const tardyMs = 30_000
/** An agent is left alone for six minutes at most, and then each of its tasks waits for its turn. */
const recoveredMs = 7 * minute
/**
 * Calls to an agent that answers nobody: it is left alone once it has failed for half a minute, in which ten may be under
 * way at a time, and tried again ever more seldom. Seen were 7 to 21, by chance.
 */
const mostWhileDown = 30
/** A state that is over sooner may be passed over. */
const patientMs = 10_000

export function judge({ world, subscribers, end }: Run): Verdict {
  const faults = new Set<Fault>()
  let lateMs = 0
  let slowMs = 0
  for (const subscriber of subscribers.filter(({ owed }) => owed)) {
    const entries = entriesOf(world, subscriber)
    for (const fault of faultsOf(world, subscriber, entries)) faults.add(fault)
    lateMs = Math.max(lateMs, latenessOf(world, subscriber))
    slowMs = Math.max(slowMs, slownessOf(world, subscriber, entries))
  }
  if (lateMs > latestMs) faults.add('late')
  for (const fault of [...leftOver(world, end), ...crowdFaults(world)]) faults.add(fault)
  const isPlain = world.road === 'push' && !isRepeated(world, world.story.last)
  // Among many each waits for its turn.
  const isAlone = world.crowd.ends.size === 0
  const isTardy = slowMs > tardyMs || (isPlain && lateMs > tardyMs)
  return {
    ...{ faults: [...faults], lateMs },
    tardy: isAlone ? isTardy : crowdLateMs(world) > recoveredMs,
  }
}

/** True for a state that looks like an earlier one of the same task: it may be taken for a replica's answer. */
const isRepeated = ({ story }: World, { n, look }: Moment): boolean =>
  story.moments.some(earlier => earlier.n < n && earlier.look === look)

/** An entry as it stands in the inbox, and which state of the story it shows. */
type Entry = { id: string; rev: number; at: number; shows: number }

const entriesOf = ({ table, shows }: World, { name }: Subscriber): Entry[] =>
  table
    .items(`I#t#${clientOf(name)}`)
    .filter(({ sk, void: isVoid }) => String(sk).startsWith('e#') && isVoid !== true)
    .sort((one, other) => Number(one.seq) - Number(other.seq))
    .map(({ id, rev, at, state }) => ({
      ...{ id: String(id), rev: Number(rev), at: Number(at), shows: shows.get(`${rev} ${state}`) ?? -1 },
    }))

const hintsOf = ({ hints }: World, { name }: Subscriber) =>
  hints.filter(({ target }) => target === targetOf(name))

const watchOf = ({ table }: World) =>
  table.items('K#').find(item => item.sk === '.' && item.taskId === taskId)

function* faultsOf(world: World, subscriber: Subscriber, entries: Entry[]): Generator<Fault> {
  const { story, shows } = world
  const watch = watchOf(world)
  const shown = story.moments[shows.get(`${watch?.rev} ${watch?.state}`) ?? -1]
  if (shown?.look !== story.last.look || watch?.state !== story.last.state) yield 'wrong state'
  const last = entries.at(-1)
  if (last === undefined || story.moments[last.shows]?.look !== story.last.look) yield 'no entry'
  const mine = hintsOf(world, subscriber)
  if (!mine.some(hint => hint.heard && hint.rev === last?.rev)) yield 'no hint'
  if (mine.some(hint => !hint.found)) yield 'blind hint'
  if (mine.some(a => mine.some(b => a.shows === b.shows && a.id !== b.id)))
    yield story.stamped ? 'two ids' : 'two ids, undated'
  if (entries.some((entry, at) => (entries[at - 1]?.rev ?? 0) > entry.rev)) yield 'order'
  if (story.stamped && entries.some(({ shows }, at) => (entries[at - 1]?.shows ?? -1) > shows))
    yield 'back in time'
  if (new Set(entries.map(({ id }) => id)).size < entries.length) yield 'entry twice'
  for (const { n, at, until, state, look } of story.moments)
    if (
      until - at > lastingMs &&
      isNews(state) &&
      subscriber.taken.has(n) &&
      subscriber.states.includes(state) &&
      !entries.some(({ shows }) => story.moments[shows]?.look === look)
    )
      yield 'missed'
}

/** From when the last state was there, pushed and accepted, or the subscriber was: whatever came later. */
function latenessOf(world: World, subscriber: Subscriber): number {
  const { last } = world.story
  const { since, taken } = subscriber
  if (!taken.has(last.n) && since < last.at) return 0
  const told = hintsOf(world, subscriber).filter(({ rev }) => rev === watchOf(world)?.rev)
  return Math.min(...told.map(({ at }) => at)) - Math.max(last.at, since, answersFrom(world, last.at))
}

function* leftOver(world: World, end: number): Generator<Fault> {
  const { story, table, queues, road } = world
  const over = isTerminal(story.last.state)
  const watch = watchOf(world)
  if (over && watch?.due !== undefined) yield 'left over'
  if (!over && watch !== undefined && watch.due === undefined) yield 'forgotten'
  if (watch !== undefined && Number(watch.lease) > end + minute) yield 'left over'
  if (table.items('N#').some(({ due }) => due !== undefined)) yield 'left over'
  if (table.items('K#').some(({ sk, status }) => String(sk).startsWith('W#') && status === 'pending'))
    yield 'left over'
  const { look, deliver } = queues
  if (look.waiting() > (road === 'poll' && !over ? 3 : 0) || deliver.waiting() > 0) yield 'left over'
  if (look.sent() > mostLooks) yield 'churn'
  if (look.dead() + deliver.dead() > 0) yield 'left over'
}

/** How long the slowest of the states that were pushed, accepted and lasted took to be entered. */
const slownessOf = (world: World, { at: joined, taken }: Subscriber, entries: Entry[]): number =>
  Math.max(
    0,
    ...entries.map(({ shows, at }) => {
      const moment = world.story.moments[shows]
      if (moment === undefined || !taken.has(shows) || isRepeated(world, moment)) return 0
      return moment.until - moment.at < patientMs ? 0 : at - Math.max(moment.at, joined)
    }),
  )

/** When the agent answers who asks it for what began at a time; deaths may have kept them from it until it was away. */
const answersFrom = ({ crowd: { down } }: World, time: number): number =>
  time >= down.from - latestMs && time < down.until ? down.until : time

/** How long the end of a task of the crowd took to be entered, once the agent answered and somebody was promised it. */
const crowdLateMs = (world: World): number => {
  const { crowd, table } = world
  const inbox = table.items(`I#t#${clientOf('crowd')}`)
  const late = [...crowd.owed].map(([id, since]) => {
    const end = crowd.ends.get(id) ?? 0
    const told = inbox.find(entry => entry.taskId === id && entry.state === 'completed')
    if (told === undefined) return Number.POSITIVE_INFINITY
    if (!crowd.taken.has(id) && since < end) return 0
    return Number(told.at) - Math.max(since, answersFrom(world, end))
  })
  return Math.max(0, ...late)
}

function* crowdFaults(world: World): Generator<Fault> {
  const { ends, down, exchanges } = world.crowd
  const lateMs = crowdLateMs(world)
  if (!Number.isFinite(lateMs)) yield 'crowd untold'
  else if (lateMs > latestMs) yield 'crowd late'
  const prompt = exchanges.filter(({ late }) => !late)
  const atOnce = (time: number) => prompt.filter(({ from, until }) => from <= time && time < until).length
  if (ends.size > 0 && prompt.some(({ from }) => atOnce(from) > callsAtOnce)) yield 'too many at once'
  const whileDown = exchanges.filter(({ from }) => from >= down.from && from < down.until)
  if (whileDown.length > mostWhileDown) yield 'hammered'
}
