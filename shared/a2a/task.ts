// Names the states of an A2A task and what each means to a waiting client. Pure.

/** Task states in one spelling for both protocol versions (A2A 1.0 section 4.1.3; v0.3 `TaskState`). */
export const taskStates = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'failed',
  'canceled',
  'rejected',
  'unknown',
] as const

export type TaskState = (typeof taskStates)[number]

/** A task as an agent reported it, in either version, reduced to what Rouse judges; `raw` is the agent's own object. */
export type Task = {
  id: string
  contextId?: string
  state: TaskState
  /** `status.timestamp` as written by the agent; often missing, never proof of freshness. */
  timestamp?: string
  /** Only the start of the agent's object was read: `raw` holds its ids and its state, and nothing else is known. */
  tooLarge?: true
  raw: Record<string, unknown>
}

/** What a push says, reduced to a hint. A push without a task id (a bare Message) names none. */
export type PushReading = {
  kind: 'task' | 'status' | 'artifact' | 'message'
  taskId?: string
  contextId?: string
  state?: TaskState
}

const terminal: ReadonlySet<TaskState> = new Set(['completed', 'failed', 'canceled', 'rejected'])
const interrupted: ReadonlySet<TaskState> = new Set(['input-required', 'auth-required'])

/** True when the task has ended for good: terminal tasks never restart (A2A 1.0 section 3.4). */
export const isTerminal = (state: TaskState | undefined): boolean =>
  state !== undefined && terminal.has(state)

/** True when the task waits for somebody. */
export const isInterrupted = (state: TaskState | undefined): boolean =>
  state !== undefined && interrupted.has(state)

/** True for the states whose loss would hurt: they last, and somebody waits for them. */
export const isNews = (state: TaskState | undefined): boolean => isTerminal(state) || isInterrupted(state)

/** The event name of a state in webhooks and the inbox: `input-required` becomes `task.input_required`. */
export const eventType = (state: TaskState): `task.${string}` => `task.${state.replaceAll('-', '_')}`
