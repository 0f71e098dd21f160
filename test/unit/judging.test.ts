// An answer that judging breaks on is a trouble like any that cannot be read, so that the budgets of its task are judged all the same.
import { expect, test } from 'vitest'
import { judge } from '../../shared/saving.ts'
import { watchWith } from '../support/watches.ts'

test('an answer that cannot be judged is one that cannot be read', () => {
  const raw = {
    get status(): never {
      throw new RangeError('too much of it')
    },
  }
  const judged = judge(watchWith(), { id: 't', state: 'working', raw }, 0)
  expect(judged).toMatchObject({
    ok: false,
    trouble: 'unreadable',
    detail: expect.stringContaining('too much'),
  })
})
