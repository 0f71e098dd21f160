// Asks agents about tasks, in either version and binding. Leaves to the network by the `net` it is given and keeps nothing.
import { limits } from '../limits.ts'
import type { ProtocolVersion } from '../model.ts'
import { type Net, NetError, type NetReply, type NetRequest } from '../net.ts'
import { buildRequest, type Endpoint, exchangeMs, type Operation, secretsOf } from './endpoint.ts'
import { isGiven, isRecord, parseBody, readTask } from './read.ts'
import { readStart, readTaskStart } from './start.ts'
import type { Task } from './task.ts'
import { cleanWords, codes, type Failure, judgeFault, judgeReply } from './trouble.ts'

/** A task as the agent answers it now. `bytes` is the size of the answer, inflated; of one that was too large what was read. */
export type Looked = { ok: true; task: Task; bytes: number } | Failure

/** One page of an agent's tasks, reduced to what tells whether there is news. */
export type Listed = { ok: true; tasks: Omit<Task, 'raw'>[]; next?: string } | Failure

/** Artifacts may carry trees that are deeper than any push: still shallow enough for every recursive walk. */
const deepestAnswer = 512

/**
 * Asks for a task without its history: 0 in v1.0 (section 3.2.4), left out in v0.3, whose proto reads 0 as unlimited.
 * @param now milliseconds since 1970, for a `Retry-After` that is a date
 */
export async function getTask(net: Net, endpoint: Endpoint, taskId: string, now: number): Promise<Looked> {
  const ask = (short: boolean): Promise<Answer> =>
    call(net, endpoint, getTaskOperation(endpoint.version, taskId, short), { id: taskId, now, start: true })
  let answer = await ask(endpoint.version === '1.0')
  // Agents that refuse the 0 give all of the history, which is better than no task.
  if (!answer.ok && answer.code === codes.invalidParams && endpoint.version === '1.0')
    answer = await ask(false)
  return taskOf(answer, taskId)
}

/**
 * Asks to cancel a task (A2A 1.0 section 3.1.5; v0.3 `tasks/cancel`).
 * @param now milliseconds since 1970, for a `Retry-After` that is a date
 * @returns the task as it is then, which need not be canceled yet
 */
export async function cancelTask(net: Net, endpoint: Endpoint, taskId: string, now: number): Promise<Looked> {
  const operation: Operation = {
    method: endpoint.version === '1.0' ? 'CancelTask' : 'tasks/cancel',
    params: { id: taskId },
    rest: { verb: 'POST', path: ['tasks', taskId], action: 'cancel', body: {} },
  }
  return taskOf(await call(net, endpoint, operation, { id: taskId, now, start: true }), taskId)
}

/** The task in an answer, if it is the one that was asked for. */
function taskOf(answer: Answer, taskId: string): Looked {
  if (!answer.ok) return answer
  const task = answer.cut === true ? readTaskStart(answer.value, taskId) : readTask(answer.value)
  if (task === undefined)
    return answer.cut === true
      ? tooLarge
      : { ok: false, trouble: 'unreadable', detail: 'The answer holds no task.' }
  if (task.id !== taskId) return wrongTask
  return { ok: true, task, bytes: answer.bytes }
}

/**
 * Lists tasks of an agent, 100 a page, in the agent's order. v0.3 has no such operation.
 * @param page where to go on, and the time (ISO 8601) after which a task's status must have changed
 * @param now milliseconds since 1970, for a `Retry-After` that is a date
 */
export async function listTasks(
  net: Net,
  endpoint: Endpoint,
  page: { pageToken?: string; statusTimestampAfter?: string },
  now: number,
): Promise<Listed> {
  if (endpoint.version === '0.3')
    return { ok: false, trouble: 'unsupported_version', detail: 'A2A 0.3 cannot list tasks.' }
  const params = { ...page, pageSize: 100, historyLength: 0 }
  const query = { ...page, pageSize: '100', historyLength: '0' }
  const operation: Operation = { method: 'ListTasks', params, rest: { verb: 'GET', path: ['tasks'], query } }
  const answer = await call(net, endpoint, operation, { id: 'tasks', now })
  if (!answer.ok) return answer
  const list = isRecord(answer.value) ? (answer.value.tasks ?? []) : undefined
  if (!isRecord(answer.value) || !Array.isArray(list))
    return { ok: false, trouble: 'unreadable', detail: 'The answer holds no list of tasks.' }
  const next = answer.value.nextPageToken
  const tasks = list.flatMap((entry: unknown) => {
    const task = readTask(entry)
    if (task === undefined) return []
    const { raw: _, ...rest } = task
    return [rest]
  })
  return { ok: true, tasks, ...(typeof next === 'string' && next !== '' && { next }) }
}

function getTaskOperation(version: ProtocolVersion, taskId: string, short: boolean): Operation {
  return {
    method: version === '1.0' ? 'GetTask' : 'tasks/get',
    params: { id: taskId, ...(short && { historyLength: 0 }) },
    rest: { verb: 'GET', path: ['tasks', taskId], ...(short && { query: { historyLength: '0' } }) },
  }
}

/**
 * What an agent answered: JSON-RPC's result or the body of HTTP+JSON; undefined if the body is empty. `cut`: the answer was
 * too large, and this is what its start shows.
 */
export type Answer = { ok: true; value: unknown; bytes: number; cut?: true } | Failure

type CallOptions = {
  /** Id of the JSON-RPC request. Every exchange has a connection's answer to itself, so it need not be unique. */
  id: string
  now?: number
  /** Secrets in the operation itself, to be kept out of the agent's words. */
  secrets?: string[]
  /** Whether the start of too large an answer is of use. */
  start?: boolean
}

/** Carries out one operation of A2A at an agent. Follows no redirect: credentials never move to another address. */
export async function call(
  net: Net,
  endpoint: Endpoint,
  operation: Operation,
  { id, now = 0, secrets = [], start = false }: CallOptions,
): Promise<Answer> {
  const request = buildRequest(endpoint, operation, id)
  if (request === undefined)
    return { ok: false, trouble: 'failed', detail: 'An id of this call cannot be put in a URL.' }
  const answer = await exchange(net, request, now)
  const read = answer.ok && endpoint.binding === 'JSONRPC' ? unwrap(answer, id) : answer
  if (read.ok) return read.cut === true && !start ? tooLarge : read
  return { ...read, detail: cleanWords(read.detail, [...secrets, ...secretsOf(endpoint.credentials)]) }
}

async function exchange(
  net: Net,
  request: Omit<NetRequest, 'timeoutMs' | 'maxBytes'>,
  now: number,
): Promise<Answer> {
  try {
    const asked = { ...request, timeoutMs: exchangeMs, maxBytes: limits.answerBytes, cut: true }
    const reply = await net.request(asked)
    const bytes = reply.body.length
    if (reply.cut === true) return readCut(reply, now)
    const parsed = parseBody(reply.body, deepestAnswer)
    const failure = judgeReply(reply, parsed.ok ? parsed.value : undefined, now)
    if (failure !== undefined) return failure
    if (parsed.ok) return { ok: true, value: parsed.value, bytes }
    if (bytes === 0) return { ok: true, value: undefined, bytes }
    return { ok: false, trouble: 'unreadable', detail: parsed.why }
  } catch (error) {
    if (error instanceof NetError) return judgeFault(error)
    throw error
  }
}

/** Of an answer that was too large its status and its start count. */
function readCut(reply: NetReply, now: number): Answer {
  const value = readStart(reply.body, deepestAnswer)
  const failure = judgeReply(reply, value, now)
  if (failure !== undefined) return failure
  return value === undefined ? tooLarge : { ok: true, value, bytes: reply.body.length, cut: true }
}

function unwrap(answer: Answer & { ok: true }, id: string): Answer {
  if (!isRecord(answer.value) || !('result' in answer.value))
    return answer.cut === true
      ? tooLarge
      : { ok: false, trouble: 'unreadable', detail: 'The answer is no JSON-RPC response.' }
  // JSON-RPC 2.0 section 5: the ids must be equal. Another one may mean another caller's answer.
  if (isGiven(answer.value.id) && String(answer.value.id) !== id) return wrongTask
  return { ...answer, value: answer.value.result }
}

const tooLarge: Failure = {
  ok: false,
  trouble: 'too_large',
  detail: `The answer is larger than ${limits.answerBytes} bytes, and its start does not show a state.`,
}

const wrongTask: Failure = {
  ok: false,
  trouble: 'wrong_task',
  detail: 'The agent answered for another task or request.',
}
