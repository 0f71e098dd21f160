// What there is in a run of the model: table, queues, inboxes, and what the targets heard. Holds, decides nothing.
import type { TaskState } from '../../../shared/a2a/task.ts'
import type { Subscription, Watch } from '../../../shared/model.ts'
import type { Cell, Shelf } from './cells.ts'
import type { Rules } from './rules.ts'
import type { Story } from './story.ts'
import type { Queue } from './timeline.ts'

/** The watch, and which state of the story it shows: the model's own note, which no decision reads. */
export type Kept = Watch & { shows: number; holder?: number }

export type Pending = {
  key: string
  sub: string
  state: TaskState
  at: number
  seenUntil: number
  due?: number
  holds: number
}

export type LookBody =
  | {
      kind: 'notice'
      notice?: string
      timer?: boolean
      sub: string
      state?: TaskState
      at: number
      tries?: number
      mark?: number
    }
  | { kind: 'pending'; notice: string; mark?: number }
  | { kind: 'watch'; looked?: number; fired?: boolean; mark?: number }

export type WakeSeed = { sub: string; target: string; state: TaskState; rev: number; shows: number }
export type DeliverBody = { id: string; of?: WakeSeed }

export type KeptWake = WakeSeed & {
  status: 'pending' | 'delivered' | 'superseded' | 'failed' | 'dropped'
  lease: number
  tries: number
  holds: number
  next?: number
  due?: number
}

/** `before`: when the number before its own was taken, so that a gap there is at least as old. */
export type Entry = { id: string; rev: number; shows: number; at: number; before: number }

export type Inbox = {
  counter: Cell<{ seq: number; before: number; taken: number }>
  places: Map<number, Cell<Entry>>
}

/** A webhook call. */
export type Hint = {
  id: string
  sub: string
  rev: number
  shows: number
  at: number
  /** Whether the target answered with 2xx. */
  heard: boolean
  /** Whether the entry that it hints at stood in the inbox by then. */
  found: boolean
}

export type World = Shelf & {
  rules: Rules
  story: Story
  road: 'push' | 'poll'
  /** How old a replica's answer may be. */
  replicaMs: number
  watch: Cell<Kept>
  subs: Map<string, Cell<Subscription>>
  /** The subscriptions that the agent pushes to. */
  pushed: Set<string>
  notices: Map<string, Cell<Pending>>
  wakes: Map<string, Cell<KeptWake>>
  inboxes: Map<string, Inbox>
  look: Queue<LookBody>
  deliver: Queue<DeliverBody>
  hints: Hint[]
  counts: { looks: number; ticks: number }
}

/** The clock of one instance. */
export type Me = { now: () => number }

/** The cell under a name, made when it is first needed. */
export function cellOf<K, T>(cells: Map<K, Cell<T>>, name: K): Cell<T> {
  const cell = cells.get(name) ?? { item: undefined }
  cells.set(name, cell)
  return cell
}

export function inboxOf(world: World, client: string): Inbox {
  const inbox = world.inboxes.get(client) ?? { counter: { item: undefined }, places: new Map() }
  world.inboxes.set(client, inbox)
  return inbox
}
