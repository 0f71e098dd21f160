// `npm run bench`: measures the receive door against the floor and against what else one could take, prints one table, and says by its exit status whether the budgets are kept.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { callRows } from './calls.ts'
import { coldRows } from './cold.ts'
import { loadRows } from './load.ts'
import { print, type Row } from './table.ts'
import { warmRows } from './warm.ts'

const parts: Record<string, (folder: string) => Promise<Row[]>> = {
  calls: callRows,
  cold: coldRows,
  warm: warmRows,
  load: loadRows,
}

const { values } = parseArgs({
  options: { strict: { type: 'boolean', default: false }, only: { type: 'string' } },
})
const chosen = values.only?.split(',') ?? Object.keys(parts)

/** What others offer lies in a package of its own, which the first install does not need. */
function installRivals(): void {
  const folder = join(import.meta.dirname, 'rivals')
  // npm writes this last, so that an install which was interrupted counts for nothing.
  if (existsSync(join(folder, 'node_modules/.package-lock.json'))) return
  console.log('Installing what the bench compares with; this happens once ...')
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'inherit' })
  if (status !== 0) throw new Error('The install did not finish')
}

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
