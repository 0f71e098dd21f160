// `npm run bench`: measures the receive door against the floor and against what else one could take, prints one table, and says by its exit status whether the budgets are kept.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readFlags, refuse } from '../support/flags.ts'
import { callRows } from './calls.ts'
import { coldRows } from './cold.ts'
import { floods } from './floods.ts'
import { loadRows } from './load.ts'
import { memoryRows } from './memory.ts'
import { installRivals } from './rival.ts'
import { print, type Row } from './table.ts'
import { warmRows } from './warm.ts'

const usage = `npm run bench -- [flags]

  --only PARTS  some of its parts, commas between: calls, cold, warm, load, floods, memory
  --full        the floods in full size and 100 000 notices, for hours
  --strict      judges the ratios too
  -h, --help    shows this`

const values = readFlags(usage, {
  strict: { type: 'boolean', default: false },
  only: { type: 'string' },
  full: { type: 'boolean', default: false },
})
type Part = (folder: string) => Promise<Row[]>
const flood =
  (name: keyof typeof floods): Part =>
  () =>
    floods[name](values.full)
const parts: Record<string, Part> = {
  calls: callRows,
  cold: coldRows,
  warm: warmRows,
  load: loadRows,
  'flood-task': flood('flood-task'),
  'flood-crowd': flood('flood-crowd'),
  'flood-dead': flood('flood-dead'),
  memory: folder => memoryRows(folder, values.full),
}
const groups: Record<string, string[]> = { floods: Object.keys(floods) }
const chosen = values.only?.split(',').flatMap(name => groups[name] ?? name) ?? Object.keys(parts)
const strange = chosen.find(name => parts[name] === undefined)
if (strange !== undefined)
  refuse(usage, `There is no part ${strange}; there are ${[...Object.keys(parts), ...Object.keys(groups)]}`)

installRivals()
const folder = mkdtempSync(join(tmpdir(), 'rouse-bench-'))
const rows: Row[] = []
try {
  for (const name of chosen) {
    console.log(`Measuring: ${name} ...`)
    try {
      rows.push(...((await parts[name]?.(folder)) ?? []))
    } catch (error) {
      // What else was measured is shown all the same.
      console.error(`${name} broke off:`, error)
      process.exitCode = 1
    }
  }
} finally {
  rmSync(folder, { recursive: true })
}
console.log('')
if (!print(rows, values.strict)) process.exitCode = 1
