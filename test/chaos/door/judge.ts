// Says of a cell whether its push was lost, doubled or treated wrongly. Pure.
import { isTerminal } from '../../../shared/a2a/task.ts'
import { type Cell, isKill, stateOf } from './cells.ts'
import { isTaken, type Seen } from './round.ts'
import { fetchKeys, message } from './steps.ts'

export type Verdict = Seen & {
  lost: boolean
  doubled: boolean
  /** What was wrong, in words. */
  wrong: string[]
  /** The push was never taken, and its sender knows. */
  refused: boolean
  /** Looks more than needed before the floor. */
  extra: number
}

export function judge(seen: Seen): Verdict {
  const { answers, owned, told } = seen
  const taken = answers.some(isTaken)
  const extra = extraLooks(seen)
  return {
    ...seen,
    lost: (taken || owned) && isLost(seen),
    doubled: told.last.length > 1,
    wrong: faults(seen, extra),
    refused: !taken && !owned,
    extra,
  }
}

export const isBad = ({ lost, doubled, wrong }: Verdict): boolean => lost || doubled || wrong.length > 0

/** News and unknown tasks are looked at within two ticks, everything else by its floor; whoever waits is told then. */
function isLost({ cell, looks, told }: Seen): boolean {
  const presses = cell.subject !== 'working'
  return presses ? looks.ticked === 0 || told.ticked.length === 0 : looks.last === 0 || told.last.length === 0
}

/** A task that goes on is looked at again a minute after it changed, whatever was pushed. */
function extraLooks({ cell, looks: { first, ticked } }: Seen): number {
  const due = first === 0 || !isTerminal(stateOf(cell)) ? 1 : 0
  return Math.max(0, first - 1) + Math.max(0, ticked - first - due)
}

function faults({ cell, sender, answers, uncovered, struck, told }: Seen, extra: number): string[] {
  const [first = 0] = answers
  const heard = answers.filter(status => status !== 0)
  const found: [boolean, string][] = [
    [!struck, 'the fault did not come to pass'],
    [uncovered, '2xx without record and message'],
    [first === 200, 'called a copy of itself'],
    [heard.some(status => !rightOf(cell).includes(status)), 'a genuine push was refused'],
    [heard.length < answers.length && !isKill(cell), 'no answer'],
    [isHarmless(cell) && !isTaken(first), 'refused for what a second attempt mends'],
    [sender === 'again' && !answers.some(isTaken), 'refused though all was well again'],
    [told.last.some(state => state !== stateOf(cell)), 'another state was told'],
    [extra > 0 && !mayLookMore(cell), 'looked more than needed'],
  ]
  return found.filter(([is]) => is).map(([, words]) => words)
}

/** How a genuine push may be answered. */
const rightOf = ({ scene }: Cell): number[] => (scene === 'large' ? [413, 503] : [200, 202, 503])

/** One attempt of two goes wrong, and nothing else. */
const isHarmless = ({ weather, how }: Cell): boolean => weather === 'clear' && how.startsWith('blip')

/**
 * With the table away or its answer lost copies are not known as such; so is a message whose answer was lost (a standard
 * queue takes it twice); and a killed door may have left both a record and a message.
 */
function mayLookMore(cell: Cell): boolean {
  const { weather, step, how } = cell
  if (weather === 'table away' || weather === 'both away' || isKill(cell)) return true
  if (step === message) return how === 'blip after' || how === 'fail after' || how === 'late'
  return step !== undefined && !step.startsWith(fetchKeys)
}
