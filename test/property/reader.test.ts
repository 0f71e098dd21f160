// Whatever arrives, the reader neither throws nor names a task that the sender did not.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseBody, readPush, readTask } from '../../shared/a2a/read.ts'

const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null))
const id = fc.oneof({ weight: 4, arbitrary: fc.string({ minLength: 1 }) }, scalar, fc.jsonValue())

/** Events made of the names that the reader looks for, in any mixture, so that it gets past its first questions. */
const event = fc.record(
  {
    id,
    taskId: id,
    task_id: id,
    contextId: id,
    status: fc.oneof(fc.record({ state: scalar, message: fc.record({ taskId: id }) }), scalar),
    artifact: fc.jsonValue(),
    role: fc.constant('agent'),
    messageId: id,
    kind: fc.oneof(fc.constantFrom('task', 'status-update', 'artifact-update', 'message'), scalar),
    metadata: fc.jsonValue(),
  },
  { requiredKeys: [] },
)

const members = ['task', 'statusUpdate', 'status_update', 'artifactUpdate', 'artifact_update', 'message']
const frame = fc.oneof(
  event,
  fc.dictionary(fc.constantFrom(...members), fc.oneof(event, scalar), { minKeys: 1, maxKeys: 2 }),
)
const body = fc.oneof(
  { weight: 4, arbitrary: frame },
  fc.record({ jsonrpc: fc.constant('2.0'), result: frame }),
  fc.jsonValue(),
)

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : []
}

test('a task id that is read stands in the body as a string', () => {
  let named = 0
  fc.assert(
    fc.property(body, value => {
      const reading = readPush(value)
      if (!reading.ok || reading.push.taskId === undefined) return
      named++
      expect(stringsIn(value)).toContain(reading.push.taskId)
    }),
    { numRuns: 5000 },
  )
  expect(named).toBeGreaterThan(100)
})

test('a task that is read out of an answer stands in it', () => {
  fc.assert(
    fc.property(body, value => {
      const task = readTask(value)
      if (task !== undefined) expect(stringsIn(value)).toContain(task.id)
    }),
    { numRuns: 2000 },
  )
})

test('nothing at all makes the reader throw, JSON or not', () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true }), value => {
      expect(readPush(value).ok).toBeTypeOf('boolean')
      readTask(value)
    }),
  )
})

test('any bytes are parsed or refused', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), bytes => {
      expect(parseBody(bytes).ok).toBeTypeOf('boolean')
    }),
  )
})

test('parsing JSON gives what JSON.parse gives, and the depth is the one that was asked for', () => {
  const depthOf = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), fc.integer({ min: 1, max: 8 }), (value, deepest) => {
      const bytes = new TextEncoder().encode(JSON.stringify(value))
      const parsed = parseBody(bytes, deepest)
      expect(parsed.ok).toBe(depthOf(value) <= deepest)
      if (parsed.ok) expect(parsed.value).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
})
