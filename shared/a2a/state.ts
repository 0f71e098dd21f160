// Reads a task state in whatever spelling an agent writes it. Pure.
import type { TaskState } from './task.ts'

/** Spellings without prefix, case and separators: both versions, both numbers of Ls, the proto's name for "not said". */
const spellings: ReadonlyMap<string, TaskState> = new Map([
  ['submitted', 'submitted'],
  ['working', 'working'],
  ['inputrequired', 'input-required'],
  ['authrequired', 'auth-required'],
  ['completed', 'completed'],
  ['failed', 'failed'],
  ['canceled', 'canceled'],
  ['cancelled', 'canceled'],
  ['rejected', 'rejected'],
  ['unknown', 'unknown'],
  ['unspecified', 'unknown'],
])

/** ProtoJSON readers must take enum numbers too; `TaskState` is numbered alike in v0.3 and v1.0. */
const numbers: readonly TaskState[] = [
  'unknown',
  'submitted',
  'working',
  'completed',
  'failed',
  'canceled',
  'input-required',
  'rejected',
  'auth-required',
]

const longest = 64

/**
 * Reads a state: `input-required`, `INPUT_REQUIRED`, `TASK_STATE_INPUT_REQUIRED` and 6 are one.
 * @returns undefined when none is given (ProtoJSON leaves the zero value out), `unknown` for one that we do not know
 */
export function readState(value: unknown): TaskState | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'number') return numbers[value] ?? 'unknown'
  if (typeof value !== 'string' || value.length > longest) return 'unknown'
  const name = value
    .toLowerCase()
    .replace(/^task[-_]?state[-_]?/, '')
    .replace(/[-_ ]/g, '')
  return spellings.get(name) ?? 'unknown'
}
