// Prints verdicts as a table: step by fault by sender, all subjects of a row together. Decides nothing.
import type { Cell } from './cells.ts'
import type { Verdict } from './judge.ts'

const columns = ['cells', 'lost', 'doubled', 'wrong', 'refused', 'extra looks', 'answers'] as const

/** @returns lines of equal width, the last one for all of them */
export function tableOf(verdicts: readonly Verdict[]): string {
  const groups = Map.groupBy(verdicts, nameOf)
  const rows = [...groups].map(([name, group]) => [...name.split('\t'), ...numbersOf(group)])
  const head = ['door', 'await', 'fault', 'sender', ...columns]
  const sum = ['all', '', '', '', ...numbersOf(verdicts)]
  const all = [head, ...rows, sum]
  const widths = head.map((_, at) => Math.max(...all.map(row => row[at]?.length ?? 0)))
  return all
    .map(row =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function nameOf({ cell, sender }: Verdict): string {
  const { scene, weather, step, how } = cell
  const place = weather === 'clear' ? scene : `${scene}, ${weather}`
  return [place, step ?? '', how, sender].join('\t')
}

function numbersOf(group: readonly Verdict[]): string[] {
  const count = (is: (verdict: Verdict) => boolean): string => String(group.filter(is).length)
  return [
    String(group.length),
    count(({ lost }) => lost),
    count(({ doubled }) => doubled),
    count(({ wrong }) => wrong.length > 0),
    count(({ refused }) => refused),
    String(group.reduce((sum, { extra }) => sum + extra, 0)),
    answersOf(group),
  ]
}

/** How often each status came; a connection that broke is called so. */
function answersOf(group: readonly Verdict[]): string {
  const counts = Map.groupBy(
    group.flatMap(({ answers }) => answers),
    status => status,
  )
  return [...counts]
    .sort(([a], [b]) => a - b)
    .map(([status, all]) => `${status === 0 ? 'broken' : status}:${all.length}`)
    .join(' ')
}

/** One line for a cell that went wrong. */
export function lineOf({ cell, sender, lost, doubled, wrong, answers, looks, told }: Verdict): string {
  const what = [...(lost ? ['lost'] : []), ...(doubled ? ['doubled'] : []), ...wrong].join(', ')
  return `${what}: ${placeOf(cell)}, ${sender}; answers ${answers}; looks ${JSON.stringify(looks)}; told ${told.last}`
}

const placeOf = ({ scene, weather, step, how, subject }: Cell): string =>
  [scene, weather, step ?? '', how, subject].filter(Boolean).join(' / ')
