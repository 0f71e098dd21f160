// What receive remembers of subscriptions, over a table that knows every one: how many there are room for.
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { marshall } from '@aws-sdk/util-dynamodb'
import { expect, test } from 'vitest'
import { createMemory } from '../../shared/memory.ts'

test('what is read anew drives out nothing else', async () => {
  let [now, reads] = [0, 0]
  const client = new DynamoDBClient({ region: 'us-east-1' })
  client.middlewareStack.add(
    () => async () => {
      reads += 1
      const Item = marshall({ tenant: 't', agent: 'a' })
      return { response: {}, output: { $metadata: {}, Item } }
    },
    { step: 'initialize' },
  )
  const table = { client, name: 'table', shards: 1, nonce: () => '' }
  const memory = createMemory(() => now)
  const room = 5000
  for (let n = 0; n < room; n++) await memory.find(table, `r${n}`)
  now += 1
  await memory.find(table, `r${room - 1}`, 0)
  const before = reads
  await memory.find(table, 'r0')
  expect(reads).toBe(before)
  await memory.find(table, 'one more')
  await memory.find(table, 'r0')
  expect(reads).toBe(before + 4)
})
