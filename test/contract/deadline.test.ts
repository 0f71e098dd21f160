// Calls to AWS end with their own deadline and no other, though the SDK's middleware is made once for all of them.
import { once } from 'node:events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { deployTable } from '../../infra/local/deploy.ts'
import { type Dynamo, startDynamo } from '../../infra/local/dynamodb.ts'
import { startDeadline } from '../../shared/deadline.ts'
import { createRelay } from '../../shared/relay.ts'
import { get, put, query, remove, type Table } from '../../shared/store/table.ts'

let dynamo: Dynamo
let table: Table
/** Operations that are held back. */
const held = ['GetItem', 'Query', 'DeleteItem']
/** Calls of those that came, each held back until it is let go. */
let came: PromiseWithResolvers<void>[] = []
let letGo: PromiseWithResolvers<void>[] = []
let begun = 0

beforeEach(async () => {
  begun = 0
  came = [Promise.withResolvers(), Promise.withResolvers()]
  letGo = [Promise.withResolvers(), Promise.withResolvers()]
  dynamo = await startDynamo({
    now: () => 0,
    faults: async ({ operation }) => {
      if (!held.includes(operation)) return undefined
      const at = begun++
      came[at]?.resolve()
      await letGo[at]?.promise
      // What nobody waits for any more need not be done.
      return operation === 'GetItem' ? undefined : 'throttle'
    },
  })
  const relay = createRelay('receive', {
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'x',
    AWS_ENDPOINT_URL_DYNAMODB: dynamo.endpoint,
    TABLE_NAME: 'rouse',
    LOOK_QUEUE_URL: 'http://127.0.0.1/look',
    DELIVER_QUEUE_URL: 'http://127.0.0.1/deliver',
    PUBLIC_ORIGIN: 'https://rouse.example',
    HOOK_ORIGIN: 'https://hooks.example',
    ROOT_KEYS: 'none',
  })
  table = relay.table
  await deployTable(table.client, table.name)
  await put(table, { ...key, n: 1 })
})

afterEach(async () => {
  for (const { resolve } of letGo) resolve()
  table.client.destroy()
  await dynamo.stop()
})

const key = { pk: 'T#a', sk: '.' }
let end = new AbortController()
/** The table with a deadline of its own. */
const ending = (): Table => {
  end = new AbortController()
  return { ...table, signal: end.signal }
}
const read = (signal?: AbortSignal) => get(signal === undefined ? table : { ...table, signal }, key)

test('a call that hangs ends with its deadline and is not tried again', async () => {
  const ending = new AbortController()
  const reading = read(ending.signal)
  await came[0]?.promise
  ending.abort()
  await expect(reading).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
  expect(begun).toBe(1)
})

test.each([
  ['a query', () => query(ending(), { condition: '#pk = :pk', values: { pk: key.pk }, limit: 1 })],
  ['a deletion', () => remove(ending(), key)],
])('%s ends with its deadline too', async (_what, call) => {
  const calling = call()
  await came[0]?.promise
  end.abort()
  await expect(calling).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
})

test('of two calls under way the one whose deadline is over ends, and the other goes through', async () => {
  const first = new AbortController()
  const second = new AbortController()
  const readings = [read(first.signal), read(second.signal)]
  await Promise.all(came.map(({ promise }) => promise))
  first.abort()
  await expect(readings[0]).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
  for (const { resolve } of letGo) resolve()
  expect(await readings[1]).toMatchObject({ n: 1 })
})

test('a call without a deadline goes through after one that ended', async () => {
  const ending = new AbortController()
  const reading = read(ending.signal)
  await came[0]?.promise
  ending.abort()
  await expect(reading).rejects.toThrow()
  letGo[1]?.resolve()
  expect(await read()).toMatchObject({ n: 1 })
})

test('with its deadline over a call is not begun', async () => {
  await expect(read(AbortSignal.abort())).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
  expect(begun).toBe(0)
})

test('a deadline comes by itself, and one that is over leaves nothing behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter(kind => kind === 'Timeout').length
  const before = timers()
  const { signal, over } = startDeadline(3_600_000)
  over()
  expect(timers()).toBe(before)
  expect(signal.aborted).toBe(false)
  await once(startDeadline(1).signal, 'abort')
})
