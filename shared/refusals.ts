// Remembers for a while, in this process, whose credentials an agent refused: where others see the same task, those are tried first.
import type { Agent, Subscription } from './model.ts'
import type { Table } from './store/table.ts'

/** For how long those that were refused come last. Others that are given meanwhile are not those. */
const rememberedMs = 10 * 60_000
const mostRemembered = 1000

const memories = new WeakMap<Table, Map<string, number>>()

type Whose = { agent: Agent; own: Subscription | undefined }

const nameOf = ({ agent, own }: Whose): string =>
  own === undefined ? `${agent.tenant} ${agent.etag}` : `${own.ref} ${own.credentialsAt ?? 0}`

/** Notes whether an agent took these credentials. */
export function noteRefusal(table: Table, whose: Whose, refused: boolean, now: number): void {
  const known = memories.get(table) ?? new Map<string, number>()
  memories.set(table, known)
  const name = nameOf(whose)
  known.delete(name)
  if (!refused) return
  const [oldest] = known.keys()
  if (known.size >= mostRemembered && oldest !== undefined) known.delete(oldest)
  known.set(name, now)
}

/** True when they were refused not long ago, and not taken since. */
export const wasRefused = (table: Table, whose: Whose, now: number): boolean =>
  (memories.get(table)?.get(nameOf(whose)) ?? Number.NEGATIVE_INFINITY) > now - rememberedMs
