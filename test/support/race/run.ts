// Runs the doors once: a story, its subscribers and all mishaps from one seed, to the end. Judges nothing.
import type { LambdaFunctionURLEvent, SQSEvent } from 'aws-lambda'
import type { HttpHandler, QueueHandler, ScheduleHandler } from '../../../functions/lambda.ts'
import { isTerminal, type TaskState, taskStates } from '../../../shared/a2a/task.ts'
import type { Relay } from '../../../shared/relay.ts'
import { gather, nobody, taskOfCrowd } from './crowd.ts'
import { type Moment, type Pace, taskId, tellStory } from './story.ts'
import { createTable } from './table.ts'
import { createBed, createQueue, type Note, type Odds, spawn } from './timeline.ts'
import { clientOf, type Stage, targetOf, tenant, type World } from './world.ts'

/** Mishaps as they may come all at once. */
export const rough: Odds = {
  kill: 0.02,
  stall: 0.002,
  twice: 0.03,
  lostAnswer: 0.01,
  throttled: 0.005,
  lag: 0.05,
  outage: 0.03,
  slow: 0.1,
  replica: 0.1,
  unsent: 0.03,
  resent: 0.1,
  unheard: 0.05,
}

/** Nothing goes wrong that AWS and agents do not do every day. */
export const mild: Odds = {
  ...{ kill: 0, stall: 0, lostAnswer: 0, throttled: 0, outage: 0, replica: 0, unsent: 0, unheard: 0 },
  ...{ twice: 0.03, lag: 0.05, resent: 0.1, slow: 0.1 },
}

export type Options = {
  odds: Odds
  kind?: Kind | undefined
  pace?: Pace | undefined
  replicaMs?: number | undefined
  /** How often a message is received before it is given up. */
  mostReceives?: number
  note?: Note | undefined
}

/** Who waits for the task. */
const kinds = ['bound', 'unbound', 'two', 'two unbound', 'late', 'late unbound', 'polled'] as const
export type Kind = (typeof kinds)[number] | 'crowd'

/** Share of the runs with a crowd: each takes as long as five others. */
const crowded = 0.05

/** Whom to wake, from when on. Without a task it is bound by its first push. */
type Joining = { name: string; bound: boolean; states: TaskState[]; at: number }

/** What is known of a subscriber once the run is over. */
export type Subscriber = Joining & {
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
export async function run(seed: number, stage: Stage, options: Options): Promise<Run> {
  const bed = createBed(seed, options.odds, begin, options.note)
  const { timeline, chance, storm } = bed
  const story = tellStory(chance, begin + chance.between(0, minute), options.pace ?? 'mixed')
  const kind = options.kind ?? (chance.of(crowded) ? 'crowd' : chance.pick(...kinds))
  const skew = () => Math.round(chance.between(-skewMs, skewMs))
  const { code, relay } = stage
  const { mostReceives = 10 } = options
  const consume = (door: (relay: Relay) => QueueHandler) => {
    // As on Lambda: who is done handles another message with what he remembers; who died takes it along.
    const idle: Relay[] = []
    return async (body: string, receives: number) => {
      const instance = idle.pop() ?? { ...relay, permits: new Map() }
      const { batchItemFailures } = await door(instance)(recordOf(body, receives))
      idle.push(instance)
      return batchItemFailures.length > 0 ? 'again' : 'done'
    }
  }
  let onWrite: Parameters<typeof createTable>[0] = () => {}
  const world: World = {
    ...bed,
    ...{ code, relay, story, road: kind === 'polled' ? 'poll' : 'push' },
    crowd: kind === 'crowd' ? gather(chance, story.last.at) : nobody(),
    replicaMs: options.replicaMs ?? 1500,
    table: createTable((next, before) => onWrite(next, before)),
    queues: {
      look: createQueue(bed, { limitMs: limits.look, mostReceives, skew }, consume(code.look.door)),
      deliver: createQueue(bed, { limitMs: limits.deliver, mostReceives, skew }, consume(code.deliver.door)),
    },
    ...{ configs: new Map(), hints: [], shows: new Map(), counts: { looks: 0, ticks: 0 } },
    onHint: (hint, heard) => takeHint(world, hint, heard),
  }
  const onTimer = tickWhen(world, code.tick.door(relay), skew)
  onWrite = ({ pk, sk, slot, due, rev, state, taskId: of }, before) => {
    if (due?.N !== undefined && slot?.S?.startsWith('d#')) onTimer(Number(due.N))
    const shown = world.actor?.shown
    const isMain = pk?.S?.startsWith('K#') && sk?.S === '.' && of?.S === taskId
    if (isMain && rev?.N !== before?.rev?.N && shown !== undefined)
      world.shows.set(`${rev?.N} ${state?.S}`, shown)
  }
  stage.enter(world)
  const receive = code.receive.door(relay)
  const act: Act = (limitMs, work, end) => spawn(world, { skew: skew(), limitMs }, work, end)
  const subscribers = cast(world, kind).map(joining => enter(world, joining, receive, act))
  accompany(world, receive, act)
  const spell = chance.between(0, 400_000)
  for (const { at } of [...story.moments, ...subscribers]) timeline.at(at, () => storm(at + spell))
  // What goes on for ever shows soon what it will ever show.
  const goesOn = !isTerminal(story.last.state)
  const last = story.last.at + (goesOn ? (kind === 'polled' ? 0.2 : 3) : 6) * hour
  // Between two ticks: a look that one of them has just begun would count as left over.
  const end = Math.ceil(last / minute) * minute + minute / 2
  await timeline.run(end, () => world.queues.look.sent() <= mostLooks)
  return { world, subscribers, end, kind }
}

/** One message as Lambda hands it over. */
const recordOf = (body: string, receives: number): SQSEvent => ({
  Records: [
    {
      ...{ messageId: 'm', receiptHandle: 'r', body, messageAttributes: {}, md5OfBody: '' },
      ...{ eventSource: 'aws:sqs', eventSourceARN: '', awsRegion: 'us-east-1' },
      attributes: {
        ApproximateReceiveCount: String(receives),
        ...{ SentTimestamp: '0', SenderId: '', ApproximateFirstReceiveTimestamp: '0' },
      },
    },
  ],
})

/** Ticks at whole minutes, but only where a timer may be due: a tick that finds nothing changes nothing. */
function tickWhen(world: World, handler: ScheduleHandler, skew: () => number): (due: number) => void {
  const { timeline } = world
  let next = Number.POSITIVE_INFINITY
  const onTimer = (due: number): void => {
    if (!Number.isFinite(due)) return
    const time = Math.max(Math.ceil(due / minute), Math.floor(timeline.now() / minute) + 1) * minute
    if (time >= next) return
    next = time
    timeline.at(time, () => {
      if (next !== time) return
      next = Number.POSITIVE_INFINITY
      world.counts.ticks += 1
      spawn(world, { skew: skew(), limitMs: limits.tick }, () => handler({}))
      onTimer(world.table.nextDue())
    })
  }
  return onTimer
}

type Act = <T>(limitMs: number, work: () => Promise<T>, end?: (result: T) => void) => void

/** The subscribers of a run, and when each joins. */
function cast({ chance, story }: World, kind: Kind): Joining[] {
  const [first] = story.moments
  const start = first?.at ?? begin
  const states: TaskState[] = chance.of(0.4) ? [...taskStates] : news
  const one = (name: string, bound: boolean, at: number): Joining => ({ name, bound, states, at })
  const soon = () => start + chance.between(0, 1000)
  const anyTime = () =>
    chance.of(0.5)
      ? story.last.at + chance.between(-2000, 5000)
      : chance.between(start, story.last.at + 5 * minute)
  switch (kind) {
    case 'bound':
    case 'polled':
    case 'crowd':
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

/** Subscribes, again until it is answered. */
function enter(world: World, joining: Joining, receive: HttpHandler, act: Act): Subscriber {
  const { timeline, code, relay, configs } = world
  const { name, bound, states, at } = joining
  const subscriber: Subscriber = { ...joining, owed: false, since: at, taken: new Set() }
  const asked = code.subscribing.SubscriptionRequest.parse({
    ...{ agent: 'a', states, client: clientOf(name), targets: [targetOf(name)], ttlSeconds: 365 * 24 * 3600 },
    ...(bound && { taskId }),
  })
  let answered = false
  const ask = (): void => {
    if (answered) return
    act(
      limits.api,
      () => code.subscribing.subscribe(relay, tenant, name, asked),
      ({ pushNotificationConfig }) => {
        answered = true
        subscriber.since = timeline.now()
        // Who starts a task gives the agent the push config with its first message.
        if (bound) subscriber.owed = true
        else configs.set(name, pushNotificationConfig)
      },
    )
    timeline.at(timeline.now() + 31_000, ask)
  }
  timeline.at(at, ask)
  if (world.road === 'push') pushTo(world, subscriber, receive, act)
  return subscriber
}

/** The agent tells a subscriber of every change from when it was asked to: once, seldom twice, seldom never. */
function pushTo(world: World, subscriber: Subscriber, receive: HttpHandler, act: Act): void {
  const { timeline, chance, happens, story, configs } = world
  const { name, taken } = subscriber
  for (const moment of story.moments) {
    const send = (config: Record<string, unknown>): void =>
      act(
        limits.receive,
        () => receive(pushOf(config, moment)),
        ({ statusCode }) => {
          if (statusCode >= 300) return
          taken.add(moment.n)
          subscriber.owed = true
        },
      )
    timeline.at(moment.at, () => {
      const config = configs.get(name)
      if (config === undefined || happens('unsent')) return
      const sent = moment.at + (chance.of(0.85) ? chance.between(1, 30) : chance.between(30, 600))
      timeline.at(sent, () => send(config))
      if (happens('resent')) timeline.at(sent + chance.between(0, 20), () => send(config))
    })
  }
}

/** Subscribes to each task of the crowd, whose ends the agent tells at once. */
function accompany(world: World, receive: HttpHandler, act: Act): void {
  const { timeline, code, relay, configs, crowd, story } = world
  for (const [id, end] of crowd.ends) {
    const asked = code.subscribing.SubscriptionRequest.parse({
      ...{ agent: 'a', taskId: id, client: clientOf('crowd'), targets: [targetOf('crowd')] },
      ttlSeconds: 365 * 24 * 3600,
    })
    const ask = (): void => {
      if (crowd.owed.has(id)) return
      act(
        limits.api,
        () => code.subscribing.subscribe(relay, tenant, id, asked),
        () => crowd.owed.set(id, timeline.now()),
      )
      timeline.at(timeline.now() + 31_000, ask)
    }
    timeline.at(story.moments[0]?.at ?? begin, ask)
    timeline.at(end, () => {
      const config = configs.get(id)
      const raw = taskOfCrowd(crowd, id, end)
      if (config !== undefined && raw !== undefined)
        act(
          limits.receive,
          () => receive(pushOf(config, { raw })),
          ({ statusCode }) => void (statusCode < 300 && crowd.taken.add(id)),
        )
    })
  }
}

/** Only what this door reads of the event. */
const pushOf = (
  { url, token }: Record<string, unknown>,
  { raw }: Pick<Moment, 'raw'>,
): LambdaFunctionURLEvent => {
  const path = new URL(String(url)).pathname
  const http = { method: 'POST', path, protocol: 'HTTP/1.1', sourceIp: '192.0.2.1', userAgent: '' }
  const context = { accountId: '', apiId: '', domainName: '', domainPrefix: '', requestId: '', routeKey: '' }
  return {
    ...{ version: '2.0', routeKey: '$default', rawPath: path, rawQueryString: '', isBase64Encoded: false },
    headers: { 'content-type': 'application/json', 'x-a2a-notification-token': String(token) },
    requestContext: { ...context, http, stage: '', time: '', timeEpoch: 0 },
    body: JSON.stringify({ task: raw }),
  }
}

/** A hint came in; whoever got it reads its inbox at once. */
function takeHint(world: World, hint: Record<string, unknown>, heard: boolean): void {
  const { timeline, code, relay, hints, shows } = world
  const data = typeof hint.data === 'object' ? { ...hint.data } : {}
  const { target, rev, state }: Record<string, unknown> = data
  const taken = {
    ...{ id: String(hint.id), target: String(target), rev: Number(rev), at: timeline.now(), heard },
    ...{ shows: shows.get(`${rev} ${state}`) ?? -1, found: false },
  }
  hints.push(taken)
  world.note(() => `hint ${JSON.stringify(taken)}`)
  const client = taken.target.replace('target', 'client')
  const read = async () => {
    const ask = { after: 0, limit: 1000, now: timeline.now() }
    const { entries } = await code.inbox.readInbox(relay.table, tenant, client, ask)
    taken.found = entries.some(entry => entry.rev === rev)
  }
  timeline.at(timeline.now(), () => spawn(world, { skew: 0, limitMs: minute, immune: true }, read))
}
