// Counts in memory what an agent's pushes came to, and tells the table at most every 10 s: a flood of refusals costs no writes.
import type { DigestMatch } from './digest.ts'
import type { Agent } from './model.ts'
import type { Reason } from './reasons.ts'
import { addCounts, type Counts } from './store/health.ts'
import type { Table } from './store/table.ts'

export type Tally = {
  /** @param digest over which form of the body the signed digest of an accepted push was right */
  note: (
    agent: Agent,
    what: 'accepted' | 'duplicate' | 'unexpected',
    now: number,
    digest?: DigestMatch,
  ) => void
  refuse: (agent: Agent, reason: Reason, now: number) => void
  /** Tells the table of the agent that waited longest, if it is time; awaited, for nothing runs on after an answer. */
  flush: (table: Table, now: number) => Promise<void>
}

const everyMs = 10_000
const recentKept = 5
/** Agents counted at a time; a count that is dropped is only a count. */
const agentsKept = 1000

export function createTally(): Tally {
  const waiting = new Map<string, { agent: Agent; counts: Counts }>()
  let flushed = 0
  const countsOf = (agent: Agent): Counts => {
    const name = `${agent.tenant}#${agent.agent}`
    const found = waiting.get(name)
    if (found !== undefined) return found.counts
    const counts: Counts = {
      ...{ accepted: 0, duplicate: 0, unexpected: 0, raw: 0, compact: 0 },
      ...{ refused: {}, recent: [] },
    }
    const [oldest] = waiting.keys()
    if (waiting.size >= agentsKept && oldest !== undefined) waiting.delete(oldest)
    waiting.set(name, { agent, counts })
    return counts
  }
  return {
    note: (agent, what, now, digest) => {
      const counts = countsOf(agent)
      counts[what] += 1
      if (what !== 'accepted') return
      counts.lastAccepted = now
      if (digest !== undefined) counts[digest] += 1
    },
    refuse: (agent, reason, now) => {
      const counts = countsOf(agent)
      counts.refused[reason] = (counts.refused[reason] ?? 0) + 1
      counts.recent = [...counts.recent, { at: now, reason }].slice(-recentKept)
    },
    flush: async (table, now) => {
      const [first] = waiting
      if (first === undefined || now - flushed < everyMs) return
      flushed = now
      const [name, { agent, counts }] = first
      waiting.delete(name)
      // Counts are a help to read, never worth a push: whatever the table says is swallowed.
      await addCounts(table, agent.tenant, agent.agent, counts).catch(() => {})
    },
  }
}
