// Builds every pk and sk of the one table; nothing else does. Pure. The key map stands in ARCHITECTURE, "Access paths".
import { idOf, sha256 } from '../hash.ts'
import type { About } from '../telling.ts'

export type Key = { pk: string; sk: string }

/** The sparse index of timers; its shape stands in infra/topology.ts. */
export const dueIndex = 'due'

/** Sort key of an item that stands alone under its partition key. */
const self = '.'

/** Shards of a directory: lists of one kind grow without a hot partition. */
const directoryShards = 4

/** What a directory lists. `by` narrows a kind to one client or agent. */
export type Listing =
  | { kind: 'agents' | 'subscriptions' | 'targets' | 'keys' }
  | { kind: 'subscriptions'; by: 'client' | 'agent'; of: string }
  /** A task's watches by principal; the tasks delegated from one. */
  | { kind: 'tasks'; by: 'agent' | 'parent'; of: string; task: string }
  | { kind: 'tasks'; by: 'context'; of: string }

export const directoryKey = (tenant: string, listing: Listing, shard: number): string => {
  if (!('by' in listing)) return `D#${tenant}#${listing.kind}#${shard}`
  const of = listing.kind === 'tasks' ? idOf(listing.of, 'task' in listing ? listing.task : '') : listing.of
  return `D#${tenant}#${listing.kind}/${listing.by}/${of}#${shard}`
}

/** What belongs to one task or one context is not much, so its listing has one shard only. */
export const shardsOf = (listing: Listing): number => (listing.kind === 'tasks' ? 1 : directoryShards)

export const shardOf = (id: string, shards: number): number => (sha256(id)[0] ?? 0) % shards

export const agentKey = (tenant: string, agent: string): Key => ({ pk: `A#${tenant}#${agent}`, sk: self })
export const agentKeysKey = (tenant: string, agent: string): Key => ({
  ...agentKey(tenant, agent),
  sk: 'keys',
})
export const agentHealthKey = (tenant: string, agent: string): Key => ({
  ...agentKey(tenant, agent),
  sk: 'health',
})
export const agentCallsKey = (tenant: string, agent: string): Key => ({
  ...agentKey(tenant, agent),
  sk: 'calls',
})
/** Beside the credentials that it was granted for. */
const grant = 'grant'
export const agentGrantKey = (tenant: string, agent: string): Key => ({
  ...agentKey(tenant, agent),
  sk: grant,
})
export const subscriptionKey = (ref: string): Key => ({ pk: `S#${ref}`, sk: self })
export const subscriptionGrantKey = (ref: string): Key => ({ ...subscriptionKey(ref), sk: grant })
export const noticeKey = (key: string): Key => ({ pk: `N#${key}`, sk: self })
export const watchKey = (watch: string): Key => ({ pk: `K#${watch}`, sk: self })
export const snapshotKey = (watch: string): Key => ({ pk: `K#${watch}`, sk: 'B' })
export const wakeKey = (subject: string, id: string): Key => ({ pk: `K#${subject}`, sk: `W#${id}` })
export const wakePrefix = 'W#'
export const readWakeSk = (sk: string): string => sk.slice(wakePrefix.length)
export const targetKey = (tenant: string, target: string): Key => ({ pk: `G#${tenant}#${target}`, sk: self })
export const targetGateKey = (tenant: string, target: string): Key => ({
  ...targetKey(tenant, target),
  sk: 'gate',
})
/** In front of the wakes that failed at a target and come again at a time of their own. */
export const retryPrefix = 'R#'
export const retryKey = (tenant: string, target: string, subject: string, id: string): Key => ({
  ...targetKey(tenant, target),
  sk: `${retryPrefix}${subject}#${id}`,
})
export const inboxKey = (tenant: string, client: string): Key => ({ pk: `I#${tenant}#${client}`, sk: self })
/** In front of every entry's number. */
export const entryPrefix = 'e#'
export const inboxEntryKey = (tenant: string, client: string, seq: number): Key => ({
  pk: `I#${tenant}#${client}`,
  sk: `${entryPrefix}${String(seq).padStart(16, '0')}`,
})
export const readEntrySeq = (sk: string): number => Number(sk.slice(entryPrefix.length))
/** A message that its queue gave up; of no tenant if it could not be read. */
export const letterKey = (tenant: string | undefined, id: string): Key => ({
  pk: `X#${tenant ?? ''}`,
  sk: id,
})
export const apiKeyKey = (keyHash: string): Key => ({ pk: `Y#${keyHash}`, sk: self })
export const tenantKey = (tenant: string): Key => ({ pk: `T#${tenant}`, sk: self })
export const operationsKey = (tenant: string): Key => ({ ...tenantKey(tenant), sk: 'operations' })
export const quotaKey = (tenant: string, counted: string, day?: number): Key => ({
  ...tenantKey(tenant),
  sk: `quota#${counted}${day === undefined ? '' : `#${day}`}`,
})

/** Names the watch of one task as one principal sees it. */
export const watchOf = (tenant: string, agent: string, principal: string, taskId: string): string =>
  idOf('watch', tenant, agent, principal, taskId)

/** Names the subject of events that are no task's. Its wakes stand under that name as those of a watch do. */
export function subjectOf(tenant: string, about: About): string {
  if ('agent' in about) return idOf('subject', 'agent', tenant, about.agent)
  if ('target' in about) return idOf('subject', 'target', tenant, about.target)
  return idOf('subject', 'subscription', tenant, about.subscription)
}

/** Slot of the timer index that an item belongs to. */
export const slotOf = (pk: string, shards: number): string => slotNamed(shardOf(pk, shards))

export const slotNamed = (shard: number): string => `d#${shard}`

/** Over how many slots a list in the index is spread: one slot takes 1000 writes a second. */
export const spread = 4

/** Slot that lists some of a tenant's failed wakes. */
export const failedSlot = (tenant: string, shard: number): string => `f#${tenant}#${shard}`

/** Slot that lists some of the wakes that wait for a target. */
export const waitingSlot = (tenant: string, target: string, shard: number): string =>
  `w#${tenant}#${target}#${shard}`

/** Slot that lists some of the wakes that ended since a newer one spoke for them. */
export const spokenSlot = (tenant: string, target: string, waiters: string, shard: number): string =>
  `s#${idOf('spoken', tenant, target, waiters)}#${shard}`

/** Fair-queue group of looks: one dead agent is the noisy neighbour, not its tenant. */
export const agentGroup = (tenant: string, agent: string): string => idOf('group', 'agent', tenant, agent)

/** Fair-queue group of deliveries. */
export const targetGroup = (tenant: string, target: string): string => idOf('group', 'target', tenant, target)

/** What a timer of the index belongs to, told by its key. */
export type Timer =
  | { of: 'notice'; key: string }
  | { of: 'watch'; watch: string }
  | { of: 'wake'; subject: string; id: string }
  | { of: 'subscription'; ref: string }
  | { of: 'keys'; tenant: string; agent: string }
  | { of: 'target'; tenant: string; target: string }
  | { of: 'letter'; tenant: string | undefined; id: string }

export function readTimer({ pk, sk }: Key): Timer | undefined {
  const name = pk.slice(2)
  if (pk.startsWith('N#')) return { of: 'notice', key: name }
  if (pk.startsWith('S#')) return { of: 'subscription', ref: name }
  if (pk.startsWith('A#')) {
    const [tenant = '', agent = ''] = name.split('#')
    return { of: 'keys', tenant, agent }
  }
  if (pk.startsWith('G#')) {
    const [tenant = '', target = ''] = name.split('#')
    return { of: 'target', tenant, target }
  }
  if (pk.startsWith('X#')) return { of: 'letter', tenant: name || undefined, id: sk }
  if (pk.startsWith('K#') && sk === self) return { of: 'watch', watch: name }
  if (pk.startsWith('K#') && sk.startsWith(wakePrefix))
    return { of: 'wake', subject: name, id: readWakeSk(sk) }
  return undefined
}
