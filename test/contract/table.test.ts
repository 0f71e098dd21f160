// What Rouse takes for granted of DynamoDB, shown on the local one: conditions, races, retries, the sparse index, late expiry.
import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import {
  CreateTableCommand,
  DynamoDBClient,
  QueryCommand,
  ScanCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { deployTable } from '../../infra/local/deploy.ts'
import { startDynamo } from '../../infra/local/dynamodb.ts'
import { get, put, query, remove, update } from '../../shared/store/table.ts'
import { makeFolder } from '../support/folder.ts'
import { local, startTable, type TestTable } from '../support/table.ts'

let here: TestTable

beforeEach(async () => {
  here = await startTable()
})

afterEach(async () => {
  await here.stop()
})

const key = { pk: 'T#a', sk: '.' }
const absent = 'attribute_not_exists(#pk)'
type Item = { pk: string; sk: string; n?: number; who?: number; slot?: string; due?: number; group?: string }

describe('conditional writes', () => {
  test('a put on absence goes through once and shows the item in its way', async () => {
    expect(await put(here.table, { ...key, n: 1 }, absent)).toMatchObject({ ok: true })
    expect(await put(here.table, { ...key, n: 2 }, absent)).toMatchObject({ ok: false, old: { n: 1 } })
    expect(await get(here.table, key)).toMatchObject({ n: 1 })
  })

  test('a condition on an item that is not there fails without an old item', async () => {
    expect(await update(here.table, key, 'SET #n = :n', { n: 1 }, 'attribute_exists(#pk)')).toEqual({
      ok: false,
      old: undefined,
    })
  })

  test('of 64 writers with one condition exactly one wins, and all others see its item', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 64 }, (_, who) => put<Item>(here.table, { ...key, who }, absent)),
    )
    const winner = outcomes.findIndex(outcome => outcome.ok)
    const losers = outcomes.filter(outcome => !outcome.ok)
    expect(losers).toHaveLength(63)
    expect(losers.every(outcome => !outcome.ok && outcome.old?.who === winner)).toBe(true)
    expect(await get(here.table, key)).toMatchObject({ who: winner })
  })

  test('what a failed condition shows is the very item that it judged', async () => {
    await put(here.table, { ...key, n: 0 })
    const flip = () => update<Item>(here.table, key, 'SET #n = :one - #n', { one: 1 })
    const judge = () => update<Item>(here.table, key, 'SET #who = :zero', { zero: 0 }, '#n = :zero')
    const writes = Array.from({ length: 300 }, (_, at) => (at % 2 === 0 ? flip() : judge()))
    const outcomes = await Promise.all(writes)
    const refused = outcomes.flatMap(outcome => (outcome.ok ? [] : [outcome.old?.n]))
    expect(refused.length).toBeGreaterThan(0)
    expect(new Set(refused)).toEqual(new Set([1]))
  })

  test('300 increments at once count to 300', async () => {
    await Promise.all(Array.from({ length: 300 }, () => update(here.table, key, 'ADD #n :one', { one: 1 })))
    expect(await get(here.table, key)).toMatchObject({ n: 300 })
  })

  test('a delete whose condition fails leaves the item', async () => {
    await put(here.table, { ...key, n: 1 })
    expect(await remove(here.table, key, '#n = :n', { n: 2 })).toBe(false)
    expect(await get(here.table, key)).toMatchObject({ n: 1 })
    expect(await remove(here.table, key, '#n = :n', { n: 1 })).toBe(true)
    expect(await get(here.table, key)).toBeUndefined()
  })
})

describe("the SDK's own retry", () => {
  test('a conditional put whose answer was lost reads as the success that it was', async () => {
    here.plan('PutItem', 'fail_after')
    expect(await put(here.table, { ...key, n: 1 }, absent)).toMatchObject({ ok: true })
    expect(here.calls.filter(call => call === 'PutItem')).toHaveLength(2)
    expect(await get(here.table, key)).toMatchObject({ n: 1 })
  })

  test('a conditional update whose answer was lost counts once', async () => {
    await put(here.table, { ...key, n: 0 })
    here.plan('UpdateItem', 'fail_after')
    const raised = await update<Item>(here.table, key, 'SET #n = :next', { next: 1, seen: 0 }, '#n = :seen')
    expect(raised).toMatchObject({ ok: true, item: { n: 1 } })
    expect(here.calls.filter(call => call === 'UpdateItem')).toHaveLength(2)
  })

  test('a throttled write is tried again, and given up when it stays throttled', async () => {
    here.plan('PutItem', 'throttle')
    expect(await put(here.table, { ...key, n: 1 }, absent)).toMatchObject({ ok: true })
    here.plan('PutItem', 'throttle', 'throttle')
    await expect(put(here.table, { ...key, n: 2 })).rejects.toMatchObject({
      name: 'ProvisionedThroughputExceededException',
    })
    expect(await get(here.table, key)).toMatchObject({ n: 1 })
  })
})

const dueBy = (now: number, after?: Record<string, unknown>) =>
  query<Item>(here.table, {
    index: 'due',
    condition: '#slot = :slot AND #due <= :now',
    values: { slot: 'd#1', now },
    limit: 3,
    ...(after !== undefined && { after }),
  })

describe('the timer index', () => {
  test('holds items with a timer only, in order of time, with keys and group and nothing else', async () => {
    for (const due of [30, 10, 20, 99])
      await put(here.table, { pk: `T#${due}`, sk: '.', slot: 'd#1', due, group: 'g', n: 1 })
    await put(here.table, { pk: 'T#none', sk: '.', n: 1 })
    await put(here.table, { pk: 'T#other', sk: '.', slot: 'd#2', due: 5 })
    const { items } = await dueBy(50)
    expect(items).toEqual(
      [10, 20, 30].map(due => ({ pk: `T#${due}`, sk: '.', slot: 'd#1', due, group: 'g' })),
    )
  })

  test('follows an item whose timer moves or goes', async () => {
    await put(here.table, { ...key, slot: 'd#1', due: 10 })
    await update(here.table, key, 'SET #due = :due', { due: 40 })
    expect((await dueBy(30)).items).toEqual([])
    expect((await dueBy(50)).items).toHaveLength(1)
    await update(here.table, key, 'REMOVE #slot, #due', {})
    expect((await dueBy(50)).items).toEqual([])
    expect(await get(here.table, key)).toMatchObject(key)
  })

  test('is read in pages without a gap or a repeat', async () => {
    for (let due = 1; due <= 10; due += 1)
      await put(here.table, { pk: `T#${due}`, sk: '.', slot: 'd#1', due })
    const seen: (number | undefined)[] = []
    let after: Record<string, unknown> | undefined
    do {
      const page = await dueBy(50, after)
      seen.push(...page.items.map(({ due }) => due))
      after = page.next
    } while (after !== undefined)
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })
})

describe('a query of one partition', () => {
  const wakes = (limit: number, more: { after?: Record<string, unknown>; backwards?: boolean } = {}) =>
    query<Item>(here.table, {
      condition: '#pk = :pk AND begins_with(#sk, :prefix)',
      values: { pk: 'K#w', prefix: 'W#' },
      limit,
      ...more,
    })

  beforeEach(async () => {
    for (const sk of ['.', 'B', 'V#x', 'W', 'W#a', 'W#b', 'W#c', 'W#\u{1f514}', 'X#y'])
      await put(here.table, { pk: 'K#w', sk })
    await put(here.table, { pk: 'K#w2', sk: 'W#z' })
  })

  test('finds what begins with a prefix, and only that', async () => {
    expect((await wakes(10)).items.map(({ sk }) => sk)).toEqual(['W#a', 'W#b', 'W#c', 'W#\u{1f514}'])
  })

  test('goes on where the last page ended, in both directions', async () => {
    const first = await wakes(3)
    const rest = await wakes(3, { ...(first.next && { after: first.next }) })
    expect([...first.items, ...rest.items].map(({ sk }) => sk)).toEqual(['W#a', 'W#b', 'W#c', 'W#\u{1f514}'])
    const last = await wakes(3, { backwards: true })
    const before = await wakes(3, { backwards: true, ...(last.next && { after: last.next }) })
    expect([...last.items, ...before.items].map(({ sk }) => sk)).toEqual(['W#\u{1f514}', 'W#c', 'W#b', 'W#a'])
  })
})

describe('expiry', () => {
  const inSeconds = (milliseconds: number) => Math.floor(milliseconds / 1000)

  test('is late: what has expired stays until it is swept', async () => {
    const { clock, dynamo, table } = here
    await put(table, { pk: 'N#1', sk: '.', ttl: inSeconds(clock.now()) + 60, slot: 'd#1', due: 1 })
    await put(table, { pk: 'N#2', sk: '.', ttl: inSeconds(clock.now()) + 600 })
    await put(table, { pk: 'N#3', sk: '.' })
    expect(await dynamo.sweep()).toBe(0)
    clock.advance(120_000)
    expect(await get(table, { pk: 'N#1', sk: '.' })).toBeDefined()
    expect(await dynamo.sweep()).toBe(1)
    expect(await get(table, { pk: 'N#1', sk: '.' })).toBeUndefined()
    expect((await dueBy(50)).items).toEqual([])
    expect((await dynamo.items('rouse')).map(({ pk }) => pk?.S).sort()).toEqual(['N#2', 'N#3'])
  })

  test('a sweep of many items lets other calls through', async () => {
    const { clock, dynamo, table } = here
    const ttl = inSeconds(clock.now()) + 60
    await Promise.all(Array.from({ length: 500 }, (_, at) => put(table, { pk: `N#${at}`, sk: '.', ttl })))
    clock.advance(120_000)
    let swept = false
    const sweeping = dynamo.sweep().finally(() => {
      swept = true
    })
    await put(table, { ...key, n: 1 })
    expect(swept).toBe(false)
    expect(await sweeping).toBe(500)
  })
})

describe('nothing is silently ignored', () => {
  const message = (name: string) => ({ name: 'ValidationException', message: expect.stringContaining(name) })

  test('an operation that Rouse does not use is refused by name', async () => {
    await expect(here.client.send(new ScanCommand({ TableName: 'rouse' }))).rejects.toMatchObject(
      message('Scan'),
    )
  })

  test('a parameter that Rouse does not use is refused by name', async () => {
    const filtered = new QueryCommand({
      TableName: 'rouse',
      KeyConditionExpression: 'pk = :pk',
      FilterExpression: 'n = :pk',
      ExpressionAttributeValues: { ':pk': { S: 'a' } },
    })
    await expect(here.client.send(filtered)).rejects.toMatchObject(message('FilterExpression'))
    const legacy = new UpdateItemCommand({
      TableName: 'rouse',
      Key: { pk: { S: 'a' }, sk: { S: '.' } },
      AttributeUpdates: { n: { Value: { N: '1' } } },
    })
    await expect(here.client.send(legacy)).rejects.toMatchObject(message('AttributeUpdates'))
  })
})

test('the bill counts index writes, failed conditions and empty reads', async () => {
  const { table } = here
  await put(table, { ...key, slot: 'd#1', due: 1 })
  await update(table, key, 'SET #n = :n', { n: 1 })
  await update(table, key, 'SET #group = :group', { group: 'g' })
  await update(table, key, 'SET #due = :due', { due: 2 })
  await update(table, key, 'REMOVE #slot, #due', {})
  await put(table, { ...key }, absent)
  await get(table, { pk: 'T#none', sk: '.' })
  await get(table, { pk: 'T#none', sk: '.' }, true)
  await put(table, { pk: 'T#big', sk: '.', body: 'x'.repeat(2500) })
  expect(here.units).toEqual([2, 1, 2, 3, 2, 1, 1, 0.5, 3])
})

test('a caller that hangs up in the middle of a request harms nobody', async () => {
  const port = Number(new URL(here.dynamo.endpoint).port)
  const socket = connect(port, '127.0.0.1')
  const head =
    'POST / HTTP/1.1\r\nhost: x\r\nx-amz-target: DynamoDB_20120810.PutItem\r\ncontent-length: 100\r\n\r\n{"Tab'
  await new Promise<void>(resolve => socket.write(head, () => resolve()))
  socket.resetAndDestroy()
  const leaving = connect(port, '127.0.0.1')
  const whole =
    'POST / HTTP/1.1\r\nhost: x\r\nx-amz-target: DynamoDB_20120810.GetItem\r\ncontent-length: 2\r\n\r\n{}'
  await new Promise<void>(resolve => leaving.write(whole, () => resolve()))
  leaving.resetAndDestroy()
  expect(await put(here.table, { ...key, n: 1 })).toMatchObject({ ok: true })
})

test('a restart keeps items, index and layout', async () => {
  const path = makeFolder()
  const first = await startTable({ path })
  await put(first.table, { ...key, slot: 'd#1', due: 7, group: 'g' })
  await first.stop()
  const second = await startTable({ path })
  expect(await get(second.table, key)).toMatchObject({ due: 7 })
  const { items } = await query<Item>(second.table, {
    index: 'due',
    condition: '#slot = :slot AND #due <= :now',
    values: { slot: 'd#1', now: 10 },
    limit: 10,
  })
  expect(items).toEqual([{ ...key, slot: 'd#1', due: 7, group: 'g' }])
  await second.stop()
})

test('data of another layout is refused, not misread', async () => {
  const dynamo = await startDynamo({ now: Date.now })
  const client = new DynamoDBClient({ ...local, endpoint: dynamo.endpoint })
  const layout = {
    TableName: 'rouse',
    BillingMode: 'PAY_PER_REQUEST' as const,
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' as const }],
    KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' as const }],
  }
  await client.send(new CreateTableCommand(layout))
  await expect(deployTable(client, 'rouse')).rejects.toThrow('another table layout')
  client.destroy()
  await dynamo.stop()
})

test('a kill loses no acknowledged write and parts no item from its index entry', async () => {
  const path = makeFolder()
  const child = spawn(process.execPath, [fileURLToPath(import.meta.resolve('../support/writer.ts')), path])
  const acknowledged = new Map<string, number>()
  let count = 0
  for await (const line of createInterface(child.stdout)) {
    const [who, due] = line.split(' ')
    acknowledged.set(`T#${who}`, Number(due))
    count += 1
    if (count === 1000) child.kill('SIGKILL')
  }
  const { dynamo, table, stop } = await startTable({ path })
  const items = (await dynamo.items('rouse')).map(({ pk, due }) => [pk?.S, Number(due?.N)] as const)
  expect(items).toHaveLength(acknowledged.size)
  expect(items.filter(([pk, due]) => due < (acknowledged.get(pk ?? '') ?? 0))).toEqual([])
  const entries = await query<Item>(table, {
    index: 'due',
    condition: '#slot = :slot AND #due > :zero',
    values: { slot: 'd#1', zero: 0 },
    limit: 100,
  })
  expect(entries.items.map(({ pk, due }) => [pk, due]).sort()).toEqual([...items].sort())
  await stop()
})

test('a door may do with the table what the topology says, and no more, as its role would have it', async () => {
  const as = (who: string) => ({
    ...here.table,
    client: new DynamoDBClient({
      ...{ region: 'us-east-1', endpoint: here.dynamo.endpoint, maxAttempts: 1 },
      credentials: { accessKeyId: who, secretAccessKey: 'x' },
    }),
  })
  const { receive, tick } = { receive: as('receive'), tick: as('tick') }
  const due = { condition: '#slot = :slot', values: { slot: 'd#0' }, limit: 1, index: 'due' }
  const refused = { name: 'AccessDeniedException' }
  expect(await put(receive, { ...key, n: 1 })).toMatchObject({ ok: true })
  await expect(remove(receive, key)).rejects.toMatchObject(refused)
  await expect(query(receive, due)).rejects.toMatchObject(refused)
  expect((await query(tick, due)).items).toEqual([])
  await expect(remove(tick, key)).rejects.toMatchObject(refused)
  expect((await query(as('look'), due)).items).toEqual([])
})
