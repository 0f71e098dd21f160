// Runs the model once: a story, its subscribers and all mishaps from one seed, to the end. Judges nothing.
import { isTerminal, type TaskState, taskStates } from '../../../shared/a2a/task.ts'
import type { Subscription } from '../../../shared/model.ts'
import type { Cell } from './cells.ts'
import { deliver } from './delivering.ts'
import { look, type Push, receive, subscribe, tick } from './doors.ts'
import type { Rules } from './rules.ts'
import { type Moment, type Pace, taskId, tellStory } from './story.ts'
import { createBed, createQueue, type Note, type Odds, spawn, type Timeline, type Work } from './timeline.ts'
import type { DeliverBody, LookBody, Me, World } from './world.ts'

/** Mishaps as they may come all at once. */
export const rough: Odds = {
  kill: 0.02,
  stall: 0.002,
  twice: 0.03,
  lostAnswer: 0.01,
  lag: 0.05,
  refused: 0.02,
  outage: 0.03,
  slow: 0.1,
  replica: 0.1,
  unsent: 0.03,
  resent: 0.1,
  unheard: 0.05,
}

/** Nothing goes wrong that AWS and agents do not do every day. */
export const mild: Odds = {
  ...{ kill: 0, stall: 0, lostAnswer: 0, refused: 0, outage: 0, replica: 0, unsent: 0, unheard: 0 },
  ...{ twice: 0.03, lag: 0.05, resent: 0.1, slow: 0.1 },
}

export type Options = {
  rules: Rules
  odds: Odds
  kind?: Kind | undefined
  pace?: Pace | undefined
  replicaMs?: number | undefined
  note?: Note | undefined
}

/** Who waits for the task. */
const kinds = ['bound', 'unbound', 'two', 'two unbound', 'late', 'late unbound', 'polled'] as const
export type Kind = (typeof kinds)[number]

/** What is known of a subscriber once the run is over. */
export type Subscriber = {
  sub: Subscription
  /** Whether it was promised anything: its caller got 2xx, and if it was unbound, a push of it did too. */
  owed: boolean
  /** When it was promised that, by the true time. */
  since: number
  /** The states whose push to it was answered with 2xx. */
  taken: Set<number>
}

export type Run = { world: World; subscribers: Subscriber[]; end: number; kind: Kind }

const begin = Date.UTC(2026, 0, 1)
const minute = 60_000
const hour = 60 * minute
/** Clocks are off by up to this much. */
const skewMs = 500
/** A run that queues more than this is given up: it would never end. */
export const mostLooks = 6000
const limits = { receive: 5000, api: 30_000, look: 30_000, deliver: 30_000, tick: 50_000 }

/** Runs one seed to its end: until nothing is left to happen, or hours after the last state. */
export function run(seed: number, options: Options): Run {
  const bed = createBed(seed, options.odds, begin, options.note)
  const { timeline, chance, storm } = bed
  const story = tellStory(chance, begin + chance.between(0, minute), options.pace ?? 'mixed')
  const kind = options.kind ?? chance.pick(...kinds)
  const me = (): Me => {
    const skew = Math.round(chance.between(-skewMs, skewMs))
    return { now: () => Math.floor(timeline.now()) + skew }
  }
  const world: World = {
    ...bed,
    ...{ rules: options.rules, story, road: kind === 'polled' ? 'poll' : 'push' },
    replicaMs: options.replicaMs ?? 1500,
    onTimer: tickWhen(timeline, () => {
      spawn(world, tick(world, me()), limits.tick)
      return [world.watch, ...world.notices.values(), ...world.wakes.values()]
    }),
    watch: { item: undefined },
    ...{ subs: new Map(), pushed: new Set(), notices: new Map(), wakes: new Map(), inboxes: new Map() },
    look: createQueue<LookBody>(bed, limits.look, body => look(world, me(), body)),
    deliver: createQueue<DeliverBody>(bed, limits.deliver, body => deliver(world, me(), body)),
    hints: [],
    counts: { looks: 0, ticks: 0 },
  }
  const act: Act = (limitMs, work, end) => spawn(world, work(me()), limitMs, end)
  const subscribers = cast(world, kind).map(joins => enter(world, joins, act))
  const spell = chance.between(0, 400_000)
  for (const { at } of [...story.moments, ...subscribers.map(({ sub }) => ({ at: sub.createdAt }))])
    timeline.at(at, () => storm(at + spell))
  // What goes on for ever shows soon what it will ever show.
  const goesOn = !isTerminal(story.last.state)
  const end = story.last.at + (goesOn ? (kind === 'polled' ? 0.5 : 3) : 6) * hour
  timeline.run(end, () => world.look.sent() <= mostLooks)
  return { world, subscribers, end, kind }
}

/** Ticks at whole minutes, but only where a timer may be due: a tick that finds nothing changes nothing. */
function tickWhen(timeline: Timeline, sweep: () => Cell<{ due?: number }>[]): (due: number) => void {
  let next = Number.POSITIVE_INFINITY
  const onTimer = (due: number): void => {
    const time = Math.max(Math.ceil(due / minute), Math.floor(timeline.now() / minute) + 1) * minute
    if (time >= next) return
    next = time
    timeline.at(time, () => {
      if (next !== time) return
      next = Number.POSITIVE_INFINITY
      for (const { item } of sweep()) if (item?.due !== undefined) onTimer(item.due)
    })
  }
  return onTimer
}

type Act = <T>(limitMs: number, work: (me: Me) => Work<T>, end?: (result: T) => void) => void
type Joining = { sub: Subscription; at: number }

/** The subscribers of a run, and when each joins. */
function cast({ chance, story }: World, kind: Kind): Joining[] {
  const [first] = story.moments
  const start = first?.at ?? begin
  const all = chance.of(0.4)
  const one = (name: string, bound: boolean, at: number): Joining => ({
    sub: subscriptionOf(name, bound, all, at),
    at,
  })
  const soon = () => start + chance.between(0, 1000)
  const anyTime = () =>
    chance.of(0.5)
      ? story.last.at + chance.between(-2000, 5000)
      : chance.between(start, story.last.at + 5 * minute)
  switch (kind) {
    case 'bound':
    case 'polled':
      return [one('s1', true, soon())]
    case 'unbound':
      return [one('s1', false, begin)]
    case 'two':
      return [one('s1', true, soon()), one('s2', true, soon())]
    case 'two unbound':
      return [one('s1', false, begin), one('s2', false, begin)]
    case 'late':
      return [one('s1', true, soon()), one('s2', true, anyTime())]
    case 'late unbound':
      return [one('s1', true, soon()), one('s2', false, chance.of(0.5) ? begin : anyTime())]
  }
}

const news: TaskState[] = ['completed', 'failed', 'canceled', 'rejected', 'input-required', 'auth-required']

const subscriptionOf = (name: string, bound: boolean, all: boolean, at: number): Subscription => ({
  ref: name,
  ...{ hook: '', tenant: 't', id: name, agent: 'a', principal: 'agent', scope: 'task', generation: 1 },
  ...(bound && { taskId }),
  states: all ? [...taskStates] : news,
  client: `client of ${name}`,
  targets: [`target of ${name}`],
  status: 'active',
  registration: { status: 'handed_out' },
  asked: '',
  createdAt: at,
  expiresAt: at + 365 * 24 * hour,
})

/** Subscribes, again until it is answered. */
function enter(world: World, { sub, at }: Joining, act: Act): Subscriber {
  const { timeline } = world
  const subscriber: Subscriber = { sub, owed: false, since: at, taken: new Set() }
  let answered = false
  const ask = (): void => {
    if (answered) return
    act(
      limits.api,
      me => subscribe(world, me, sub),
      () => {
        answered = true
        subscriber.since = timeline.now()
        if (sub.taskId !== undefined) subscriber.owed = true
      },
    )
    timeline.at(timeline.now() + 31_000, ask)
  }
  timeline.at(at, ask)
  if (world.road === 'push') pushTo(world, subscriber, act)
  return subscriber
}

/** The agent tells a subscriber of every change from when it was asked to: once, seldom twice, seldom never. */
function pushTo(world: World, subscriber: Subscriber, act: Act): void {
  const { timeline, chance, happens, story, pushed } = world
  const { sub, taken } = subscriber
  const signed = chance.of(0.5)
  for (const moment of story.moments) {
    const push = pushOf(sub, moment, signed)
    const send = (): void =>
      act(
        limits.receive,
        me => receive(world, me, push),
        accepted => {
          if (!accepted) return
          taken.add(moment.n)
          subscriber.owed = true
        },
      )
    timeline.at(moment.at, () => {
      if (!pushed.has(sub.ref) || happens('unsent')) return
      const sent = moment.at + (chance.of(0.85) ? chance.between(1, 30) : chance.between(30, 600))
      timeline.at(sent, send)
      if (happens('resent')) timeline.at(sent + chance.between(0, 20), send)
    })
  }
}

/** Signed pushes differ from each other, unsigned ones only in what they say. */
const pushOf = (sub: Subscription, moment: Moment, signed: boolean): Push => ({
  key: `${sub.ref} ${signed ? moment.n : JSON.stringify(moment.task.raw)}`,
  sub: sub.ref,
  moment,
  memoryMs: signed ? 360_000 : 10_000,
})
