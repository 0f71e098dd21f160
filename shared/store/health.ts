// Keeps what an agent's pushes came to, as rough counts: each instance adds up its own now and then.
import type { Reason } from '../reasons.ts'
import { agentHealthKey } from './keys.ts'
import { get, type Table, update } from './table.ts'

/** What one instance saw since it last told. Times are ms since 1970. */
export type Counts = {
  accepted: number
  duplicate: number
  unexpected: number
  /** Accepted pushes whose signed digest was right over the body as received, or as the 2025 samples would have written it. */
  raw: number
  compact: number
  refused: Partial<Record<Reason, number>>
  lastAccepted?: number
  recent: { at: number; reason: Reason }[]
}

/** Answers of the agent that were about another task or request than the one that was asked for. */
export type Wrong = { wrong: number; lastWrong?: number }

type Stored = Record<string, number> & {
  lastAccepted?: number
  lastWrong?: number
  recent?: Counts['recent']
}

const refusedPrefix = 'refused_'

/** Adds an instance's counts. Of two instances that tell at once, the recent reasons of one are kept. */
export function addCounts(table: Table, tenant: string, agent: string, counts: Counts) {
  const added: Record<string, number> = {
    accepted: counts.accepted,
    duplicate: counts.duplicate,
    unexpected: counts.unexpected,
    raw: counts.raw,
    compact: counts.compact,
  }
  for (const [reason, count] of Object.entries(counts.refused)) added[`${refusedPrefix}${reason}`] = count
  const set = [
    ...(counts.lastAccepted === undefined ? [] : ['#lastAccepted = :lastAccepted']),
    ...(counts.recent.length === 0 ? [] : ['#recent = :recent']),
  ]
  return update(
    table,
    agentHealthKey(tenant, agent),
    [
      set.length === 0 ? '' : `SET ${set.join(', ')} `,
      `ADD ${Object.keys(added)
        .map(name => `#${name} :${name}`)
        .join(', ')}`,
    ].join(''),
    { ...added, lastAccepted: counts.lastAccepted, recent: counts.recent },
  )
}

/** Counts such an answer. */
export const countWrong = (table: Table, tenant: string, agent: string, now: number) =>
  update(table, agentHealthKey(tenant, agent), 'SET #lastWrong = :now ADD #wrong :one', { now, one: 1 })

export async function getCounts(table: Table, tenant: string, agent: string): Promise<Counts & Wrong> {
  const stored = (await get<Stored>(table, agentHealthKey(tenant, agent))) ?? {}
  const refused = Object.entries(stored)
    .filter(([name]) => name.startsWith(refusedPrefix))
    .map(([name, count]) => [name.slice(refusedPrefix.length), count])
  return {
    accepted: stored.accepted ?? 0,
    duplicate: stored.duplicate ?? 0,
    unexpected: stored.unexpected ?? 0,
    raw: stored.raw ?? 0,
    compact: stored.compact ?? 0,
    refused: Object.fromEntries(refused),
    wrong: stored.wrong ?? 0,
    ...(stored.lastWrong !== undefined && { lastWrong: stored.lastWrong }),
    ...(stored.lastAccepted !== undefined && { lastAccepted: stored.lastAccepted }),
    recent: stored.recent ?? [],
  }
}
