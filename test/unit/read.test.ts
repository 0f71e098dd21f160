// Every body that senders are known to push is read rightly, and nothing else passes for a push.
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseBody, readPush, readTask } from '../../shared/a2a/read.ts'
import { readState } from '../../shared/a2a/state.ts'

type Fixture = { sender: string; bodies: { name: string; body: unknown; reads: unknown }[] }

const folder = new URL('../fixtures/a2a/', import.meta.url)
const fixtures: Fixture[] = readdirSync(folder).map(name =>
  JSON.parse(readFileSync(new URL(name, folder), 'utf8')),
)

const taskId = 't-100'
const status = { state: 'TASK_STATE_COMPLETED' }
const statusUpdate = { taskId, contextId: 'c-1', status }

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

describe.each(fixtures)('a push of $sender', ({ bodies }) => {
  test.each(bodies)('$name', ({ body, reads }) => {
    const parsed = parseBody(encode(JSON.stringify(body)))
    expect(parsed.ok && readPush(parsed.value)).toEqual({ ok: true, push: reads })
  })
})

describe('what is no push is refused', () => {
  test.each<[name: string, body: unknown, why: RegExp]>([
    ['case 97: two members', { statusUpdate, task: { id: taskId, status } }, /more than one/],
    ['case 97: one member in both spellings', { statusUpdate, status_update: statusUpdate }, /more than one/],
    [
      'case 97: a member beside a 0.3 event',
      { kind: 'task', id: 't-9', status, statusUpdate },
      /more than one/,
    ],
    ['case 97: no member', { hello: 'world' }, /no task/],
    ['case 97: only null members', { statusUpdate: null, task: null }, /no task/],
    ['case 97: a member that is no object', { statusUpdate: 'done' }, /holds no task/],
    ['case 98: a JSON-RPC error', { jsonrpc: '2.0', id: 1, error: { code: -32603 } }, /without result/],
    [
      'case 98: JSON-RPC twice',
      { jsonrpc: '2.0', result: { jsonrpc: '2.0', result: { statusUpdate } } },
      /no task/,
    ],
    ['case 99: an array', [{ statusUpdate }, { statusUpdate }], /no JSON object/],
    ['case 99: an empty array', [], /no JSON object/],
    ['case 99: text', 'text', /no JSON object/],
    ['case 99: a number', 42, /no JSON object/],
    ['case 99: null', null, /no JSON object/],
    ['case 31: two task ids in one event', { taskId, task_id: 't-999', status }, /different tasks/],
    [
      'case 31: a task with a task id of its own',
      { task: { id: taskId, taskId: 't-999', status } },
      /different/,
    ],
    ['case 115: a number', { statusUpdate: { taskId: 1234567890123456, status } }, /not text/],
    ['case 115: true', { statusUpdate: { taskId: true, status } }, /not text/],
    ['case 115: an object', { statusUpdate: { taskId: { $ne: '' }, status } }, /not text/],
    ['case 115: empty', { statusUpdate: { taskId: '', status } }, /not text/],
    ['case 115: missing', { statusUpdate: { status } }, /names no task/],
    ['case 115: 5000 characters', { statusUpdate: { taskId: 't'.repeat(5000), status } }, /not text/],
    ['case 115: 257 bytes in fewer characters', { task: { id: 'ü'.repeat(129), status } }, /not text/],
    ['case 112: half a surrogate pair in the id', { task: { id: 't-\ud800', status } }, /not text/],
    ['a message with a numeric task id', { message: { messageId: 'm', taskId: 7 } }, /not text/],
  ])('%s', (_name, body, why) => {
    expect(readPush(body)).toEqual({ ok: false, why: expect.stringMatching(why) })
  })
})

test('ids are kept byte for byte: blanks and Unicode forms make other tasks', () => {
  for (const id of ['t-100 ', 'caf\u00e9', 'cafe\u0301', '../t', 'ü'.repeat(128)])
    expect(readPush({ task: { id, status } })).toMatchObject({ ok: true, push: { taskId: id } })
})

test('a context id that cannot be used costs its own absence only', () => {
  for (const contextId of [7, '', null, 'c'.repeat(300)])
    expect(readPush({ statusUpdate: { taskId, contextId, status } })).toEqual({
      ok: true,
      push: { kind: 'status', taskId, state: 'completed' },
    })
})

test.each<[spelling: unknown, state: string | undefined]>([
  ['input-required', 'input-required'],
  ['INPUT_REQUIRED', 'input-required'],
  ['TASK_STATE_INPUT_REQUIRED', 'input-required'],
  ['inputRequired', 'input-required'],
  ['auth-required', 'auth-required'],
  ['TASK_STATE_AUTH_REQUIRED', 'auth-required'],
  ['canceled', 'canceled'],
  ['cancelled', 'canceled'],
  ['TASK_STATE_CANCELED', 'canceled'],
  ['TASK_STATE_CANCELLED', 'canceled'],
  ['Completed', 'completed'],
  ['rejected', 'rejected'],
  ['unknown', 'unknown'],
  ['TASK_STATE_UNSPECIFIED', 'unknown'],
  ['TASK_STATE_FUTURE_THING', 'unknown'],
  ['constructor', 'unknown'],
  ['x'.repeat(100_000), 'unknown'],
  [0, 'unknown'],
  [3, 'completed'],
  [8, 'auth-required'],
  [9, 'unknown'],
  [-1, 'unknown'],
  [1.5, 'unknown'],
  [true, 'unknown'],
  [{}, 'unknown'],
  ['', undefined],
  [null, undefined],
  [undefined, undefined],
])('case 100: the state %s reads as %s', (spelling, state) => {
  expect(readState(spelling)).toBe(state)
})

describe('raw bytes', () => {
  const bomb = '{"metadata":'.repeat(10_000)

  test.each<[name: string, bytes: Uint8Array, why: RegExp]>([
    ['case 102: UTF-16', new Uint8Array(Buffer.from('{"task":{}}', 'utf16le')), /UTF-16/],
    ['case 102: UTF-16 with its mark', new Uint8Array(Buffer.from('\ufeff{}', 'utf16le')), /UTF-16/],
    ['case 102: a broken byte in a string', Uint8Array.of(0x22, 0xff, 0x22), /UTF-8/],
    ['case 106: nothing', new Uint8Array(), /empty/],
    ['case 106: blanks', encode('   '), /not JSON/],
    ['half an object', encode('{"task":'), /not JSON/],
    ['two values', encode('{}{}'), /not JSON/],
    ['case 110: nested too deep', encode(bomb), /deeper/],
    ['case 110: 65 levels', encode('['.repeat(65) + ']'.repeat(65)), /deeper/],
  ])('%s is refused', (_name, bytes, why) => {
    expect(parseBody(bytes)).toEqual({ ok: false, why: expect.stringMatching(why) })
  })

  test('a byte order mark is no fault', () => {
    expect(parseBody(encode('\ufeff{"a":1}'))).toEqual({ ok: true, value: { a: 1 } })
  })

  test('64 levels are taken, and brackets in text are not counted', () => {
    expect(parseBody(encode('['.repeat(64) + ']'.repeat(64))).ok).toBe(true)
    expect(parseBody(encode(`{"a":"\\"${'['.repeat(100)}\\\\"}`)).ok).toBe(true)
    expect(parseBody(encode('[[[]]]'), 2).ok).toBe(false)
  })

  test('case 114: of a name that occurs twice, the last value is the one that everybody reads', () => {
    const twice = '{"statusUpdate":{"taskId":"t-999","taskId":"t-100","status":{"state":"completed"}}}'
    const parsed = parseBody(encode(twice))
    expect(parsed.ok && readPush(parsed.value)).toMatchObject({ push: { taskId: 't-100' } })
  })

  test('case 111: names with a meaning in JavaScript change nothing and name nothing', () => {
    const hostile =
      '{"__proto__":{"task":{"id":"x","status":{}},"isAdmin":true},"constructor":{"prototype":{"x":1}}}'
    const parsed = parseBody(encode(hostile))
    expect(parsed.ok && readPush(parsed.value)).toMatchObject({ ok: false })
    expect({}).not.toHaveProperty('isAdmin')
    expect({}).not.toHaveProperty('x')
  })

  test('case 112: half a surrogate pair elsewhere in the body is no fault', () => {
    const parsed = parseBody(encode('{"task":{"id":"t-1","status":{"state":"completed"},"x":"\\ud800"}}'))
    expect(parsed.ok && readPush(parsed.value)).toMatchObject({ ok: true })
  })
})

describe('a task in an answer', () => {
  const timestamp = '2026-03-09T14:05:27.318Z'
  const task = { id: taskId, contextId: 'c-1', status: { state: 'TASK_STATE_WORKING', timestamp } }
  const reading = { id: taskId, contextId: 'c-1', state: 'working', timestamp, raw: task }

  test('reads bare and wrapped, and keeps the agent’s own object', () => {
    expect(readTask(task)).toEqual(reading)
    expect(readTask({ task })).toEqual(reading)
  })

  test('reads in the spelling of 0.3', () => {
    const old = { kind: 'task', id: taskId, contextId: '', status: { state: 'input-required' } }
    expect(readTask(old)).toEqual({ id: taskId, state: 'input-required', raw: old })
  })

  test('a missing state is unknown, never an old one', () => {
    expect(readTask({ id: taskId, status: {} })).toMatchObject({ state: 'unknown' })
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a list', [task]],
    ['a message', { kind: 'message', messageId: 'm-1', role: 'agent', parts: [] }],
    ['a task without a status', { id: taskId }],
    ['a task without an id', { status }],
    ['a numeric id', { id: 7, status }],
  ])('%s is no task', (_name, value) => {
    expect(readTask(value)).toBeUndefined()
  })
})
