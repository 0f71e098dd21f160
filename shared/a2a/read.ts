// Reads push bodies and tasks of either protocol version, whoever wrote them. Pure, without zod: it is part of the receive bundle.
import { limits } from '../limits.ts'
import { readState } from './state.ts'
import type { PushReading, Task } from './task.ts'

// What readPush takes. No sender announces a version (a2a-js issue 647), so the shape alone decides; explicit nulls count as absent.
//
// | body                                                      | kind                            | task id from             | state from         |
// | --------------------------------------------------------- | ------------------------------- | ------------------------ | ------------------ |
// | v1.0 StreamResponse (section 4.3.3), camelCase or snake_case |                              |                          |                    |
// |   { task }                                                | task                            | id                       | status.state       |
// |   { statusUpdate } / { artifactUpdate } / { message }     | status / artifact / message     | taskId                   | status.state / – / – |
// | v0.3 `kind`: task, status-update, artifact-update, message | as named                       | id or taskId             | status.state       |
// | neither; in this order: id + status, taskId + status,     | task, status,                   | id or taskId             | status.state       |
// |   taskId + artifact, role + messageId                     |   artifact, message             |                          |                    |
// | { task_id, status: "completed" } (early Go example)       | status                          | task_id                  | status             |
// | { jsonrpc, result or params: one of these }, unwrapped once | as inside                       | as inside                | as inside          |
//
// Refused: arrays and scalars, none or several of the above at once, a JSON-RPC error, a missing task id (but in a message),
// an id that is not text of 1 to 256 bytes without control characters, and id fields of one event that differ. Only the event's own id counts:
// ids in metadata or in a status message are never used, so they are not judged either.

const deepestBody = 64

/**
 * Parses raw bytes as JSON: UTF-8 only, with or without a byte order mark, nested no deeper than `deepest`.
 * Of a name that occurs twice the last value counts, here and everywhere: all later reading is of this one value.
 * `__proto__` becomes a plain property and changes no prototype.
 * @param deepest most brackets that may be open at once
 */
export function parseBody(
  bytes: Uint8Array,
  deepest = deepestBody,
): { ok: true; value: unknown } | { ok: false; why: string } {
  if (bytes.length === 0) return refuse('The body is empty.')
  if (looksUtf16(bytes))
    return refuse('The body is UTF-16; JSON is exchanged in UTF-8 (RFC 8259 section 8.1).')
  // Judged before parsing: what was parsed too deep would break every recursive walk after it.
  if (isDeeper(bytes, deepest)) return refuse(`The body is nested deeper than ${deepest} levels.`)
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return { ok: true, value: JSON.parse(text) }
  } catch (error) {
    return refuse(error instanceof SyntaxError ? 'The body is not JSON.' : 'The body is not UTF-8.')
  }
}

/** Reads a push body, already parsed, as a hint: which task, and the state it names. Never throws. */
export function readPush(body: unknown): { ok: true; push: PushReading } | { ok: false; why: string } {
  if (!isRecord(body)) return refuse('The body is no JSON object.')
  // Senders wrap an event like an answer, or like a notification of JSON-RPC (section 4.1), which has no result.
  const frame = isGiven(body.jsonrpc) ? (body.result ?? body.params) : body
  if (!isRecord(frame)) return refuse('The body is a JSON-RPC message without result and params.')
  const found = findEvents(frame)
  const [first] = found
  if (first === undefined) return refuse('The body holds no task, statusUpdate, artifactUpdate or message.')
  if (found.length > 1) return refuse('The body holds more than one event.')
  const { kind, event } = first
  if (!isRecord(event)) return refuse('The event in the body is no JSON object.')
  const ids = [...(kind === 'task' ? [event.id] : []), event.taskId, event.task_id].filter(isGiven)
  // Proto's unset string is the empty one, and a message need not belong to a task (section 4.1.4).
  const named = kind === 'message' ? ids.filter(id => id !== '') : ids
  const [taskId] = named
  if (taskId === undefined && kind !== 'message') return refuse('The body names no task.')
  if (!named.every(isId))
    return refuse(`The task id is not text of 1 to ${limits.taskIdBytes} bytes without control characters.`)
  if (named.some(id => id !== taskId)) return refuse('The body names different tasks.')
  const state = kind === 'task' || kind === 'status' ? stateOf(event) : undefined
  return {
    ok: true,
    push: {
      kind,
      ...(isId(taskId) && { taskId }),
      ...contextOf(event),
      ...(state !== undefined && { state }),
    },
  }
}

/**
 * Reads an agent's answer as a task: bare as GetTask gives it, or wrapped in `{ task }` as SendMessage does.
 * @returns undefined if it is no task; a state that is missing or new to us reads as `unknown`
 */
export function readTask(value: unknown): Task | undefined {
  if (!isRecord(value)) return undefined
  const raw = isRecord(value.task) && !isGiven(value.id) ? value.task : value
  if (!isId(raw.id) || !isGiven(raw.status)) return undefined
  const timestamp = isRecord(raw.status) ? raw.status.timestamp : undefined
  return {
    id: raw.id,
    ...contextOf(raw),
    state: stateOf(raw) ?? 'unknown',
    ...(typeof timestamp === 'string' && timestamp.length <= 64 && { timestamp }),
    raw,
  }
}

/** True for JSON objects. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** False for what JSON leaves out or says null for. */
export const isGiven = (value: unknown): boolean => value !== undefined && value !== null

type Kind = PushReading['kind']
type Found = { kind: Kind; event: unknown }

const members: readonly (readonly [Kind, string])[] = [
  ['task', 'task'],
  ['status', 'statusUpdate'],
  ['status', 'status_update'],
  ['artifact', 'artifactUpdate'],
  ['artifact', 'artifact_update'],
  ['message', 'message'],
]

const kinds: ReadonlyMap<unknown, Kind> = new Map([
  ['task', 'task'],
  ['status-update', 'status'],
  ['artifact-update', 'artifact'],
  ['message', 'message'],
])

function findEvents(frame: Record<string, unknown>): Found[] {
  const found: Found[] = []
  // Text or a number under such a name is a field that we do not know, beside the event.
  for (const [kind, name] of members)
    if (typeof frame[name] === 'object' && frame[name] !== null) found.push({ kind, event: frame[name] })
  const named = kinds.get(frame.kind)
  const kind = named ?? (found.length === 0 ? guessKind(frame) : undefined)
  if (kind !== undefined) found.push({ kind, event: frame })
  return found
}

/** Tells an event without `kind` by its fields, in the order that a2a-java's reader uses. */
function guessKind(frame: Record<string, unknown>): Kind | undefined {
  const ofTask = isGiven(frame.taskId) || isGiven(frame.task_id)
  if (isGiven(frame.id) && isGiven(frame.status)) return 'task'
  if (ofTask && isGiven(frame.status)) return 'status'
  if (ofTask && isGiven(frame.artifact)) return 'artifact'
  if (isGiven(frame.role) && (isGiven(frame.messageId) || isGiven(frame.message_id))) return 'message'
  return undefined
}

const stateOf = ({ status }: Record<string, unknown>) => readState(isRecord(status) ? status.state : status)

function contextOf(event: Record<string, unknown>): { contextId?: string } {
  const contextId = event.contextId ?? event.context_id
  return isId(contextId) ? { contextId } : {}
}

/**
 * Ids are compared as they are; one with half a surrogate pair could not be stored and sent unchanged, and one with a
 * control character could not be named in the API.
 */
export const isId = (value: unknown): value is string =>
  typeof value === 'string' &&
  value !== '' &&
  /^[^\p{Cc}\p{Cs}]*$/u.test(value) &&
  Buffer.byteLength(value) <= limits.taskIdBytes

const refuse = (why: string): { ok: false; why: string } => ({ ok: false, why })

const looksUtf16 = ([first, second]: Uint8Array): boolean =>
  first === 0 || second === 0 || (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)

function isDeeper(bytes: Uint8Array, deepest: number): boolean {
  let depth = 0
  let inText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (inText) {
      if (byte === 0x5c) at++
      else if (byte === 0x22) inText = false
    } else if (byte === 0x22) inText = true
    else if (byte === 0x7b || byte === 0x5b) depth++
    else if (byte === 0x7d || byte === 0x5d) depth--
    if (depth > deepest) return true
  }
  return false
}
