// What a look is asked for and what it comes to. Types only, and the names that its log lines carry.
import type { TaskState } from './a2a/task.ts'
import type { Waited } from './messages.ts'
import type { Subscription, Trouble, Watch } from './model.ts'
import type { Cause } from './policy.ts'

/** Why a look is made. */
export type Ask = {
  /** The push that asks for it. */
  cause?: Cause
  /** Whether to ask again while the agent does not show what the push named. */
  patient?: boolean
  /** The subscription whose push asks, as it was just read. */
  sub?: Subscription
  /** A subscription that this look binds if the agent knows the task. */
  unbound?: Subscription
  /** The watch's timer fired, so it is to be set anew. */
  fired?: boolean
  /** The watch's mark of a trailing look is this message's own. */
  own?: boolean
  /** How often it was put off already because the agent took no more calls. */
  waited?: Waited | undefined
}

export type Looked =
  /** Everything the push could tell is known and told; `state` is what is known. */
  | { kind: 'shown'; state: TaskState | undefined }
  /** Not now: a look is under way or was less than a window ago. */
  | { kind: 'waits'; ms: number }
  /** The agent takes no more calls now. */
  | { kind: 'busy'; afterMs: number; waited: Waited }
  /** The agent does not show yet what the push named. */
  | { kind: 'ahead' }
  /** There is nothing to look at. */
  | { kind: 'dropped'; why: string }
  /** The agent gave no task. `lasting` faults do not go away by asking again soon. */
  | {
      kind: 'trouble'
      trouble: Trouble
      lasting: boolean
      watched: boolean
      afterMs: number
      /** The credentials were refused of a subscription that is not bound yet. */
      refused: boolean
    }

export const shown = ({ state }: Pick<Watch, 'state'>): Looked => ({ kind: 'shown', state })

/** Whom a log line is about. */
export const idsOf = ({ tenant, agent, taskId }: Watch) => ({ tenant, agent, task: taskId })
