// What the two queues carry: ids, and of a wake's first attempt its event; never a task's body or a secret. Parsed here, so that a message of a future version is kept, not dropped.
import * as z from 'zod/mini'
import { taskStates } from './a2a/task.ts'

const state = z.enum(taskStates)
const version = z.literal(1)
/** W3C `traceparent` of the subscription that it is done for. */
const trace = z.optional(z.string())

/** How often a look was put off because its agent took no more calls, and since when. */
const Waited = z.object({ since: z.number(), turns: z.number() })

/** Look at a task because of an accepted push. */
export const NoticeMessage = z.object({
  v: version,
  kind: z.literal('notice'),
  /** Ref of the subscription that was pushed to. */
  sub: z.string(),
  taskId: z.string(),
  /** State that the push named, and when we accepted it (ms). */
  state: z.optional(state),
  at: z.number(),
  /** The notice's record; missing when the table refused it, or when the push was too large to read. */
  notice: z.optional(z.string()),
  /** Whether that record has a timer to be taken off. */
  timer: z.optional(z.boolean()),
  /** Set when it was put off: the time it was put off to, by which it knows its own mark. */
  mark: z.optional(z.number()),
  /** Looks so far that did not show what the push named. */
  tries: z.optional(z.number()),
  /** How often it had to wait for another look, of a subscription that is not bound yet. */
  stood: z.optional(z.number()),
  waited: z.optional(Waited),
  trace,
})

/** Look because a notice was left behind: its record tells the rest. */
const PendingMessage = z.object({ v: version, kind: z.literal('pending'), notice: z.string() })

/** Look at a watched task without a push: first look, floor, poll, new credentials. */
export const WatchMessage = z.object({
  v: version,
  kind: z.literal('watch'),
  watch: z.string(),
  /** Set on delayed looks: the look they follow. They end if another came between. */
  looked: z.optional(z.number()),
  /** As in a notice's message. */
  mark: z.optional(z.number()),
  /** Set by tick: the timer fired, so the look sets it anew. */
  fired: z.optional(z.boolean()),
  waited: z.optional(Waited),
  trace,
})

/** A subscription is due: sweep for tasks that an agent-wide one has not heard of, or end one that nothing bound. */
const SubscriptionMessage = z.object({ v: version, kind: z.literal('subscription'), sub: z.string() })

/** An agent's published keys are about to run out. */
const KeysMessage = z.object({ v: version, kind: z.literal('keys'), tenant: z.string(), agent: z.string() })

export const LookMessage = z.discriminatedUnion('kind', [
  NoticeMessage,
  PendingMessage,
  WatchMessage,
  SubscriptionMessage,
  KeysMessage,
])

/** Wake one target. `subject` and `id` name the record that the first attempt makes. */
export const WakeMessage = z.object({
  v: version,
  kind: z.literal('wake'),
  subject: z.string(),
  id: z.string(),
  trace,
  /** Everything the record needs, for the first attempt; later ones read the record. */
  of: z.optional(
    z.object({
      target: z.string(),
      at: z.number(),
      /** Of a task: the subscription's ref, and what was known. */
      sub: z.exactOptional(z.string()),
      state: z.exactOptional(state),
      rev: z.exactOptional(z.number()),
      tooLarge: z.exactOptional(z.boolean()),
      seq: z.exactOptional(z.number()),
      /** What else happened than that the task came to a state: the event's type and fields. */
      type: z.exactOptional(z.string()),
      data: z.exactOptional(z.record(z.string(), z.union([z.string(), z.number()]))),
      /** Whose event it is, and what it is about, if no task. */
      tenant: z.exactOptional(z.string()),
      about: z.exactOptional(
        z.union([
          z.object({ agent: z.string() }),
          z.object({ target: z.string() }),
          z.object({ subscription: z.string() }),
        ]),
      ),
    }),
  ),
})

/** Look after the wakes that wait for a target. */
const TargetMessage = z.object({
  v: version,
  kind: z.literal('target'),
  tenant: z.string(),
  target: z.string(),
})

export const DeliverMessage = z.discriminatedUnion('kind', [WakeMessage, TargetMessage])

export type Waited = z.infer<typeof Waited>
export type NoticeMessage = z.infer<typeof NoticeMessage>
export type WatchMessage = z.infer<typeof WatchMessage>
export type LookMessage = z.infer<typeof LookMessage>
export type TargetMessage = z.infer<typeof TargetMessage>
export type WakeMessage = z.infer<typeof WakeMessage>
export type DeliverMessage = z.infer<typeof DeliverMessage>
