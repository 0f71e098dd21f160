// Prints what was measured as one table, each row with what it is measured against, and tells which budgets were kept.

export type Row = {
  what: string
  value: string
  /** What it is measured against, and that one's value. */
  against: string
  base: string
  /** Shares of what it is measured against, one a round. */
  ratios?: number[]
  budget?: Budget
}

/** Counts and bytes are the same on every machine and always decide; ratios of times decide when they are told to. */
export type Budget = { kind: 'count' | 'bytes' | 'ratio'; says: string; kept: boolean }

/** The value at a share of the sorted values. */
export const quantile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? Number.NaN

export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** A budget of so many times what it is measured against. */
export const atMost = (kind: 'bytes' | 'ratio', most: number, ratios: readonly number[]): Budget => ({
  kind,
  says: `≤ ${most.toFixed(2)}`,
  kept: median(ratios) <= most,
})

/** Prints the rows. @returns whether every budget that decides was kept */
export function print(rows: readonly Row[], strict: boolean): boolean {
  const cells = rows.map(({ what, value, against, base, ratios, budget }) => [
    what,
    value,
    against,
    base,
    ratios === undefined ? '' : median(ratios).toFixed(2),
    ratios === undefined || ratios.length < 3 ? '' : spread(ratios),
    budget === undefined ? '' : `${budget.says} ${budget.kept ? 'kept' : 'BROKEN'}`,
  ])
  const heads = ['what', 'measured', 'against', 'its value', 'ratio', 'middle half', 'budget']
  const widths = heads.map((_, column) =>
    Math.max(...[heads, ...cells].map(row => (row[column] ?? '').length)),
  )
  for (const row of [heads, widths.map(width => '-'.repeat(width)), ...cells])
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  const broken = rows.filter(({ budget }) => budget?.kept === false)
  const decisive = broken.filter(({ budget }) => strict || budget?.kind !== 'ratio')
  console.log(verdict(broken.length, decisive.length))
  return decisive.length === 0
}

const spread = (ratios: readonly number[]): string =>
  `${quantile(ratios, 0.25).toFixed(2)} … ${quantile(ratios, 0.75).toFixed(2)}`

function verdict(broken: number, decisive: number): string {
  if (broken === 0) return '\nEvery budget is kept.'
  if (decisive > 0) return `\nBroken budgets that decide: ${decisive}.`
  return `\nRatios above their budget: ${broken}. Run it again on a quieter machine; with --strict they decide.`
}
