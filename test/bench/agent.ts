// A fast agent that keeps states only, and counts who asks it: for loads that the demo agent would be too slow for.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { close, listen } from '../../infra/local/wire.ts'

export type FastAgent = {
  url: string
  /** Tasks exist from the first state they are given. */
  set: (taskId: string, state: string) => void
  /** GetTask calls so far, of one task or of all. */
  looks: (taskId?: string) => number
  /** When one task was asked for, ms. */
  looked: (taskId: string) => readonly number[]
  /** The most calls that were under way at a time since the last reset. */
  most: () => number
  /** How long every answer takes, ms. */
  delayMs: number
  reset: () => void
  stop: () => Promise<void>
}

/** Text of a usual size: a task's answer has some 2.5 KB, a push 600 B. */
const words = 'The report is ready: 14 pages, 3 findings, none of them urgent. '

/** @param now the time of tasks' timestamps, ms */
export async function startFast(now: () => number): Promise<FastAgent> {
  const tasks = new Map<string, { state: string; at: number; step: number }>()
  const looks = new Map<string, number[]>()
  const configs = new Map<string, object>()
  let under = 0
  let most = 0
  const give = (id: string): object | undefined => {
    const task = tasks.get(id)
    return (
      task && {
        id,
        contextId: `context-${id}`,
        status: {
          state: task.state,
          timestamp: new Date(task.at).toISOString(),
          message: message(id, task.step),
        },
        artifacts: [{ artifactId: 'a-1', name: 'report', parts: [{ text: words.repeat(20) + task.step }] }],
      }
    )
  }
  const server = createServer(async (request, response) => {
    const asked = Buffer.concat(await request.toArray()).toString()
    if (request.method !== 'POST') return void response.writeHead(404).end()
    const { id, method, params } = JSON.parse(asked)
    under += 1
    most = Math.max(most, under)
    if (agent.delayMs > 0) await sleep(agent.delayMs)
    under -= 1
    if (method === 'GetTask') looks.set(params.id, [...(looks.get(params.id) ?? []), now()])
    if (method === 'CreateTaskPushNotificationConfig') configs.set(params.taskId, params)
    const listed = { configs: [configs.get(params.taskId)].filter(Boolean) }
    const kept = method === 'ListTaskPushNotificationConfigs' ? listed : params
    const result = method === 'GetTask' ? give(params.id) : kept
    const body = result === undefined ? { error: { code: -32001, message: 'Task not found' } } : { result }
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, ...body }))
  })
  server.keepAliveTimeout = 120_000
  const port = await listen(server, 0)
  const agent: FastAgent = {
    url: `http://127.0.0.1:${port}/`,
    set: (taskId, state) =>
      tasks.set(taskId, { state: nameOf(state), at: now(), step: (tasks.get(taskId)?.step ?? 0) + 1 }),
    looks: taskId =>
      taskId === undefined
        ? [...looks.values()].reduce((sum, one) => sum + one.length, 0)
        : (looks.get(taskId)?.length ?? 0),
    looked: taskId => looks.get(taskId) ?? [],
    most: () => most,
    delayMs: 0,
    reset: () => {
      looks.clear()
      most = 0
    },
    stop: () => close(server),
  }
  return agent
}

const nameOf = (state: string): string => `TASK_STATE_${state.toUpperCase().replace('-', '_')}`

const message = (taskId: string, step: number): object => ({
  messageId: `m-${step}`,
  role: 'ROLE_AGENT',
  taskId,
  parts: [{ text: words.repeat(4) }],
})

/** A push of a state as the official v1.0 SDKs send it; `step` makes each another event. */
export const pushOf = (taskId: string, state: string, step: number): string =>
  JSON.stringify({
    statusUpdate: {
      taskId,
      contextId: `context-${taskId}`,
      status: { state: nameOf(state), message: message(taskId, step) },
      metadata: { step },
    },
  })
