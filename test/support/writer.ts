// A program to be killed: moves timers in a store on disk as fast as it goes and says each write that was acknowledged.
import { openDynalite } from '../../infra/local/dynalite.ts'
import { startTable } from './table.ts'

const path = process.argv[2] ?? ''
const made = await startTable({ path })
await made.stop()
const store = await openDynalite(path)

async function write(who: number): Promise<never> {
  for (let due = 1; ; due += 1) {
    const effect = await store.run('PutItem', {
      TableName: 'rouse',
      Item: { pk: { S: `T#${who}` }, sk: { S: '.' }, slot: { S: 'd#1' }, due: { N: String(due) } },
    })
    if ('body' in effect) throw new Error('The write was refused')
    process.stdout.write(`${who} ${due}\n`)
  }
}

await Promise.all(Array.from({ length: 16 }, (_, who) => write(who)))
