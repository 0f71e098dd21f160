// Tables of pushes and what becomes of them: a further case costs a line. Knows vitest, no room beyond the reasons.
import { describe, expect, test } from 'vitest'
import type { Reason } from '../../shared/reasons.ts'
import { outcome, type Push, present } from './pushes.ts'

/** Number in the project's list of failure cases (0 for a rule of our own), guarantee, push, what becomes of it. */
export type Row = readonly [
  number: number,
  says: string,
  push: Push | (() => Push),
  gives: 'accepted' | Reason,
]

/** One test a row. */
export function judged(title: string, rows: readonly Row[]): void {
  const named = rows.map(([number, ...row]) => [number === 0 ? 'rule' : `case ${number}`, ...row] as const)
  describe(title, () => {
    test.each(named)('%s: %s', async (_number, _says, push, gives) => {
      const { proof } = await present(typeof push === 'function' ? push() : push)
      expect(outcome(proof)).toBe(gives)
    })
  })
}
