// Watches calls of a handler for what they leave behind: timers that still run, open sockets, and work that goes on, once it has answered.
import { AsyncLocalStorage, createHook } from 'node:async_hooks'
import { setImmediate } from 'node:timers/promises'

/** One call: the timers that it set and that neither fired nor were cleared, with where; its open sockets; steps of work after its answer. */
type Watched = {
  name: string
  answered: boolean
  timers: Map<number, string>
  sockets: Map<number, object>
  late: number
}

export type Rest = {
  /** Watches each call of a handler, under a name. */
  watch: <A extends unknown[], R>(
    name: string,
    handler: (...given: A) => Promise<R>,
  ) => (...given: A) => Promise<R>
  /** Calls that were answered, by name. */
  answered: (name: string) => number
  /** What calls left behind, a line each. @param pools origins to which a pool may keep its sockets open */
  left: (pools: readonly string[]) => Promise<string[]>
  stop: () => void
}

/** Where Node itself sets timers for the sockets that a pool keeps: they are the pool's, and hold nothing up. */
const ofSockets = /setStreamTimeout|Socket\.setTimeout/

/** Starts to watch. Only what begins inside a watched call counts, whatever else this process does. */
export function startRest(): Rest {
  const calls = new AsyncLocalStorage<Watched>()
  const all: Watched[] = []
  const owners = new Map<number, Watched>()
  const hook = createHook({
    init: (id, type, _trigger, resource) => {
      const call = calls.getStore()
      if (call === undefined || !/^(?:Timeout|Immediate|PROMISE|TCPWRAP)$/.test(type)) return
      owners.set(id, call)
      if (type === 'TCPWRAP') call.sockets.set(id, resource)
      if (type !== 'Timeout' && type !== 'Immediate') return
      const { stack = '' } = new Error(type)
      if (!ofSockets.test(stack)) call.timers.set(id, stack.split('\n').slice(2).join('\n'))
    },
    before: id => {
      const call = owners.get(id)
      // What happens on a socket of a pool is told to whoever opened it, though another may use it by then.
      if (call?.answered === true && !call.sockets.has(id)) call.late += 1
    },
    destroy: id => {
      const call = owners.get(id)
      call?.timers.delete(id)
      call?.sockets.delete(id)
      owners.delete(id)
    },
  }).enable()
  return {
    watch:
      (name, handler) =>
      (...given) => {
        const call: Watched = { name, answered: false, timers: new Map(), sockets: new Map(), late: 0 }
        all.push(call)
        return calls
          .run(call, () => handler(...given))
          .finally(() => {
            call.answered = true
          })
      },
    answered: name => all.filter(call => call.name === name && call.answered).length,
    left: async pools => {
      // Node tells of what was cleared a turn later.
      await setImmediate()
      await setImmediate()
      const kept = new Set(pools.map(origin => Number(new URL(origin).port)))
      return all.flatMap(({ name, timers, sockets, late }) => [
        ...[...timers.values()].map(stack => `${name}: a timer, set\n${stack}`),
        ...[...sockets.values()]
          .map(peerOf)
          .filter(port => !kept.has(port))
          .map(port => `${name}: a socket, to port ${port}`),
        ...(late > 0 ? [`${name}: ${late} steps of work after its answer`] : []),
      ])
    },
    stop: () => hook.disable(),
  }
}

/** The port at the other end of a socket; 0 when there is none. A pool hands a socket on in a wrapping of its own. */
function peerOf(socket: object): number {
  const handle = Object('handle' in socket ? socket.handle : socket)
  const peer = { port: 0 }
  if (typeof handle.getpeername === 'function') handle.getpeername(peer)
  return peer.port
}
