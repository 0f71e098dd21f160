// Time that only events move: seeded chance, processes that may die or stall at every call, a queue that delivers at least once.
import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate } from 'node:timers/promises'

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
  /** Lets events happen, in order, up to a time, while they are wanted; each waits until the one before came to rest. */
  run: (until: number, wanted: () => boolean) => Promise<void>
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
    run: async (until, wanted) => {
      for (let event = pop(); event !== undefined && event.time <= until && wanted(); event = pop()) {
        now = event.time
        event.act()
        await rest()
      }
    },
  }
}

/** How likely each mishap is. */
export type Odds = {
  /** At each call: the process dies, before or after the call has its effect; or it sleeps for seconds. */
  kill: number
  stall: number
  /** A message is delivered twice; a write's or send's answer is lost, so that the SDK repeats it. */
  twice: number
  lostAnswer: number
  /** The table or a queue refuses a call, for good. */
  throttled: number
  /** A message lies in the queue for seconds. */
  lag: number
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

/** One run of a function, with the clock of its instance. */
export type Process = {
  skew: number
  /** When it is cut off, as Lambda does. */
  cutOff: number
  alive: boolean
  /** Calls that were not answered yet. */
  pending: number
  /** An onlooker: nothing befalls it, and its calls take no time. */
  immune: boolean
  /** It has stood still for seconds. */
  stalled?: boolean
  /** What the agent showed it last, to tell afterwards which revision shows what: no decision reads it. */
  shown?: number
}

const processes = new AsyncLocalStorage<Process>()

/** The process that runs now. */
export function self(): Process {
  const process = processes.getStore()
  if (process === undefined) throw new Error('This is for processes only')
  return process
}

let awake: Process | undefined

/** Waits until the process that was woken last ended or waits for a call: then nothing happens until time goes on. */
async function rest(): Promise<void> {
  if (awake?.alive && awake.pending > 0) await setImmediate()
  for (let turns = 0; awake?.alive && awake.pending === 0; turns++)
    await (turns < 200 ? undefined : setImmediate())
  awake = undefined
}

/** Whether a mishap comes now to whoever acts. */
export const befalls = (bed: Bed, process: Process, mishap: keyof Odds): boolean =>
  !process.immune && bed.happens(mishap)

const dies = (bed: Bed, process: Process): boolean => {
  if (process.alive && !process.immune && (bed.timeline.now() > process.cutOff || bed.happens('kill'))) {
    bed.note(() => 'a process dies')
    process.alive = false
  }
  return !process.alive
}

/** Runs a process; `end` is told of its result, and never called for one that died. */
export function spawn<T>(
  bed: Bed,
  at: { skew: number; limitMs: number; immune?: boolean },
  work: () => Promise<T>,
  end: (result: T) => void = () => {},
): void {
  const cutOff = bed.timeline.now() + at.limitMs
  const { skew, immune = false } = at
  const process: Process = { skew, cutOff, immune, alive: true, pending: 0 }
  awake = process
  const over = (act: () => void): void => {
    if (process.alive) act()
    process.alive = false
  }
  processes.run(process, work).then(
    result => over(() => end(result)),
    error => over(() => bed.note(() => `a process fails: ${error}`)),
  )
}

/**
 * A call of the running process: it arrives after some milliseconds, and is answered then. One whose process died
 * before never arrives, one whose process dies after has its effect all the same.
 * @param serve its effect and its answer
 */
export function call<T>(bed: Bed, serve: (process: Process) => T, ms?: number): Promise<T> {
  const process = self()
  if (process.immune) ms = 0
  const { timeline, chance, happens } = bed
  process.pending += 1
  return new Promise((resolve, reject) => {
    const slow = !process.immune && happens('stall') ? chance.between(1000, 28_000) : 0
    if (slow > 0) process.stalled = true
    timeline.at(timeline.now() + (ms ?? chance.between(1, 12)) + slow, () => {
      if (dies(bed, process)) return
      let answer: () => void
      try {
        const result = serve(process)
        answer = () => resolve(result)
      } catch (error) {
        answer = () => reject(error)
      }
      if (dies(bed, process)) return
      process.pending -= 1
      awake = process
      answer()
    })
  })
}

export type Queue = {
  /** Delays are whole seconds of at most 15 minutes. */
  send: (body: string, delayMs?: number) => void
  /** Messages sent so far. */
  sent: () => number
  /** Messages that were neither handled nor given up. */
  waiting: () => number
  /** Messages that were received too often. */
  dead: () => number
}

const visibilityMs = 180_000
/** Longest delay of a message. */
const longestDelayMs = 900_000

/** A standard SQS queue with a Lambda function behind it. */
export function createQueue(
  bed: Bed,
  { limitMs, mostReceives, skew }: { limitMs: number; mostReceives: number; skew: () => number },
  handle: (body: string, receives: number) => Promise<'done' | 'again'>,
): Queue {
  const { timeline, chance, happens } = bed
  let sent = 0
  let waiting = 0
  let dead = 0
  const receive = (body: string, receives: number): void => {
    bed.note(() => `received: ${body}`)
    let over = false
    const end = (how: 'done' | 'again'): void => {
      if (how !== 'done' || over) return
      over = true
      waiting -= 1
    }
    const start = () => spawn(bed, { skew: skew(), limitMs }, () => handle(body, receives), end)
    if (happens('twice')) timeline.at(timeline.now() + chance.between(0, 50), start)
    start()
    // Whoever died with it in hand never deletes it.
    timeline.at(timeline.now() + visibilityMs, () => {
      if (over) return
      over = true
      if (receives < mostReceives) return receive(body, receives + 1)
      waiting -= 1
      dead += 1
    })
  }
  const enqueue = (body: string, delayMs: number): void => {
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
