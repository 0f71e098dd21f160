// `npm run bench`: measures the receive door against the floor and against what else one could take, prints one table, and says by its exit status whether the budgets are kept.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { callRows } from './calls.ts'
import { coldRows } from './cold.ts'
import { floodRows } from './floods.ts'
import { loadRows } from './load.ts'
import { memoryRows } from './memory.ts'
import { installRivals } from './rival.ts'
import { print, type Row } from './table.ts'
import { warmRows } from './warm.ts'

const { values } = parseArgs({
  options: {
    strict: { type: 'boolean', default: false },
    only: { type: 'string' },
    full: { type: 'boolean', default: false },
  },
})
const parts: Record<string, (folder: string) => Promise<Row[]>> = {
  calls: callRows,
  cold: coldRows,
  warm: warmRows,
  load: loadRows,
  floods: () => floodRows(values.full),
  memory: folder => memoryRows(folder, values.full),
}
const chosen = values.only?.split(',') ?? Object.keys(parts)

installRivals()
const folder = mkdtempSync(join(tmpdir(), 'rouse-bench-'))
const rows: Row[] = []
try {
  for (const name of chosen) {
    const part = parts[name]
    if (part === undefined) throw new Error(`There is no part ${name}; there are ${Object.keys(parts)}`)
    console.log(`Measuring: ${name} ...`)
    rows.push(...(await part(folder)))
  }
} finally {
  rmSync(folder, { recursive: true })
}
console.log('')
if (!print(rows, values.strict)) process.exitCode = 1
