// A program to be killed: moves timers in a table on disk without end and says each write that was acknowledged.
import { update } from '../../shared/store/table.ts'
import { startTable } from './table.ts'

const { table } = await startTable({ path: process.argv[2] ?? '' })

async function write(who: number): Promise<never> {
  for (let due = 1; ; due += 1) {
    const key = { pk: `T#${who}`, sk: '.' }
    await update(table, key, 'SET #slot = :slot, #due = :due', { slot: 'd#1', due })
    process.stdout.write(`${who} ${due}\n`)
  }
}

await Promise.all(Array.from({ length: 8 }, (_, who) => write(who)))
