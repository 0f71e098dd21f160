// Words a task of the fake agents in either version of A2A: as an answer, as a push. Pure.
import type { HandedOut } from '../../../shared/a2a/configs.ts'
import type { TaskState } from '../../../shared/a2a/task.ts'

export type Protocol = '1.0' | '0.3'

/** What a task is from some moment on. */
export type Version = {
  state: TaskState
  /** When it began, in the bent clock's ms. */
  at: number
  /** How much there is to see: a number that grows. */
  step: number
}

type Named = { id: string; protocol: Protocol; stamps: boolean }

const stateIn = (protocol: Protocol, state: TaskState): string =>
  protocol === '1.0' ? `TASK_STATE_${state.toUpperCase().replace('-', '_')}` : state

function statusOf({ id, protocol, stamps }: Named, { state, at, step }: Version): Record<string, unknown> {
  const asks = state === 'input-required' || state === 'auth-required'
  const v1 = protocol === '1.0'
  const part = v1 ? { text: `Question ${step}` } : { kind: 'text', text: `Question ${step}` }
  const message = {
    ...(!v1 && { kind: 'message' }),
    messageId: `${id}-m${step}`,
    role: v1 ? 'ROLE_AGENT' : 'agent',
    parts: [part],
  }
  return {
    state: stateIn(protocol, state),
    ...(stamps && { timestamp: new Date(at).toISOString() }),
    ...(asks && { message }),
  }
}

/** The task as GetTask answers it. */
export function taskOf(named: Named, version: Version): Record<string, unknown> {
  const { id, protocol } = named
  const v1 = protocol === '1.0'
  const text = `Step ${version.step} of ${id}`
  const artifact = { artifactId: 'a', parts: [v1 ? { text } : { kind: 'text', text }] }
  return {
    ...(!v1 && { kind: 'task' }),
    id,
    contextId: `c-${id}`,
    status: statusOf(named, version),
    artifacts: version.step > 0 ? [artifact] : [],
  }
}

/** The push of a version: as a status, or as the whole task. */
export function pushOf(named: Named, version: Version, whole: boolean): Record<string, unknown> {
  const { id, protocol } = named
  if (whole) return protocol === '1.0' ? { task: taskOf(named, version) } : taskOf(named, version)
  const status = statusOf(named, version)
  const event = { taskId: id, contextId: `c-${id}`, status }
  return protocol === '1.0'
    ? { statusUpdate: event }
    : { kind: 'status-update', final: version.state === 'completed', ...event }
}

/** Push configs as an agent lists them. */
export const configsOf = (protocol: Protocol, taskId: string, configs: readonly HandedOut[]): unknown =>
  protocol === '1.0'
    ? { configs: configs.map(config => ({ taskId, ...config })) }
    : configs.map(config => ({ taskId, pushNotificationConfig: config }))
