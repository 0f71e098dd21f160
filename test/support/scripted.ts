// An agent whose every word is written by the test: JSON-RPC of A2A 1.0, GetTask answers what was put there, pushes signed if wished. Keeps each call.
import { sha256Hex } from '../../shared/hash.ts'
import { makeKey, signJwt } from './keys.ts'
import { type Answer, type Receiver, startReceiver } from './receiver.ts'

type Call = { method: string; taskId: string; headers: Record<string, unknown> }

export type Scripted = {
  origin: string
  /** What GetTask answers from now on, but for the id. */
  put: (taskId: string, task: Record<string, unknown>) => void
  /** The calls about a task, in order. */
  calls: (taskId: string) => Call[]
  /** Answers instead, where it has one: called with each request of JSON-RPC. */
  instead: (answer: ((asked: Asked) => Answer | undefined) | undefined) => void
  /** Its published keys, and the header that signs a push of it: its body, or only which task it is about. */
  jwksUrl: string
  sign: (push: { body: string; audience: string; now: number; taskId?: string }) => Record<string, string>
  stop: Receiver['stop']
}

type Asked = { id: string; method: string; params: { id: string } }

const notFound = { code: -32001, message: 'Task not found' }

/** Starts it on a free port of the loopback. */
export async function startScripted(): Promise<Scripted> {
  const receiver = await startReceiver()
  const tasks = new Map<string, Record<string, unknown>>()
  const key = makeKey('EdDSA', 'k1')
  let instead: Parameters<Scripted['instead']>[0]
  let signed = 0
  receiver.answer(({ method: verb, body }) => {
    if (verb === 'GET') return { body: JSON.stringify({ keys: [key.jwk] }) }
    const asked = JSON.parse(body)
    const answer = instead?.(asked)
    if (answer !== undefined) return answer
    const { id, method, params } = asked
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
    instead: answer => {
      instead = answer
    },
    jwksUrl: `${receiver.origin}/jwks`,
    sign: ({ body, audience, now, taskId }) => {
      const iat = Math.floor(now / 1000)
      const claims = { iss: receiver.origin, aud: audience, iat, exp: iat + 60, jti: `jti-${++signed}` }
      const covers = taskId === undefined ? { request_body_sha256: sha256Hex(body) } : { taskId }
      return { authorization: `Bearer ${signJwt(key, { ...claims, ...covers })}` }
    },
    calls: taskId =>
      receiver.requests
        .filter(({ method }) => method === 'POST')
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
