// Time that only events move, for models: seeded chance, processes that may die or stall at every step, a queue that delivers at least once.

/** Chance from a seed (mulberry32): the same seed tells the same story on every machine. */
export type Chance = {
  /** True with this probability. */
  of: (share: number) => boolean
  between: (from: number, to: number) => number
  pick: <T>(...from: [T, ...T[]]) => T
}

function createChance(seed: number): Chance {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    of: share => next() < share,
    between: (from, to) => from + (to - from) * next(),
    pick: (...from) => from[Math.floor(next() * from.length)] ?? from[0],
  }
}

type Event = { time: number; order: number; act: () => void }

export type Timeline = {
  now: () => number
  at: (time: number, act: () => void) => void
  /** Lets events happen, in order, up to a time, while they are wanted. */
  run: (until: number, wanted: () => boolean) => void
}

/** A timeline that starts at `now`; its events stand in a binary heap. */
function createTimeline(now: number): Timeline {
  const heap: Event[] = []
  let count = 0
  const isBefore = (a: Event, b: Event) => a.time < b.time || (a.time === b.time && a.order < b.order)
  const push = (event: Event): void => {
    let place = heap.length
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = heap[above]
      if (parent === undefined || !isBefore(event, parent)) break
      heap[place] = parent
      place = above
    }
    heap[place] = event
  }
  const pop = (): Event | undefined => {
    const [first] = heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return last
    let place = 0
    for (;;) {
      const left = heap[2 * place + 1]
      const right = heap[2 * place + 2]
      const child = right !== undefined && left !== undefined && isBefore(right, left) ? right : left
      if (child === undefined || !isBefore(child, last)) break
      heap[place] = child
      place = 2 * place + (child === right ? 2 : 1)
    }
    heap[place] = last
    return first
  }
  return {
    now: () => now,
    at: (time, act) => push({ time: Math.max(time, now), order: count++, act }),
    run: (until, wanted) => {
      for (let event = pop(); event !== undefined && event.time <= until && wanted(); event = pop()) {
        now = event.time
        event.act()
      }
    },
  }
}

/** What one process does: it yields at every await, for some milliseconds or for as long as a call usually takes. */
export type Work<T> = Generator<number | undefined, T, undefined>

/** How likely each mishap is. */
export type Odds = {
  /** At each await: the process dies; or it sleeps for seconds. */
  kill: number
  stall: number
  /** A message is delivered twice; a write's or send's answer is lost, so that the SDK repeats it. */
  twice: number
  lostAnswer: number
  /** A message lies in the queue for seconds. */
  lag: number
  /** A queue refuses a push. */
  refused: number
  /** The agent does not answer; takes seconds; answers from a replica; never sends a push; sends it again. */
  outage: number
  slow: number
  replica: number
  unsent: number
  resent: number
  /** A webhook answers 503. */
  unheard: number
}

/** What processes and queues stand on. */
export type Bed = {
  timeline: Timeline
  chance: Chance
  /** Whether a mishap comes now; none does but in a storm. */
  happens: (mishap: keyof Odds) => boolean
  /** Makes it stormy until a time. */
  storm: (until: number) => void
  /** Takes what happens, to be told afterwards. */
  note: (what: () => string) => void
}

export type Note = (time: number, what: string) => void

export function createBed(seed: number, odds: Odds, start: number, note?: Note): Bed {
  const timeline = createTimeline(start)
  const chance = createChance(seed)
  let stormy = start
  return {
    timeline,
    chance,
    happens: mishap => timeline.now() < stormy && chance.of(odds[mishap]),
    storm: until => {
      stormy = Math.max(stormy, until)
    },
    note: what => note?.(timeline.now(), what()),
  }
}

/**
 * Runs a process.
 * @param limitMs after this it is cut off, as Lambda does
 * @param end told of its result; never called for one that died
 */
export function spawn<T>(
  { timeline, chance, happens, note }: Bed,
  work: Work<T>,
  limitMs: number,
  end: (result: T) => void = () => {},
): void {
  const cutOff = timeline.now() + limitMs
  const step = (): void => {
    if (timeline.now() > cutOff || happens('kill')) {
      note(() => 'a process dies')
      return
    }
    const result = work.next()
    if (result.done) {
      end(result.value)
      return
    }
    const slow = happens('stall') ? chance.between(1000, 28_000) : 0
    timeline.at(timeline.now() + (result.value ?? chance.between(1, 12)) + slow, step)
  }
  step()
}

export type Queue<Body> = {
  /** Delays are whole seconds of at most 15 minutes. */
  send: (body: Body, delayMs?: number) => void
  /** Messages sent so far. */
  sent: () => number
  /** Messages that were neither handled nor given up. */
  waiting: () => number
  /** Messages that were received too often. */
  dead: () => number
}

const visibilityMs = 180_000
const mostReceives = 10
/** Longest delay of a message. */
export const longestDelayMs = 900_000

/** A standard SQS queue with a Lambda function behind it. */
export function createQueue<Body>(
  bed: Bed,
  limitMs: number,
  handle: (body: Body) => Work<'done' | 'again'>,
): Queue<Body> {
  const { timeline, chance, happens } = bed
  let sent = 0
  let waiting = 0
  let dead = 0
  const receive = (body: Body, receives: number): void => {
    bed.note(() => `received: ${JSON.stringify(body)}`)
    let over = false
    const end = (how: 'done' | 'again'): void => {
      if (how !== 'done' || over) return
      over = true
      waiting -= 1
    }
    if (happens('twice'))
      timeline.at(timeline.now() + chance.between(0, 50), () => spawn(bed, handle(body), limitMs, end))
    spawn(bed, handle(body), limitMs, end)
    // Whoever died with it in hand never deletes it.
    timeline.at(timeline.now() + visibilityMs, () => {
      if (over) return
      over = true
      if (receives < mostReceives) return receive(body, receives + 1)
      waiting -= 1
      dead += 1
    })
  }
  const enqueue = (body: Body, delayMs: number): void => {
    sent += 1
    waiting += 1
    const whole = Math.ceil(Math.min(Math.max(delayMs, 0), longestDelayMs) / 1000) * 1000
    const lag = happens('lag') ? chance.between(100, 6000) : chance.between(1, 30)
    timeline.at(timeline.now() + whole + lag, () => receive(body, 1))
  }
  return {
    send: (body, delayMs = 0) => {
      enqueue(body, delayMs)
      if (happens('lostAnswer')) enqueue(body, delayMs)
    },
    sent: () => sent,
    waiting: () => waiting,
    dead: () => dead,
  }
}
