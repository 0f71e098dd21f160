// Prints the bills side by side, and below them what was counted.
import type { DoorName } from '../../../infra/topology.ts'
import type { Bill } from './bill.ts'
import type { Load, Spent } from './loads.ts'

export type Priced = { name: string; load: Load; bill: Bill; budget: number }

const width = 11

/** @returns whether every budget is kept */
export function print(priced: Priced[]): boolean {
  const line = (what: string, of: (one: Priced) => string | number | undefined): void => {
    const cells = priced.map(one => {
      const value = of(one)
      return (typeof value === 'number' ? value.toFixed(2) : (value ?? '')).padStart(width)
    })
    console.log(what.padEnd(30) + cells.join(''))
  }
  console.log('\nUSD per million notices, us-east-1, on demand, under load\n')
  line('', ({ name }) => name)
  const parts = new Set(priced.flatMap(({ bill }) => Object.keys(bill.parts)))
  for (const part of parts) line(part, ({ bill }) => bill.parts[part])
  line('all', ({ bill }) => bill.busy)
  line('budget', ({ budget }) => budget)
  line('all, each message by itself', ({ bill }) => bill.idle)
  line('storage until it expires', ({ bill }) => bill.kept)

  console.log('\nCounted for each notice, all doors\n')
  const each =
    (of: (spent: Spent) => number) =>
    ({ load }: Priced) =>
      Object.values(load.spent).reduce((sum, one) => sum + of(one), 0) / load.notices
  line(
    'write units',
    each(({ writeUnits }) => writeUnits),
  )
  line(
    'read units',
    each(({ readUnits }) => readUnits),
  )
  line(
    'messages',
    each(({ sends }) => sends),
  )
  line('looks', ({ load }) => load.looks / load.notices)
  line('webhooks', ({ load }) => load.webhooks / load.notices)
  line(
    'log lines',
    each(({ logLines }) => logLines),
  )
  line(
    'log bytes',
    each(({ logBytes }) => logBytes),
  )
  for (const door of ['receive', 'api', 'look', 'deliver'] satisfies DoorName[])
    line(`${door} processor, ms`, ({ load }) => load.spent[door].cpuMs / load.notices)
  for (const door of ['receive', 'api', 'look', 'deliver', 'tick'] satisfies DoorName[])
    line(`${door} write units`, ({ load }) => load.spent[door].writeUnits / load.notices)
  console.log('')
  return priced.every(({ bill, budget }) => bill.busy <= budget)
}

/** Prints who called what how often for a hundred notices, and the units of it, the most first. */
export function printCalls(name: string, load: Load | undefined): void {
  if (load === undefined) return
  const rows = Object.values(load.spent).flatMap(({ door, byKind }) =>
    Object.entries(byKind).map(([kind, { calls, units }]) => ({ what: `${door} ${kind}`, calls, units })),
  )
  const hundred = (sum: number): string => ((100 * sum) / load.notices).toFixed(1).padStart(width)
  console.log(`${`${name}, for 100 notices`.padEnd(50)}${'calls'.padStart(width)}${'units'.padStart(width)}`)
  for (const { what, calls, units } of rows.sort((a, b) => b.units - a.units || b.calls - a.calls))
    console.log(what.padEnd(50) + hundred(calls) + hundred(units))
  console.log('')
}
