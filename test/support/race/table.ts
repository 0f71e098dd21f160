// A DynamoDB in memory that answers the SDK's commands at once and whole: one item a write, judged by our own expressions. Times and faults are its caller's.
import { type AttributeValue, ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb'
import { unmarshall } from '@aws-sdk/util-dynamodb'
import { conditionOf, type Item, updated } from './expressions.ts'

/** The parts of a command's input that we write. */
export type Input = {
  Key?: Item
  Item?: Item
  ConditionExpression?: string
  UpdateExpression?: string
  KeyConditionExpression?: string
  ExpressionAttributeValues?: Item
  IndexName?: string
  Limit?: number
  ScanIndexForward?: boolean
  ExclusiveStartKey?: Item
}

export type MemoryTable = {
  /** Carries out a command. @throws ConditionalCheckFailedException */
  answer: (command: string, input: Input) => object
  /** Puts an item, as it stood before the run. */
  place: (item: Item) => void
  /** All items whose pk begins so, in plain form. */
  items: (prefix: string) => Record<string, unknown>[]
  /** The earliest timer there is, in slots that are swept. */
  nextDue: () => number
}

/** @param onWrite told of every item that a write leaves, and what was there */
export function createTable(onWrite: (next: Item, before: Item | undefined) => void): MemoryTable {
  const items = new Map<string, Item>()
  const write = (id: string, next: Item): void => {
    const before = items.get(id)
    items.set(id, next)
    onWrite(next, before)
  }
  const commands: Record<string, (input: Input) => object> = {
    GetItemCommand: ({ Key = {} }) => {
      const found = items.get(idOf(Key))
      return found === undefined ? {} : { Item: found }
    },
    PutItemCommand: input => {
      const next = input.Item ?? {}
      judge(items.get(idOf(next)), input)
      write(idOf(next), next)
      return {}
    },
    UpdateItemCommand: input => {
      const { Key = {}, UpdateExpression = '', ExpressionAttributeValues = {} } = input
      const before = items.get(idOf(Key))
      judge(before, input)
      const next = updated(UpdateExpression, before ?? Key, ExpressionAttributeValues)
      write(idOf(Key), next)
      return { Attributes: next }
    },
    DeleteItemCommand: input => {
      const id = idOf(input.Key ?? {})
      judge(items.get(id), input)
      items.delete(id)
      return {}
    },
    QueryCommand: input => search([...items.values()], input),
  }
  return {
    answer: (command, input) => {
      const carryOut = commands[command]
      if (carryOut === undefined) throw new Error(`The table in memory knows no ${command}`)
      return carryOut(input)
    },
    place: item => items.set(idOf(item), item),
    items: prefix =>
      [...items.values()].filter(({ pk }) => pk?.S?.startsWith(prefix)).map(item => unmarshall(item)),
    nextDue: () =>
      Math.min(
        ...[...items.values()].map(({ slot, due }) =>
          slot?.S?.startsWith('d#') && due !== undefined ? Number(due.N) : Number.POSITIVE_INFINITY,
        ),
      ),
  }
}

const idOf = ({ pk, sk }: Item): string => `${pk?.S}\n${sk?.S}`

function judge(item: Item | undefined, { ConditionExpression, ExpressionAttributeValues = {} }: Input): void {
  if (ConditionExpression === undefined) return
  if (conditionOf(ConditionExpression)(item ?? {}, ExpressionAttributeValues)) return
  throw new ConditionalCheckFailedException({
    message: 'The conditional request failed',
    $metadata: {},
    ...(item !== undefined && { Item: item }),
  })
}

/** A query over a partition, or over the index of timers: whoever has no timer is not in it. */
function search(items: Item[], input: Input): object {
  const { KeyConditionExpression = '', ExpressionAttributeValues = {}, IndexName, Limit = 100 } = input
  const condition = conditionOf(KeyConditionExpression)
  const by = IndexName === undefined ? 'sk' : 'due'
  const forward = input.ScanIndexForward === false ? -1 : 1
  const isAfter = (one: Item, other: Item): number =>
    forward * (compare(one[by], other[by]) || compare(one.pk, other.pk) || compare(one.sk, other.sk))
  const start = input.ExclusiveStartKey
  const found = items
    .filter(item => item[by] !== undefined && condition(item, ExpressionAttributeValues))
    .filter(item => start === undefined || isAfter(item, start) > 0)
    .sort(isAfter)
  const page = found.slice(0, Limit)
  const last = page.at(-1)
  return {
    Items: page,
    ...(found.length > Limit && last && { LastEvaluatedKey: { pk: last.pk, sk: last.sk, [by]: last[by] } }),
  }
}

const compare = (one: AttributeValue | undefined, other: AttributeValue | undefined): number => {
  if (one?.N !== undefined && other?.N !== undefined) return Number(one.N) - Number(other.N)
  const [first = '', second = ''] = [one?.S, other?.S]
  return first < second ? -1 : Number(first > second)
}
