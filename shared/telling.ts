// What is told and to whom, as it stands in the table: entries of inboxes, wakes, targets and their gates. Types only.
import type { TaskState } from './a2a/task.ts'

/** What a client reads when it is back. `seq` grows by one with each entry of its inbox. Times are ms since 1970. */
export type InboxEntry = {
  seq: number
  id: string
  type: string
  agent: string
  taskId: string
  contextId?: string
  /** Missing in a step of a task that was never seen. */
  state?: TaskState
  rev: number
  /** Only the state is known: the answer that showed it was too large. */
  tooLarge?: boolean
  at: number
  subscription: string
  /** What a step says beyond its type. */
  data?: Facts
}

/** What an event says beyond its type, by name. */
export type Facts = Record<string, string | number>

/** What an event is about that is no task's: one of these by its id. */
export type About = { agent: string } | { target: string } | { subscription: string }

export type Attempt = {
  at: number
  verdict: 'delivered' | 'retry' | 'disable' | 'config'
  reason?: string
  status?: number
  milliseconds: number
  /** First kilobyte of the answer. */
  answer?: string
}

export type WakeStatus = 'pending' | 'delivered' | 'failed' | 'dropped' | 'superseded'

/** One target to be told of one thing. */
export type Wake = {
  /** Public id: `wk_` + subject + id; sent as `webhook-id`, equal on every retry. */
  id: string
  tenant: string
  /** Of a task's wakes: the task, and the ref of the subscription that asked for it. */
  agent?: string
  taskId?: string
  contextId?: string
  sub?: string
  /** Of all others: what they are about. */
  about?: About
  target: string
  type: string
  state?: TaskState
  rev?: number
  tooLarge?: boolean
  /** What is said beyond the type. */
  data?: Facts
  seq?: number
  /** When it became so; stable over retries. */
  at: number
  status: WakeStatus
  attempts: Attempt[]
  tries: number
  lease: number
  next?: number
  /** How often in a row its target had no room for it. */
  turns?: number
  /** Others of its client ended because it speaks for them, or it did itself since another spoke for it. */
  speaks?: true
}

export type Target = {
  tenant: string
  target: string
  url: string
  /** JWE of the `whsec_` secret that signs, how often it was replaced, and those before it that sign along until then. */
  secret: string
  secretGeneration: number
  retiring?: { secret: string; until: number }[]
  /** Raised when it is put anew or enabled: what is known of the one before holds no more. */
  generation: number
  status: 'active' | 'disabled'
  reason?: string
  disabledAt?: number
  createdAt: number
  /** Most attempts at a time, and most that begin in a second. */
  maxConcurrency?: number | undefined
  ratePerSecond?: number | undefined
}

/** For whom a wake that was delivered spoke: those of its waiters that are no newer and came to wait before it was sent. */
export type Spoke = { waiters: string; at: number; before: number }

/** Who may call a target now. Times are ms since 1970. */
export type Gate = {
  /** The generation of the target that all of it is about. */
  generation: number
  /** Until when each slot is held. */
  slots: Record<string, number>
  /** Failures in a row, since when, when and why the last one was, and whether the target is set up wrongly. */
  failures?: number
  failingSince?: number
  failedAt?: number
  reason?: string
  wrong?: boolean
  /** The outage that was told, by when it began; another is told once this one's end was. */
  told?: number
  /** While it is paused: until when, and how many pauses in a row there were. Past that time one probe gets in. */
  pausedUntil?: number
  pauses?: number
  /** The wake that was sent to probe; until then no other does. */
  handed?: string
  /** When the last pause ended, and whom its probe told of. */
  resumedAt?: number
  spoke?: Spoke
  /** With a rate: when the next attempt may begin. */
  free?: number
  /** When those who wait are looked after. */
  due?: number
}
