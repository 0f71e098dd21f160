// Reads from the start of an answer that was cut off what it shows of a task: its ids and its state, or an error. Pure.
import { isGiven, isRecord, readTask } from './read.ts'
import { readState } from './state.ts'
import type { Task } from './task.ts'

/** Members that are kept where they stand in one another; all else is stepped over, lists as a whole. */
const kept: ReadonlySet<string> = new Set([
  ...[
    'id',
    'result',
    'task',
    'status',
    'state',
    'timestamp',
    'contextId',
    'context_id',
    'message',
    'messageId',
  ],
  ...['message_id', 'error', 'code', 'title', 'detail'],
])

/** Answer, result, task, status and message. */
const deepestKept = 5
const longestText = 1024

/**
 * Reads the start of a JSON text in UTF-8, token by token: what looks like a member inside a text is none. A value that
 * the cut goes through is not there; of a name that occurs twice the last value counts.
 * @param deepest most brackets that may be open at once
 * @returns undefined if it is no JSON object so far
 */
export function readStart(bytes: Uint8Array, deepest: number): Record<string, unknown> | undefined {
  const open: Frame[] = [{ list: true, wants: 'value', empty: true }]
  const root: Record<string, unknown> = {}
  try {
    for (const token of tokensOf(bytes)) {
      const frame = open.at(-1)
      if (frame === undefined || !isInPlace(frame, token, open.length)) return undefined
      if (token.of === '}' || token.of === ']') open.pop()
      else if (token.of === '{' || token.of === '[') {
        const inner = open.length === 1 ? root : innerOf(frame, token, open.length)
        open.push(frameOf(token.of === '[', inner))
        if (open.length > deepest + 1) return undefined
      } else if (token.of === 'text' || token.of === 'scalar') keep(frame, token, bytes)
      advance(frame, token)
    }
  } catch {
    return undefined
  }
  return open.length > 1 || open[0]?.wants === 'next' ? root : undefined
}

/**
 * The task that the start of an answer shows; an id behind the cut is taken for the one that was asked for.
 * @returns undefined if its state stands behind the cut
 */
export function readTaskStart(value: unknown, taskId: string): Task | undefined {
  if (!isRecord(value)) return undefined
  const raw = isRecord(value.task) && !isGiven(value.id) ? value.task : value
  if (readState(isRecord(raw.status) ? raw.status.state : raw.status) === undefined) return undefined
  const task = readTask({ ...raw, id: raw.id ?? taskId })
  return task && { ...task, tooLarge: true }
}

type Token = { of: '{' | '}' | '[' | ']' | ',' | ':' | 'text' | 'scalar'; from: number; to: number }

/** A bracket that is open. */
type Frame = {
  list: boolean
  wants: 'name' | 'colon' | 'value' | 'next'
  /** Nothing stands in it yet, so it may close. */
  empty: boolean
  /** Where its members are kept, if they are, and the name of the one whose value comes next. */
  into?: Record<string, unknown>
  name?: string
}

const frameOf = (list: boolean, into: Record<string, unknown> | undefined): Frame => ({
  ...{ list, wants: list ? 'value' : 'name', empty: true },
  ...(into !== undefined && !list && { into }),
})

/** True when the grammar takes a token there (RFC 8259). The outermost frame stands for the whole text: one object. */
function isInPlace(frame: Frame, { of }: Token, depth: number): boolean {
  if (depth === 1) return of === '{' && frame.wants === 'value'
  if (of === '}' || of === ']') return frame.list === (of === ']') && (frame.wants === 'next' || frame.empty)
  if (of === ',') return frame.wants === 'next'
  if (of === ':') return frame.wants === 'colon'
  return frame.wants === 'value' || (frame.wants === 'name' && of === 'text')
}

function advance(frame: Frame, { of }: Token): void {
  if (of === '}' || of === ']') return
  frame.empty = false
  if (of === ',') frame.wants = frame.list ? 'value' : 'name'
  else if (of === ':') frame.wants = 'value'
  else frame.wants = frame.wants === 'name' ? 'colon' : 'next'
}

/** Where the members of an object within a kept one are kept. Whatever stood there under its name counts no more. */
function innerOf({ into, name }: Frame, { of }: Token, depth: number): Record<string, unknown> | undefined {
  if (into === undefined || name === undefined) return undefined
  const inner = of === '{' && depth <= deepestKept ? {} : undefined
  into[name] = inner
  return inner
}

function keep(frame: Frame, { of, from, to }: Token, bytes: Uint8Array): void {
  const { into } = frame
  if (into === undefined) return
  const read = (): unknown =>
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(from, to)))
  const value = to - from > longestText ? undefined : read()
  if (frame.wants === 'value') {
    if (frame.name !== undefined) into[frame.name] = value
  } else if (of === 'text' && typeof value === 'string' && kept.has(value)) frame.name = value
  else delete frame.name
}

const isBlank = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
const marks = new Map<number | undefined, Token['of']>([
  [0x7b, '{'],
  [0x7d, '}'],
  [0x5b, '['],
  [0x5d, ']'],
  [0x2c, ','],
  [0x3a, ':'],
])
const quote = 0x22
const backslash = 0x5c

/** The tokens that stand there whole. A number at the very end may go on behind it. */
function* tokensOf(bytes: Uint8Array): Generator<Token> {
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  for (let at = marked ? 3 : 0; at < bytes.length; ) {
    const from = at
    const byte = bytes[at] ?? 0
    const mark = marks.get(byte)
    if (isBlank(byte)) at += 1
    else if (mark !== undefined) yield { of: mark, from, to: ++at }
    else {
      at = byte === quote ? endOfText(bytes, at) : endOfScalar(bytes, at)
      if (at > bytes.length) return
      yield { of: byte === quote ? 'text' : 'scalar', from, to: at }
    }
  }
}

/** Goes from quote to quote: a text may be megabytes. */
function endOfText(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(quote, from + 1); at > 0; at = bytes.indexOf(quote, at + 1)) {
    let before = at
    while (bytes[before - 1] === backslash) before -= 1
    if ((at - before) % 2 === 0) return at + 1
  }
  return bytes.length + 1
}

/** Whatever is longer than a number can sensibly be counts as cut: nothing behind it is read. */
function endOfScalar(bytes: Uint8Array, from: number): number {
  for (let at = from; at < Math.min(bytes.length, from + longestText); at++)
    if (isBlank(bytes[at]) || marks.has(bytes[at])) return at
  return bytes.length + 1
}
