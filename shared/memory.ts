// Remembers subscriptions and their agents for a while, so that a push costs no read. Only receive uses it.
import type { Agent, Subscription } from './model.ts'
import type { Relay } from './relay.ts'
import { getAgent } from './store/agents.ts'
import { getSubscription } from './store/subscriptions.ts'

/** What a hook belongs to, and when that was read. */
export type Known = { sub: Subscription; agent: Agent; at: number }

/** How long a subscription is taken as remembered; so long a deleted one may still answer 2xx. */
const trustMs = 30_000
/** How long it serves while the table cannot be read: better an event too many than one lost. */
const despairMs = 60 * 60 * 1000
/** How long a hook without a subscription is taken for dead: whoever still pushes to it costs no read each time. */
const deadMs = 5000
const remembered = 5000

export type Memory = {
  /**
   * Finds a subscription and its agent.
   * @param freshMs how old a remembered one may be
   * @throws what the table threw, when nothing is remembered either
   */
  find: (table: Relay['table'], ref: string, freshMs?: number) => Promise<Known | undefined>
}

export function createMemory(now: () => number): Memory {
  const kept = new Map<string, { at: number; known: Known | undefined }>()
  const read = async (table: Relay['table'], ref: string): Promise<Known | undefined> => {
    const sub = await getSubscription(table, ref)
    const agent = sub && (await getAgent(table, sub.tenant, sub.agent))
    const at = now()
    const known = sub && agent && { sub, agent, at }
    // What is read anew takes its old place from itself, not from another.
    kept.delete(ref)
    const [oldest] = kept.keys()
    if (kept.size >= remembered && oldest !== undefined) kept.delete(oldest)
    kept.set(ref, { at, known })
    return known
  }
  return {
    find: async (table, ref, freshMs = trustMs) => {
      const found = kept.get(ref)
      const goodMs = found?.known === undefined ? deadMs : freshMs
      if (found !== undefined && now() - found.at <= goodMs) return found.known
      try {
        return await read(table, ref)
      } catch (error) {
        if (found?.known === undefined || now() - found.at > despairMs) throw error
        return found.known
      }
    },
  }
}
