// What the start of too large an answer shows of a task: its state where it stands there, never a guess, wherever the cut goes.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readTask } from '../../shared/a2a/read.ts'
import { readStart, readTaskStart } from '../../shared/a2a/start.ts'

const startOf = (text: string) => readStart(Buffer.from(text), 64)

/** The state that a start shows, and what else is known. */
const seen = (text: string) => {
  const task = readTaskStart(startOf(text), 't-1')
  return task && { id: task.id, state: task.state, tooLarge: task.tooLarge }
}

const done = { id: 't-1', state: 'completed', tooLarge: true }

describe('the start of an answer that was too large', () => {
  test.each<[what: string, text: string]>([
    ['1.0', '{"id":"t-1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"parts":[{"text":"xx'],
    ['0.3', '{"kind":"task","id":"t-1","status":{"state":"completed"},"artifacts":[[['],
    ['a wrapped task', '{"task":{"id":"t-1","status":{"state":"completed"},"artifacts":[{"'],
    ['an id behind the cut', '{"status":{"state":"completed"},"artifacts":['],
    ['a status that is text', '{"id":"t-1","status":"completed","artifacts":['],
    ['blanks, a byte order mark and an escaped name', '\ufeff {"st\\u0061tus" : {"state"\n:"completed"} , '],
    ['artifacts first', '{"artifacts":[{"parts":[{"text":"a\\"]}"}]}],"status":{"state":"completed"},"x":'],
    [
      'what looks like a state in texts and other members',
      '{"metadata":{"status":{"state":"failed"}},"a":"\\"status\\":{\\"state\\":\\"failed\\"}","history":[{"status":{"state":"failed"}}],"status":{"message":{"parts":[{"state":"failed"}],"messageId":"m"},"state":"completed"},"artifacts":[',
    ],
    ['a state said twice', '{"status":{"state":"working"},"status":{"state":"completed"},"artifacts":['],
  ])('shows the state: %s', (_what, text) => {
    expect(seen(text)).toEqual(done)
  })

  test.each<[what: string, text: string]>([
    ['a state behind the cut', '{"id":"t-1","artifacts":[{"parts":[{"text":"xx'],
    ['a state that the cut goes through', '{"id":"t-1","status":{"state":"comp'],
    ['a number that may go on', '{"id":"t-1","status":{"state":3'],
    ['a status without a state so far', '{"id":"t-1","status":{"message":{"parts":[{"text":"xx'],
    ['an empty state', '{"id":"t-1","status":{"state":""},"artifacts":['],
    ['a state that was taken back', '{"status":{"state":"completed"},"status":[1],"artifacts":['],
    ['a state that stands too deep', '{"result":{"task":{"task":{"task":{"status":{"state":"completed"}'],
    ['a list', '[{"status":{"state":"completed"}},'],
    ['no JSON', '<html>{"status":{"state":"completed"}}'],
    ['two texts', '{}{"status":{"state":"completed"}'],
    ['a comma too many', '{"status":{"state":"completed"},,"a":'],
    ['a bracket of the other kind', '{"status":{"state":"completed"},"a":[}'],
    ['a name without its value', '{"status":{"state":"completed"},"a"}'],
    ['too deep a text', `{"status":{"state":"completed"},"a":${'['.repeat(65)}`],
    ['nothing', ''],
  ])('shows none: %s', (_what, text) => {
    expect(seen(text)).toBeUndefined()
  })

  test('shows an error, and which request it answers', () => {
    const text = '{"jsonrpc":"2.0","id":"t-1","error":{"code":-32001,"message":"No such task","data":["xx'
    expect(startOf(text)).toEqual({ id: 't-1', error: { code: -32001, message: 'No such task' } })
  })

  test('is no text in another encoding than UTF-8', () => {
    const text = Buffer.from('{"id":"t-\xff","status":{"state":"completed"},', 'latin1')
    expect(readStart(text, 64)).toBeUndefined()
  })

  test('never shows another state than the whole does, wherever the cut goes', () => {
    const names = fc.constantFrom('id', 'status', 'state', 'task', 'message', 'x', '"state":"failed"', '\\')
    const { tree } = fc.letrec<{ tree: unknown }>(tie => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        fc.string(),
        fc.integer(),
        fc.constantFrom('completed', null, true),
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(names, tie('tree'), { maxKeys: 4 }),
      ),
    }))
    const status = fc.record({ message: tree, state: fc.constantFrom('working', 'failed', 6, '') })
    const task = fc
      .record({ artifacts: tree, status, metadata: tree, x: tree })
      .chain(parts => fc.shuffledSubarray(Object.entries(parts), { minLength: 4 }))
    const cutAt = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(task, cutAt, (members, share) => {
        const whole = JSON.stringify({ ...Object.fromEntries(members), id: 't-1' })
        const bytes = Buffer.from(whole)
        const cut = readTaskStart(readStart(bytes.subarray(0, Math.floor(bytes.length * share)), 64), 't-1')
        if (cut !== undefined) expect(cut.state).toBe(readTask(JSON.parse(whole))?.state)
      }),
      { numRuns: 500 },
    )
  })
})
