// The only file that speaks DynamoDB: reads, conditional writes of one item, queries. It knows no noun and no key.
import {
  type AttributeValue,
  ConditionalCheckFailedException,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb'
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb'
import { endBy } from '../deadline.ts'
import type { Key } from './keys.ts'

export type Table = {
  client: DynamoDBClient
  name: string
  /** Shards of the timer index. */
  shards: number
  /** A fresh mark for one write, so that the SDK's own retry of it is known for what it is. */
  nonce: () => string
  /** Ends calls that are under way, for doors with a deadline. */
  signal?: AbortSignal
}

/**
 * The outcome of a conditional write. `old` is the item that stood in the way, as stored.
 * A condition that fails because our own first attempt went through reads as `ok`.
 */
export type Written<T> = { ok: true; item: T | undefined } | { ok: false; old: T | undefined }

type Values = Record<string, unknown>

const marshalling = { removeUndefinedValues: true, convertEmptyValues: false } as const

/** Reads one item; strongly consistent unless `lazy`. */
export async function get<T>(table: Table, key: Key, lazy = false): Promise<T | undefined> {
  const { Item } = await table.client.send(
    endBy(
      new GetItemCommand({ TableName: table.name, Key: marshall(key), ConsistentRead: !lazy }),
      table.signal,
    ),
  )
  return Item && read<T>(Item)
}

/** Puts an item, on a condition if one is given. Expressions name attributes as `#name` and values as `:name`. */
export async function put<T>(
  table: Table,
  item: Key & Values,
  condition?: string,
  values: Values = {},
): Promise<Written<T>> {
  const req = table.nonce()
  return settle<T>(req, async () => {
    await table.client.send(
      endBy(
        new PutItemCommand({
          TableName: table.name,
          Item: marshall({ ...item, req }, marshalling),
          ...expression([condition], values),
          ...(condition && {
            ConditionExpression: condition,
            ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
          }),
        }),
        table.signal,
      ),
    )
    return undefined
  })
}

/**
 * Updates one item on a condition and gives back what stands afterwards. The SDK's own second attempt never counts
 * twice: it finds the mark of the first.
 */
export async function update<T>(
  table: Table,
  key: Key,
  change: string,
  values: Values,
  condition?: string,
): Promise<Written<T>> {
  const req = table.nonce()
  const marked = change.includes('SET ')
    ? change.replace('SET ', 'SET #req = :req, ')
    : `SET #req = :req ${change}`
  const once = '(attribute_not_exists(#req) OR #req <> :req)'
  const guarded = condition === undefined ? once : `(${condition}) AND ${once}`
  return settle<T>(req, async () => {
    const { Attributes } = await table.client.send(
      endBy(
        new UpdateItemCommand({
          TableName: table.name,
          Key: marshall(key),
          UpdateExpression: marked,
          ...expression([marked, guarded], { ...values, req }),
          ReturnValues: 'ALL_NEW',
          ConditionExpression: guarded,
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
        }),
        table.signal,
      ),
    )
    return Attributes && read<T>(Attributes)
  })
}

/** Deletes one item, on a condition if one is given; deleting what is gone is fine. */
export async function remove(
  table: Table,
  key: Key,
  condition?: string,
  values: Values = {},
): Promise<boolean> {
  const { ok } = await settle(undefined, async () => {
    await table.client.send(
      endBy(
        new DeleteItemCommand({
          TableName: table.name,
          Key: marshall(key),
          ...expression([condition], values),
          ...(condition && { ConditionExpression: condition }),
        }),
        table.signal,
      ),
    )
    return undefined
  })
  return ok
}

export type Page<T> = { items: T[]; next: Key | undefined }

/** One page of a query over a partition or the timer index. */
export async function query<T>(
  table: Table,
  ask: {
    condition: string
    values: Values
    limit: number
    index?: string
    after?: Values
    backwards?: boolean
    lazy?: boolean
  },
): Promise<Page<T>> {
  const { Items = [], LastEvaluatedKey } = await table.client.send(
    endBy(
      new QueryCommand({
        TableName: table.name,
        KeyConditionExpression: ask.condition,
        ...expression([ask.condition], ask.values),
        Limit: ask.limit,
        ScanIndexForward: !ask.backwards,
        ConsistentRead: ask.index === undefined && !ask.lazy,
        ...(ask.index !== undefined && { IndexName: ask.index }),
        ...(ask.after !== undefined && { ExclusiveStartKey: marshall(ask.after, marshalling) }),
      }),
      table.signal,
    ),
  )
  return { items: Items.map(item => read<T>(item)), next: LastEvaluatedKey && read<Key>(LastEvaluatedKey) }
}

/** The one place where stored data gets its type: whatever is in the table was written by these rooms. */
function read<T>(item: Parameters<typeof unmarshall>[0]): T {
  return unmarshall(item) as T
}

type Expression = {
  ExpressionAttributeNames?: Record<string, string>
  ExpressionAttributeValues?: Record<string, AttributeValue>
}

/** Collects the names and values that some expressions use. */
function expression(texts: (string | undefined)[], values: Values): Expression {
  const { names, places } = mentionsOf(texts.filter(Boolean).join(' '))
  const used = Object.fromEntries(places.map(place => [place, values[place.slice(1)]]))
  return {
    ...(names !== undefined && { ExpressionAttributeNames: names }),
    ...(places.length > 0 && { ExpressionAttributeValues: marshall(used, marshalling) }),
  }
}

type Mentions = { names: Record<string, string> | undefined; places: string[] }

/** What expressions mention, by their text. The texts are written in these rooms, so they are few. */
const mentions = new Map<string, Mentions>()
const mostMentions = 500

function mentionsOf(text: string): Mentions {
  const known = mentions.get(text)
  if (known !== undefined) return known
  const named = [...new Set(text.match(/#\w+/g))]
  const found = {
    names: named.length > 0 ? Object.fromEntries(named.map(name => [name, name.slice(1)])) : undefined,
    places: [...new Set(text.match(/:\w+/g))],
  }
  if (mentions.size >= mostMentions) mentions.clear()
  mentions.set(text, found)
  return found
}

async function settle<T>(req: string | undefined, write: () => Promise<T | undefined>): Promise<Written<T>> {
  try {
    return { ok: true, item: await write() }
  } catch (error) {
    if (!(error instanceof ConditionalCheckFailedException)) throw error
    const old = error.Item && read<T & { req?: string }>(error.Item)
    if (req !== undefined && old?.req === req) return { ok: true, item: old }
    return { ok: false, old }
  }
}
