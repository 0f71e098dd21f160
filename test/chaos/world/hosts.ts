// Keeps the processes that run the doors: deals invocations to them as Lambda does to its instances, tells them the time, and kills them.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { DoorName } from '../../../infra/topology.ts'

/** What a process is told. */
export type Order =
  | { kind: 'call'; n: number; door: DoorName; event: unknown }
  | { kind: 'clock'; offset: number }
  /** It is to end as soon as it logs this step. */
  | { kind: 'die'; step: string }

/** What a process says. */
export type Word = { ready: true } | { n: number; answer: unknown } | { n: number; error: string }

export type Hosts = {
  /** Invokes a door somewhere. @throws Error when it threw, or its process was killed */
  call: (door: DoorName, event: unknown) => Promise<unknown>
  /** Tells all processes how far the clock is bent, in milliseconds. */
  bend: (offset: number) => void
  /** Ends the process of this id by SIGKILL. False if it is gone already. */
  kill: (id: string) => boolean
  /** Lets the process that is dealt to next end at a step of its log. */
  doom: (step: string) => void
  /** Lets no new invocation begin, and resolves once none is under way. */
  hold: () => Promise<void>
  /** Lets invocations begin again. */
  release: () => void
  /** Ids of the processes that are at work. */
  busy: () => string[]
  /** Processes that were killed so far. */
  kills: () => number
  /** Called whenever an invocation failed or reported records that shall come again. */
  onStumble: (told: (door: DoorName) => void) => void
  stop: () => Promise<void>
}

type Waiting = { resolve: (answer: unknown) => void; reject: (error: Error) => void }
type Host = {
  id: string
  child: ChildProcess
  calls: Map<number, Waiting>
  ready: Promise<unknown>
  /** How far its own clock is off, in ms. */
  skew: number
}

export type HostOptions = {
  /** Processes that share the work. */
  count: number
  /** Settings of the doors. */
  env: Record<string, string>
  /** The program that each process runs. */
  program: string
  /** How much faster a target that never answers is given up, which takes long beside a bent clock. */
  haste: number
  /** Draws how far a clock is off, at the start of its process and whenever it is set anew, in ms. */
  skew: () => number
}

/** Batches of one queue that a process has in hand at once: more would only wait for each other. */
const batchesAtOnce = 3
/** Each clock is set anew once in so many times that all are bent. */
const stepEvery = 10

export async function startHosts({ count, env, program, haste, skew }: HostOptions): Promise<Hosts> {
  let made = 0
  let calls = 0
  let kills = 0
  let offset = 0
  let bends = 0
  let ending = false
  let gate: { opened: Promise<void>; open: () => void } | undefined
  let stumbled: (door: DoorName) => void = () => {}
  let quiet = () => {}
  const hosts: Host[] = []
  const lanes = new Map<DoorName, { running: number; waiting: (() => void)[] }>()

  const tell = (host: Host, order: Order): void => {
    if (host.child.connected) host.child.send(order, () => {})
  }
  const setClock = (host: Host): void => tell(host, { kind: 'clock', offset: offset + host.skew })
  const start = (): Host => {
    const id = `h${++made}`
    const child = fork(program, [id, JSON.stringify(env), String(haste)])
    const ready = once(child, 'message')
    const host: Host = { id, child, calls: new Map(), ready, skew: skew() }
    host.ready.catch(() => {})
    child.on('error', () => {})
    child.on('message', (word: Word) => settle(host, word))
    child.once('exit', () => bury(host))
    setClock(host)
    return host
  }
  const settle = (host: Host, word: Word): void => {
    if ('ready' in word) return
    const waiting = host.calls.get(word.n)
    host.calls.delete(word.n)
    if ('error' in word) waiting?.reject(new Error(word.error))
    else waiting?.resolve(word.answer)
    calm()
  }
  const bury = (host: Host): void => {
    for (const { reject } of host.calls.values()) reject(new Error('The process was killed'))
    host.calls.clear()
    const at = hosts.indexOf(host)
    if (at >= 0 && !ending) {
      // Whoever waits for its turn finds the spare, which has loaded everything already.
      hosts[at] = spare
      spare = start()
    }
    calm()
  }
  const underWay = (): number => hosts.reduce((sum, host) => sum + host.calls.size, 0)
  const calm = (): void => {
    if (underWay() === 0) quiet()
  }
  for (let at = 0; at < count; at++) hosts.push(start())
  let spare = start()
  await Promise.all(hosts.map(({ ready }) => ready))

  const invoke = async (door: DoorName, event: unknown): Promise<unknown> => {
    while (gate !== undefined) await gate.opened
    const n = ++calls
    const host = hosts[n % hosts.length]
    if (host === undefined) throw new Error('No process runs')
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    host.calls.set(n, { resolve, reject })
    tell(host, { kind: 'call', n, door, event })
    return promise
  }
  const inLane = async <T>(door: DoorName, work: () => Promise<T>): Promise<T> => {
    const lane = lanes.get(door) ?? { running: 0, waiting: [] }
    lanes.set(door, lane)
    while (lane.running >= batchesAtOnce * count)
      await new Promise<void>(resolve => lane.waiting.push(resolve))
    lane.running += 1
    try {
      return await work()
    } finally {
      lane.running -= 1
      lane.waiting.shift()?.()
    }
  }
  return {
    call: async (door, event) => {
      const queued = door === 'look' || door === 'deliver'
      try {
        const answer = await (queued ? inLane(door, () => invoke(door, event)) : invoke(door, event))
        if (isPartial(answer)) stumbled(door)
        return answer
      } catch (error) {
        stumbled(door)
        throw error
      }
    },
    bend: bent => {
      offset = bent
      // One of them is set anew now and then, and may step back.
      const stepped = hosts[bends++ % (stepEvery * hosts.length)]
      if (stepped !== undefined) stepped.skew = skew()
      for (const host of [...hosts, spare]) setClock(host)
    },
    kill: id => {
      const host = hosts.find(one => one.id === id)
      if (host === undefined || host.child.killed || !host.child.kill('SIGKILL')) return false
      kills += 1
      return true
    },
    doom: step => {
      const host = hosts[(calls + 1) % hosts.length]
      if (host === undefined) return
      tell(host, { kind: 'die', step })
      host.child.once('exit', () => {
        kills += 1
      })
    },
    hold: async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      gate ??= { opened: promise, open: resolve }
      if (underWay() === 0) return
      await new Promise<void>(settled => {
        quiet = settled
      })
    },
    release: () => {
      gate?.open()
      gate = undefined
    },
    busy: () => hosts.filter(host => host.calls.size > 0).map(({ id }) => id),
    kills: () => kills,
    onStumble: told => {
      stumbled = told
    },
    stop: async () => {
      ending = true
      const all = [...hosts, spare]
      await Promise.all(
        all.map(async ({ child }) => {
          if (child.exitCode !== null || child.signalCode !== null) return
          const gone = once(child, 'exit')
          child.kill('SIGKILL')
          await gone
        }),
      )
    },
  }
}

const isPartial = (answer: unknown): boolean =>
  typeof answer === 'object' &&
  answer !== null &&
  'batchItemFailures' in answer &&
  Array.isArray(answer.batchItemFailures) &&
  answer.batchItemFailures.length > 0
