// Counts what AWS would bill: calls and units of the table, messages of the queues, by the door that made them. Decides and prints nothing.
import { type Call, isRecord, type WireOptions } from '../../../infra/local/wire.ts'

export type Count = {
  /** Calls by operation. */
  calls: Record<string, number>
  writeUnits: number
  readUnits: number
  /** Sends, begun 64 KB each; and messages sent to each queue. */
  sends: number
  sentTo: Record<string, number>
  /** Calls and units by operation and kind of item. */
  byKind: Record<string, { calls: number; units: number }>
}

export type Meter = {
  onCall: NonNullable<WireOptions['onCall']>
  /** What a door caused since the last reset; `ground` is whoever carries messages. */
  of: (who: string) => Count
  reset: () => void
}

const chunkBytes = 64 * 1024
const reads: ReadonlySet<string> = new Set(['GetItem', 'Query'])

const nothing = (): Count => ({ calls: {}, writeUnits: 0, readUnits: 0, sends: 0, sentTo: {}, byKind: {} })

export function createMeter(): Meter {
  const counts = new Map<string, Count>()
  const countOf = (who: string): Count => {
    const count = counts.get(who) ?? nothing()
    counts.set(who, count)
    return count
  }
  return {
    // What is counted from now on is the next load's.
    of: who => structuredClone(countOf(who)),
    reset: () => counts.clear(),
    onCall: ({ operation, who, body }, { units = 0 }) => {
      const count = countOf(who)
      count.calls[operation] = (count.calls[operation] ?? 0) + 1
      const kind = `${operation} ${kindOf(body)}`
      const so = count.byKind[kind] ?? { calls: 0, units: 0 }
      count.byKind[kind] = { calls: so.calls + 1, units: so.units + units }
      if (reads.has(operation)) count.readUnits += units
      else count.writeUnits += units
      if (operation !== 'SendMessage') return
      count.sends += Math.ceil(Buffer.byteLength(String(body.MessageBody)) / chunkBytes)
      const queue = String(body.QueueUrl).split('/').at(-1) ?? ''
      count.sentTo[queue] = (count.sentTo[queue] ?? 0) + 1
    },
  }
}

/** What a call is about, as the access paths name it: `K#`, `K# B`, `D# subscriptions/client`. */
function kindOf({ Key, Item, ExpressionAttributeValues: values, IndexName, QueueUrl }: Call['body']): string {
  if (QueueUrl !== undefined) return String(QueueUrl).split('/').at(-1) ?? ''
  if (IndexName !== undefined) return `index ${String(IndexName)}`
  const [pk, sk] = [textOf(Key ?? Item, 'pk') ?? textOf(values, ':pk') ?? '', textOf(Key ?? Item, 'sk') ?? '']
  const listing = pk.startsWith('D#') ? (pk.split('#')[2] ?? '').split('/').slice(0, 2).join('/') : ''
  const part = listing === '' ? (/^[A-Za-z]+/.exec(sk)?.[0] ?? '') : listing
  return `${pk.slice(0, 2)} ${part}`.trimEnd()
}

function textOf(item: unknown, name: string): string | undefined {
  const value = isRecord(item) ? item[name] : undefined
  return isRecord(value) ? String(value.S) : undefined
}
