// Keeps the slots that this process took of agents' calls: calls share them for some seconds, and more are taken or given back by one write. Judges no answer.
import { type Calls, callMs, freeSlots, limitOf, slotMs, stateOf, takenSlots, waitingMs } from './breaker.ts'
import { drawShare } from './clock.ts'
import type { Agent } from './model.ts'
import type { Relay } from './relay.ts'
import { giveSlots, takeSlots } from './store/calls.ts'
import type { Written } from './store/table.ts'

type World = Pick<Relay, 'table' | 'now' | 'random' | 'permits'>
export type Callee = Pick<Agent, 'tenant' | 'agent' | 'maxConcurrentCalls'> & {
  /** Called also while it is left alone because it asked for that: it asked that of other credentials. */
  despite?: boolean
}

/** One slot, and until when it is this process's own. */
export type Permit = { slot: number; until: number }

/** A slot, or why there is none. */
export type Got = { ok: true; permit: Permit } | { ok: false }

/** What this process holds of one agent, and the agent's item `calls` as it was last seen. */
type Held = {
  free: Permit[]
  used: Set<Permit>
  asking: { resolve: (got: Got) => void; reject: (error: unknown) => void }[]
  taking: boolean
  calls: Calls
  seen: number
}

/** What a process holds, by agent; of slots that were taken though it is left alone apart from the others. It ends with the process: slots run out by themselves. */
export type Permits = Map<string, Held>

/** How often others may be quicker. */
const tries = 3
/** For how long the item is thought to be as it was seen: slots come back soon where they are few. */
const freshMs = 500
/** Agents remembered. What is forgotten runs out by itself. */
const remembered = 1000

function heldOf({ permits }: World, { tenant, agent, despite }: Callee): Held {
  const name = `${tenant}/${agent}${despite === true ? ' despite' : ''}`
  const known = permits.get(name)
  if (known !== undefined) return known
  if (permits.size >= remembered)
    for (const [other, { used, asking }] of permits)
      if (used.size === 0 && asking.length === 0) permits.delete(other)
  const held: Held = { free: [], used: new Set(), asking: [], taking: false, calls: {}, seen: 0 }
  permits.set(name, held)
  return held
}

/** The agent's item as this process saw it last, and when. */
export const seenOf = (relay: World, agent: Callee): { calls: Calls; at: number } => {
  const { calls, seen } = heldOf(relay, agent)
  return { calls, at: seen }
}

/** Remembers the agent's item, and that it was seen now, unless said otherwise. */
export function learn(relay: World, agent: Callee, calls: Calls = {}, at = relay.now()): void {
  const held = heldOf(relay, agent)
  held.calls = calls
  held.seen = at
}

/** Remembers what was written, or stood in the way. */
export const learnFrom = (relay: World, agent: Callee, written: Written<Calls>): void =>
  learn(relay, agent, written.ok ? written.item : written.old)

/** Gets a slot: one that is kept costs nothing, and all who ask at once get theirs by one write. */
export function takePermit(relay: World, agent: Callee): Promise<Got> {
  const held = heldOf(relay, agent)
  const kept = isShut(held, agent) ? undefined : keptFor(held, agent, relay.now())
  if (kept !== undefined) return Promise.resolve(use(held, kept))
  const { promise, resolve, reject } = Promise.withResolvers<Got>()
  held.asking.push({ resolve, reject })
  if (!held.taking) void takeForAll(relay, agent, held)
  return promise
}

/** Whether nobody calls it but by a probe, as it was seen last. */
const isShut = ({ calls: { openUntil, asked } }: Held, { despite }: Callee): boolean =>
  openUntil !== undefined && !(despite === true && asked === true)

/** A slot that lasts for a whole call yet. */
function keptFor(held: Held, agent: Callee, now: number): Permit | undefined {
  const at = held.free.findIndex(({ slot, until }) => until - now >= callMs && slot < limitOf(agent))
  return at < 0 ? undefined : held.free.splice(at, 1)[0]
}

function use(held: Held, permit: Permit): Got {
  held.used.add(permit)
  return { ok: true, permit }
}

async function takeForAll(relay: World, agent: Callee, held: Held): Promise<void> {
  held.taking = true
  let left = tries
  try {
    while (held.asking.length > 0) {
      const now = relay.now()
      const slots = left > 0 ? drawn(relay, freeFor(held, agent, now), held.asking.length) : []
      if (slots.length === 0) return refuse(held)
      const until = now + slotMs
      const taken = await takeSlots(relay.table, agent, slots, { now, until }, agent.despite)
      learnFrom(relay, agent, taken)
      if (!taken.ok && isShut(held, agent)) return refuse(held)
      left = taken.ok ? tries : left - 1
      if (taken.ok) for (const slot of slots) pass(held, { slot, until })
    }
  } catch (error) {
    for (const { reject } of held.asking.splice(0)) reject(error)
  } finally {
    held.taking = false
  }
}

const refuse = (held: Held): void => {
  for (const { resolve } of held.asking.splice(0)) resolve({ ok: false })
}

/** Slots that may be free: others' as they were just seen, without those of this process. */
function freeFor(held: Held, agent: Callee, now: number): number[] {
  const calls = now - held.seen < freshMs ? held.calls : {}
  if (stateOf(calls, now) === 'open' && isShut(held, agent)) return []
  const own = ownSlots(held, now)
  return freeSlots(calls, limitOf(agent), now).filter(slot => !own.has(slot))
}

const ownSlots = ({ free, used }: Held, now: number): Set<number> =>
  new Set([...free, ...used].filter(({ until }) => until >= now).map(({ slot }) => slot))

/** Some of them, from a place that is chance: whoever takes slots at the same time shall take others. */
function drawn(relay: World, from: number[], count: number): number[] {
  const start = Math.floor(from.length * drawShare(relay))
  return [...from.slice(start), ...from.slice(0, start)].slice(0, count)
}

/** Hands a slot to whoever asked first, or keeps it. */
function pass(held: Held, permit: Permit): void {
  const next = held.asking.shift()
  if (next === undefined) held.free.push(permit)
  else next.resolve(use(held, permit))
}

/**
 * Ends the use of a slot. It is kept for the next call; when this process has no more calls under way, or others wait,
 * what it has beyond its share is given back.
 */
export async function leavePermit(relay: World, agent: Callee, permit: Permit): Promise<void> {
  const held = heldOf(relay, agent)
  const now = relay.now()
  held.used.delete(permit)
  if (permit.until - now >= callMs && !isShut(held, agent)) pass(held, permit)
  else held.free.push(permit)
  const back = surplus(held, agent, now)
  if (back.length > 0) await giveSlots(relay.table, agent, back)
}

/** Takes out of what is kept whatever is to be given back, and forgets what ran out. */
function surplus(held: Held, agent: Callee, now: number): Permit[] {
  // Near its end somebody whose clock is ahead may have taken it already.
  held.free = held.free.filter(({ until }) => now < until - 1000).sort((a, b) => b.until - a.until)
  for (const permit of held.used) if (permit.until < now) held.used.delete(permit)
  const crowded = held.calls.oldest !== undefined && now - (held.calls.oldestSeen ?? 0) < waitingMs
  if (held.used.size > 0 && !crowded) return []
  const limit = limitOf(agent)
  const own = ownSlots(held, now)
  const others = takenSlots(held.calls, limit, now).filter(slot => !own.has(slot)).length
  const keeps = crowded ? 0 : Math.max(0, Math.floor(limit / 2) - others)
  return held.free.splice(keeps)
}
