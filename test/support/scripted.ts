// An agent whose every word is written by the test: JSON-RPC of A2A 1.0, GetTask answers what was put there. Keeps each call.
import { type Receiver, startReceiver } from './receiver.ts'

type Call = { method: string; taskId: string; headers: Record<string, unknown> }

export type Scripted = {
  origin: string
  /** What GetTask answers from now on, but for the id. */
  put: (taskId: string, task: Record<string, unknown>) => void
  /** The calls about a task, in order. */
  calls: (taskId: string) => Call[]
  stop: Receiver['stop']
}

const notFound = { code: -32001, message: 'Task not found' }

/** Starts it on a free port of the loopback. */
export async function startScripted(): Promise<Scripted> {
  const receiver = await startReceiver()
  const tasks = new Map<string, Record<string, unknown>>()
  receiver.answer(({ body }) => {
    const { id, method, params } = JSON.parse(body)
    if (method !== 'GetTask') return { body: JSON.stringify({ jsonrpc: '2.0', id, result: params }) }
    const task = tasks.get(params.id)
    const said = task === undefined ? { error: notFound } : { result: { ...task, id: params.id } }
    return { body: JSON.stringify({ jsonrpc: '2.0', id, ...said }) }
  })
  return {
    origin: receiver.origin,
    put: (taskId, task) => {
      tasks.set(taskId, task)
    },
    calls: taskId =>
      receiver.requests
        .map(({ body, headers }) => ({ ...JSON.parse(body), headers }))
        .map(({ method, params, headers }) => ({ method, taskId: params.id ?? params.taskId, headers }))
        .filter(call => call.taskId === taskId),
    stop: receiver.stop,
  }
}

/** A status of A2A 1.0. */
export const status = (state: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  status: { state: `TASK_STATE_${state.toUpperCase().replaceAll('-', '_')}`, ...more },
})
