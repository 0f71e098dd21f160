// A program that holds a data folder until it is killed: it stores one item, leaves one message, and says that it is ready.
import { startGround } from '../../infra/local/ground.ts'
import { sendLook } from '../../shared/queue.ts'
import { put } from '../../shared/store/table.ts'

const ground = await startGround(
  {
    api: ({ table, queues }) => {
      return async () => {
        await put(table, { pk: 'T#held', sk: '.' })
        await sendLook(queues, 'g', { v: 1, kind: 'watch', watch: 'held' })
        return { statusCode: 204 }
      }
    },
  },
  { dir: process.argv[2] ?? '', tick: 'manual' },
)
await fetch(ground.apiOrigin)
process.stdout.write('ready\n')
