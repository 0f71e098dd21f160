// Makes the demo agent answer GetTask wrongly on demand, in front of the SDK and in the store behind it; the SDK stays as it is.
import type { Task } from '@a2a-js/sdk'
import {
  InMemoryTaskStore,
  type ServerCallContext,
  STATE_HEADERS_KEY,
  type TaskStore,
} from '@a2a-js/sdk/server'
import type { Request, RequestHandler, Response } from 'express'

/**
 * Wrong answers to GetTask. `silence` never answers; `lagging` answers the task as it was before its last change of
 * state, like a replica that is behind.
 */
export type Lie =
  | 'not_found'
  | 'another_task'
  | 'lagging'
  | 'unauthorized'
  | 'forbidden'
  | 'rate_limited'
  | 'unavailable'
  | 'rubbish'
  | 'hang_up'
  | 'silence'

/** Lies that the store tells, so that the SDK words them in the caller's version and binding. */
const stored: readonly Lie[] = ['not_found', 'another_task', 'lagging']
const header = 'x-demo-lie'

/** Tells a lie instead of passing the request on, or marks the request for the store to lie. */
export function tell(lie: Lie, request: Request, response: Response, next: () => void): void {
  if (stored.includes(lie)) {
    request.headers[header] = lie
    next()
  } else if (lie === 'hang_up') request.socket.destroy()
  else if (lie === 'rubbish') response.end('<html>Welcome to the agent</html>')
  else if (lie !== 'silence') answer(lie, response)
}

function answer(lie: Lie, response: Response): void {
  const [status, name, value] = refusals[lie] ?? [500, 'Cache-Control', 'no-store']
  response.setHeader(name, value)
  response.status(status).json({ error: { code: status, message: `The demo agent says ${lie}` } })
}

const refusals: Partial<Record<Lie, readonly [status: number, header: string, value: string]>> = {
  unauthorized: [401, 'WWW-Authenticate', 'Bearer'],
  forbidden: [403, 'Cache-Control', 'no-store'],
  rate_limited: [429, 'Retry-After', '7'],
  unavailable: [503, 'Retry-After', '7'],
}

/** Drops a mark that a caller set itself. */
export const unmarked: RequestHandler = (request, _response, next) => {
  delete request.headers[header]
  next()
}

/** The SDK's own store in memory, lying to the requests that are marked. */
export function lyingStore(): TaskStore {
  const store = new InMemoryTaskStore()
  const before = new Map<string, Task>()
  return {
    save: async (task, context) => {
      const known = await store.load(task.id, context)
      if (known !== undefined && known.status?.state !== task.status?.state) before.set(task.id, known)
      await store.save(task, context)
    },
    load: async (taskId, context) => {
      const task = await store.load(taskId, context)
      const lie = markOf(context)
      if (lie === undefined || task === undefined) return task
      if (lie === 'not_found') return undefined
      if (lie === 'another_task') return { ...task, id: `${taskId}-other` }
      return structuredClone(before.get(taskId) ?? task)
    },
    list: (params, context) => store.list(params, context),
  }
}

function markOf(context: ServerCallContext): unknown {
  const headers = context.state.get(STATE_HEADERS_KEY)
  return typeof headers === 'object' && headers !== null && header in headers ? headers[header] : undefined
}
