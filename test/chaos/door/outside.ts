// The world outside of the relay: agents that tell each task's true state, their published keys, and the webhooks of those who wait.
import { isRecord } from '../../../infra/local/wire.ts'
import type { TaskState } from '../../../shared/a2a/task.ts'
import { makeKey } from '../../support/keys.ts'
import { type Answer, startReceiver } from '../../support/receiver.ts'

export type Outside = {
  origin: string
  /** The true state of each task. */
  tasks: Map<string, TaskState>
  /** How often each task was asked for. */
  looks: Map<string, number>
  /** The states that webhooks told, by task. */
  told: Map<string, string[]>
  stop: () => Promise<void>
}

/** The key by which all agents sign. */
export const key = makeKey('ES256', 'k1')

/** Starts it. @param keysOf how an agent's key host answers, if not well */
export async function startOutside(keysOf: (agent: string) => Answer | undefined): Promise<Outside> {
  const receiver = await startReceiver()
  const tasks: Outside['tasks'] = new Map()
  const looks: Outside['looks'] = new Map()
  const told: Outside['told'] = new Map()
  const agent = ({ id, method, params }: Record<string, unknown>): Answer => {
    const taskId = isRecord(params) ? String(params.id) : ''
    const state = tasks.get(taskId)
    if (method !== 'GetTask' || state === undefined)
      return answer({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } })
    looks.set(taskId, (looks.get(taskId) ?? 0) + 1)
    const status = { state: `TASK_STATE_${state.toUpperCase().replace('-', '_')}` }
    return answer({ jsonrpc: '2.0', id, result: { id: taskId, contextId: 'c-1', status } })
  }
  receiver.answer(({ url, body }) => {
    const [, what, name = ''] = url.split('/')
    if (what === 'keys') return keysOf(name) ?? answer({ keys: [key.jwk] })
    if (what === 'a2a') return agent(JSON.parse(body))
    const { taskId, state } = JSON.parse(body).data
    told.set(taskId, [...(told.get(taskId) ?? []), state])
    return {}
  })
  return { origin: receiver.origin, tasks, looks, told, stop: receiver.stop }
}

const answer = (body: unknown): Answer => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})
