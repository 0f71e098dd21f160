// Counts what AWS would bill: calls and units of the table, messages of the queues, by the door that made them. Decides and prints nothing.
import type { WireOptions } from '../../../infra/local/wire.ts'

export type Count = {
  /** Calls by operation. */
  calls: Record<string, number>
  writeUnits: number
  readUnits: number
  /** Sends, begun 64 KB each; and messages sent to each queue. */
  sends: number
  sentTo: Record<string, number>
}

export type Meter = {
  onCall: NonNullable<WireOptions['onCall']>
  /** What a door caused since the last reset; `ground` is whoever carries messages. */
  of: (who: string) => Count
  reset: () => void
}

const chunkBytes = 64 * 1024
const reads: ReadonlySet<string> = new Set(['GetItem', 'Query'])

const nothing = (): Count => ({ calls: {}, writeUnits: 0, readUnits: 0, sends: 0, sentTo: {} })

export function createMeter(): Meter {
  const counts = new Map<string, Count>()
  const of = (who: string): Count => {
    const count = counts.get(who) ?? nothing()
    counts.set(who, count)
    return count
  }
  return {
    of,
    reset: () => counts.clear(),
    onCall: ({ operation, who, body }, { units = 0 }) => {
      const count = of(who)
      count.calls[operation] = (count.calls[operation] ?? 0) + 1
      if (reads.has(operation)) count.readUnits += units
      else count.writeUnits += units
      if (operation !== 'SendMessage') return
      count.sends += Math.ceil(Buffer.byteLength(String(body.MessageBody)) / chunkBytes)
      const queue = String(body.QueueUrl).split('/').at(-1) ?? ''
      count.sentTo[queue] = (count.sentTo[queue] ?? 0) + 1
    },
  }
}
