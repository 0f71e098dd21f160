// Turns what a load caused into USD per million notices, part by part. Pure.
import { type DoorName, doors } from '../../../infra/topology.ts'
import { type Load, type Spent, shards } from './loads.ts'
import { assumed, logLineBytes, prices } from './prices.ts'

/**
 * USD per million notices by part; the total with full batches, and with a batch for each message. `kept`: the
 * storage until everything has expired, over more than a year, in no total.
 */
export type Bill = { parts: Record<string, number>; busy: number; idle: number; kept: number }

/**
 * The longest way of one record of a batch, which the others of its batch wait for: calls in a row (ARCHITECTURE,
 * access paths), and the call to the outside.
 */
const longest = {
  look: 13 * assumed.tableMs + assumed.queueMs + assumed.agentMs,
  deliver: 6 * assumed.tableMs + assumed.targetMs,
} as const

/** @param only the doors to bill; all unless given */
export function billOf(load: Load, only?: readonly DoorName[]): Bill {
  const spent = Object.values(load.spent).filter(({ door }) => only?.includes(door) ?? true)
  const per = (sum: number): number => sum / load.notices
  const total = (of: (spent: Spent) => number): number => per(spent.reduce((sum, one) => sum + of(one), 0))
  const logged = total(({ logBytes, logLines }) => logBytes + logLines * logLineBytes)
  const fixed = {
    'table writes': total(({ writeUnits }) => writeUnits) * prices.writeUnits,
    'table reads': total(readsOf) * prices.readUnits,
    'queue sends': total(({ sends }) => sends) * (prices.queueRequests + prices.fairSends),
    logs: (logged / 1000) * prices.logGigabyte,
  }
  const kept = (per(load.byteMonths) / 1000) * prices.gigabyteMonth
  const moving = (batch: number): Record<string, number> => ({
    ...Object.fromEntries(
      spent
        .filter(({ door }) => door !== 'tick')
        .map(one => [`${one.door} function`, functionOf(load, one, batch)]),
    ),
    'queue receives, deletes':
      per(only === undefined ? messagesTo(load, 'look') + messagesTo(load, 'deliver') : 0) *
      (2 / batch) *
      prices.queueRequests,
  })
  const parts = { ...moving(assumed.busyBatch), ...fixed }
  const idle = { ...moving(assumed.idleBatch), ...fixed }
  return { parts, busy: sumOf(parts), idle: sumOf(idle), kept }
}

const sumOf = (parts: Record<string, number>): number =>
  Object.values(parts).reduce((sum, one) => sum + one, 0)

/** What a tick reads of empty shards belongs to no notice. */
const readsOf = ({ door, readUnits, invocations }: Spent): number =>
  door === 'tick' ? Math.max(0, readUnits - invocations * shards * 0.5) : readUnits

const messagesTo = ({ spent }: Load, queue: string): number =>
  Object.values(spent).reduce((sum, { sentTo }) => sum + (sentTo[queue] ?? 0), 0)

/** A function's calls and its time: what the processor needs, and what it waits for. */
function functionOf(load: Load, spent: Spent, batch: number): number {
  const { door, cpuMs } = spent
  if (door === 'look' || door === 'deliver') {
    const messages = messagesTo(load, door)
    const outside = door === 'look' ? load.looks * assumed.agentMs : load.webhooks * assumed.targetMs
    const waits = batch > 1 ? longest[door] : over(waitsOf(spent) + outside, messages)
    return (messages / load.notices) * (1 / batch) * usdOf(door, batch * over(cpuMs, messages), waits)
  }
  const { invocations } = spent
  return (
    (invocations / load.notices) * usdOf(door, over(cpuMs, invocations), over(waitsOf(spent), invocations))
  )
}

const over = (sum: number, count: number): number => (count === 0 ? 0 : sum / count)

const waitsOf = ({ calls, sends }: Spent): number => {
  const all = Object.values(calls).reduce((sum, one) => sum + one, 0)
  return (all - sends) * assumed.tableMs + sends * assumed.queueMs
}

/** USD for a million calls, each with so much work for a whole processor and so long a wait. */
function usdOf(door: DoorName, cpuMs: number, waitMs: number): number {
  const { memoryMegabytes } = doors[door]
  const share = Math.min(1, memoryMegabytes / assumed.wholeProcessorMegabytes)
  const ms = Math.ceil((cpuMs * assumed.slower) / share + waitMs)
  return prices.functionCalls + (ms / 1000) * (memoryMegabytes / 1024) * prices.gigabyteSecond * 1e6
}

/** USD a day for a million tasks that say nothing, from what some of them cost in a day. */
export const billOfSilence = (load: Load): Bill => billOf(load, ['look', 'deliver', 'tick'])

/** USD a day for a deployment to which nothing happens: ticks, and the polls of both queues. */
export function standing(dueShards: number): number {
  const ticks = 24 * 60
  // Lambda keeps five long polls of 20 s going for each queue that a function consumes.
  const polls = (2 * 5 * 24 * 60 * 60) / 20
  const tick = usdOf('tick', 20, (dueShards / 8) * assumed.tableMs)
  return (ticks * (dueShards * 0.5 * prices.readUnits + tick) + polls * prices.queueRequests) / 1e6
}
