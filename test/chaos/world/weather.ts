// Decides what goes wrong between the doors and AWS: throttling, answers that are lost, kills before and after an effect, messages that come twice or late.
import type { SQSEvent } from 'aws-lambda'
import type { Call, Fault } from '../../../infra/local/wire.ts'
import type { Random } from './random.ts'

/** How bad it is; all shares are of calls or messages. */
export type Weather = {
  /** Refused by table or queue. */
  throttled: number
  /** Taken, but the answer is lost. */
  unheard: number
  /** Calls of doors between two kills, on average; 0 for none. */
  callsPerKill: number
  /** Messages that are brought twice. */
  doubled: number
  /** Messages that are not brought now, but after their visibility time-out. */
  delayed: number
}

export const calm: Weather = { throttled: 0, unheard: 0, callsPerKill: 0, doubled: 0, delayed: 0 }

/** Whoever may be killed. */
export type Victims = {
  kill: (host: string) => boolean
  /** Lets a process end at this step of its log. */
  doom: (step: string) => void
  busy: () => string[]
}

export type Sky = {
  /** Decides on a call of a door. */
  faults: (call: Call) => Fault | undefined | Promise<Fault | undefined>
  /** Some messages are kept back from a batch, some are brought a second time later: how many ms later, in the bent clock. */
  shuffle: (event: SQSEvent) => { now: SQSEvent; late: string[]; again: SQSEvent['Records'] }
  /** Something else of note happens: an agent or a target is called. A kill may come right then. */
  strike: () => void
  set: (weather: Weather) => void
  weather: () => Weather
  counts: { throttled: number; unheard: number; doubled: number; delayed: number }
}

type Options = {
  victims: () => Victims
  /** Kills come at this step of the log instead of at any call. */
  step?: string | undefined
  /** Bends a call, or answers for the service: the proxy that breaks a rule. */
  meddle?: ((call: Call) => Fault | undefined | Promise<Fault | undefined>) | undefined
}

/** `look.h3`: a door in a process. Everything else is the ground's own. */
const hostOf = ({ who }: Call): string | undefined => /^\w+\.(h\d+)$/.exec(who)?.[1]

export function createSky(random: Random, { victims, step, meddle }: Options): Sky {
  let weather = calm
  let untilKill = Number.POSITIVE_INFINITY
  const counts = { throttled: 0, unheard: 0, doubled: 0, delayed: 0 }
  const draw = (): void => {
    const { callsPerKill } = weather
    untilKill =
      callsPerKill === 0
        ? Number.POSITIVE_INFINITY
        : random.int(Math.ceil(callsPerKill / 2), Math.ceil(callsPerKill * 1.5))
  }
  const kill = (host: string): Fault | undefined => {
    draw()
    if (step !== undefined) {
      victims().doom(step)
      return undefined
    }
    const before = random.chance(0.5)
    victims().kill(host)
    return before ? 'throttle' : 'fail_after'
  }
  return {
    faults: async call => {
      const host = hostOf(call)
      if (host === undefined) return undefined
      const meddled = await meddle?.(call)
      if (meddled !== undefined) return meddled
      untilKill -= 1
      if (untilKill <= 0) return kill(host)
      if (random.chance(weather.throttled)) {
        counts.throttled += 1
        return 'throttle'
      }
      if (random.chance(weather.unheard)) {
        counts.unheard += 1
        return 'fail_after'
      }
      return undefined
    },
    shuffle: event => {
      const late = event.Records.filter(() => random.chance(weather.delayed))
      const again = event.Records.filter(() => random.chance(weather.doubled))
      counts.delayed += late.length
      counts.doubled += again.length
      const Records = event.Records.filter(record => !late.includes(record))
      return { now: { Records }, late: late.map(({ messageId }) => messageId), again }
    },
    strike: () => {
      if (weather.callsPerKill === 0) return
      untilKill -= 1
      const [host] = untilKill <= 0 ? victims().busy() : []
      if (host !== undefined) kill(host)
    },
    set: next => {
      weather = next
      draw()
    },
    weather: () => weather,
    counts,
  }
}
