// A DynamoDB for laptops and tests: dynalite's store behind a server that takes only what Rouse uses and adds what it lacks.

import { setImmediate } from 'node:timers/promises'
import { type DoorName, doors } from '../topology.ts'
import {
  type Dynalite,
  type Effect,
  type Failure,
  type Item,
  type Operation,
  openDynalite,
} from './dynalite.ts'
import {
  type Answer,
  type Call,
  exception,
  isRecord,
  serveWire,
  type Wire,
  type WireOptions,
} from './wire.ts'

export type Dynamo = Wire & {
  /** Deletes expired items, as AWS does within days: page by page, in between other calls. Gives their number. */
  sweep: () => Promise<number>
  /** All items of a table in wire form, read past the API: there is no Scan. */
  items: (table: string) => Promise<Item[]>
}

const expressions = ['ExpressionAttributeNames', 'ExpressionAttributeValues']
const write = [
  'TableName',
  'ConditionExpression',
  ...expressions,
  'ReturnValues',
  'ReturnValuesOnConditionCheckFailure',
  'ReturnConsumedCapacity',
]

/** Parameters taken, by operation. Anything else is refused by name, so that nothing is silently ignored. */
const takes: Record<Operation | 'UpdateTimeToLive' | 'DescribeTimeToLive', string[]> = {
  CreateTable: ['TableName', 'AttributeDefinitions', 'KeySchema', 'GlobalSecondaryIndexes', 'BillingMode'],
  DescribeTable: ['TableName'],
  UpdateTimeToLive: ['TableName', 'TimeToLiveSpecification'],
  DescribeTimeToLive: ['TableName'],
  GetItem: ['TableName', 'Key', 'ConsistentRead', 'ReturnConsumedCapacity'],
  PutItem: [...write, 'Item'],
  UpdateItem: [...write, 'Key', 'UpdateExpression'],
  DeleteItem: [...write, 'Key'],
  Query: [
    'TableName',
    'IndexName',
    'KeyConditionExpression',
    ...expressions,
    'Limit',
    'ScanIndexForward',
    'ConsistentRead',
    'ExclusiveStartKey',
    'ReturnConsumedCapacity',
  ],
}

type Ttl = Map<string, string>

const service = 'com.amazonaws.dynamodb.v20120810'
const denied = 'com.amazon.coral.service#AccessDeniedException'
const conditionFailed = `${service}#ConditionalCheckFailedException`
const invalid = (message: string): Answer =>
  exception('com.amazon.coral.validate#ValidationException', message)

/**
 * Starts a DynamoDB on a free port of 127.0.0.1.
 * @param options `path`: folder of the data, in memory without one; `now`: the time for expiry
 */
export async function startDynamo(
  options: WireOptions & { path?: string | undefined; now: () => number },
): Promise<Dynamo> {
  const store = await openDynalite(options.path)
  // In memory: the ground switches it on again at every start.
  const ttl: Ttl = new Map()
  const wire = await serveWire(
    {
      name: 'dynamodb',
      throttled: `${service}#ProvisionedThroughputExceededException`,
      answer: call => answer(store, ttl, call),
    },
    options,
  )
  return {
    endpoint: wire.endpoint,
    sweep: () => sweep(store, ttl, options.now()),
    items: async table => {
      const items: Item[] = []
      for await (const item of walk(store, table)) items.push(item)
      return items
    },
    stop: async () => {
      await wire.stop()
      await store.close()
    },
  }
}

/** Whether a door asks for more than the topology lets it do; whoever bears no door's name may do everything. */
function isForbidden({ who, operation, body }: Call): boolean {
  const right = body.IndexName === undefined ? operation : `${operation} index`
  return isDoor(who) && !doors[who].table.some(one => one === right)
}

const isDoor = (who: string): who is DoorName => Object.hasOwn(doors, who)

async function answer(store: Dynalite, ttl: Ttl, call: Call): Promise<Answer> {
  const { operation, body } = call
  if (!isTaken(operation)) return invalid(`${operation} is not among the operations taken here`)
  if (isForbidden(call)) return exception(denied, `${call.who} is not authorized to perform ${operation}`)
  const unknown = Object.keys(body).filter(name => !takes[operation].includes(name))
  if (unknown.length > 0) return invalid(`${operation} does not take ${unknown.join(', ')} here`)
  if (operation === 'UpdateTimeToLive' || operation === 'DescribeTimeToLive')
    return timeToLive(store, ttl, operation, body)
  const { ReturnValuesOnConditionCheckFailure: onFailure = 'NONE', ...input } = body
  if (onFailure !== 'NONE' && onFailure !== 'ALL_OLD')
    return invalid(`ReturnValuesOnConditionCheckFailure cannot be ${String(onFailure)}`)
  const counted = operation !== 'CreateTable' && operation !== 'DescribeTable'
  const effect = await store.run(operation, counted ? { ...input, ReturnConsumedCapacity: 'INDEXES' } : input)
  if ('body' in effect) return refusal(effect, onFailure === 'ALL_OLD')
  if (operation === 'CreateTable') await untilActive(store, input.TableName)
  return success(effect, body)
}

/** A table is there at once here; dynalite needs a moment to say so. */
async function untilActive(store: Dynalite, table: unknown): Promise<void> {
  for (;;) {
    const { answer } = await described(store, String(table))
    if (isRecord(answer.Table) && answer.Table.TableStatus === 'ACTIVE') return
    await setImmediate()
  }
}

const isTaken = (operation: string): operation is keyof typeof takes => Object.hasOwn(takes, operation)

function refusal({ body, statusCode, old }: Failure, wantsOld: boolean): Answer {
  if (body.__type !== conditionFailed) return { status: statusCode, body }
  // A failed condition is billed like the write (DynamoDB developer guide, "Write consumption").
  return { status: 400, units: 1, body: wantsOld && old !== undefined ? { ...body, Item: old } : body }
}

/** Adds what dynalite leaves out of the bill: index writes, and the half unit of a read that finds nothing. */
function success({ answer, indexUnits }: Effect, asked: Record<string, unknown>): Answer {
  const { ConsumedCapacity: counted, ...body } = answer
  if (!isRecord(counted)) return { status: 200, body }
  const floor = asked.ConsistentRead === true ? 1 : 0.5
  const base = Math.max(Number(counted.CapacityUnits), floor)
  const units = [...indexUnits.values()].reduce((sum, more) => sum + more, base)
  const level = asked.ReturnConsumedCapacity ?? 'NONE'
  if (level === 'NONE') return { status: 200, body, units }
  const total = { TableName: counted.TableName, CapacityUnits: units }
  const indexes = Object.fromEntries([...indexUnits].map(([name, more]) => [name, { CapacityUnits: more }]))
  const detail = {
    Table: counted.Table,
    GlobalSecondaryIndexes: indexUnits.size > 0 ? indexes : counted.GlobalSecondaryIndexes,
  }
  const ConsumedCapacity = level === 'INDEXES' ? { ...total, ...detail } : total
  return { status: 200, units, body: { ...body, ConsumedCapacity } }
}

async function timeToLive(
  store: Dynalite,
  ttl: Ttl,
  operation: string,
  { TableName: table, TimeToLiveSpecification: asked }: Record<string, unknown>,
): Promise<Answer> {
  const found = await store.run('DescribeTable', { TableName: table })
  if ('body' in found) return refusal(found, false)
  const name = String(table)
  if (operation === 'DescribeTimeToLive') {
    const attribute = ttl.get(name)
    const status = attribute === undefined ? 'DISABLED' : 'ENABLED'
    return {
      status: 200,
      body: { TimeToLiveDescription: { TimeToLiveStatus: status, AttributeName: attribute } },
    }
  }
  if (!isRecord(asked) || typeof asked.AttributeName !== 'string' || asked.Enabled !== true)
    return invalid('TimeToLiveSpecification must name an attribute and enable it')
  if (ttl.has(name)) return invalid('TimeToLive is already enabled')
  ttl.set(name, asked.AttributeName)
  return { status: 200, body: { TimeToLiveSpecification: asked } }
}

async function* walk(store: Dynalite, table: string): AsyncGenerator<Item> {
  let after: string | undefined
  for (;;) {
    const page = await store.page(table, after, 100)
    for (const [key, item] of page) {
      after = key
      yield item
    }
    if (page.length < 100) return
  }
}

async function sweep(store: Dynalite, ttl: Ttl, now: number): Promise<number> {
  let swept = 0
  for (const [table, attribute] of ttl) {
    const { answer } = await described(store, table)
    for await (const item of walk(store, table)) {
      const value = item[attribute]
      if (value?.N === undefined || Number(value.N) * 1000 > now) continue
      // On the condition that it was not prolonged meanwhile.
      const effect = await store.run('DeleteItem', {
        TableName: table,
        Key: Object.fromEntries(keysOf(answer).map(name => [name, item[name]])),
        ConditionExpression: '#ttl = :seen',
        ExpressionAttributeNames: { '#ttl': attribute },
        ExpressionAttributeValues: { ':seen': value },
      })
      if (!('body' in effect)) swept += 1
    }
  }
  return swept
}

async function described(store: Dynalite, table: string): Promise<Effect> {
  const effect = await store.run('DescribeTable', { TableName: table })
  if ('body' in effect) throw new Error(`The table ${table} is gone`)
  return effect
}

function keysOf({ Table: table }: Record<string, unknown>): string[] {
  const schema = isRecord(table) && Array.isArray(table.KeySchema) ? table.KeySchema : []
  return schema.map(({ AttributeName }) => String(AttributeName))
}
