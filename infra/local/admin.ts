// Looks behind the counter for tests and curious people: the table's items and the queues' messages, without touching them.
import { unmarshall } from '@aws-sdk/util-dynamodb'
import type { QueueName } from '../topology.ts'
import { deadQueue } from './deploy.ts'
import type { Dynamo } from './dynamodb.ts'
import type { Lying, Sqs } from './sqs.ts'

export type Admin = {
  /** Every item of the table, expired ones that were not swept yet included. */
  items: () => Promise<Record<string, unknown>[]>
  /** Deletes expired items now, as DynamoDB does some time within days. Gives their number. */
  sweep: () => Promise<number>
  /** The messages of a queue. */
  messages: (queue: QueueName) => Promise<Lying[]>
  /** The messages that were received too often: those in both dead-letter queues, and those that wait in the table. */
  dead: () => Promise<Dead[]>
}

type Dead = { queue: QueueName; body: string }

/** A message that tick took out of a dead-letter queue and that was not put back since. */
const isDead = (item: Record<string, unknown>): item is Record<string, unknown> & Dead =>
  String(item.pk).startsWith('X#') && Number(item.backAt ?? 0) < Number(item.at)

/** Makes the views of one ground. */
export function createAdmin(dynamo: Dynamo, sqs: Sqs, tableName: string): Admin {
  return {
    items: async () => (await dynamo.items(tableName)).map(item => unmarshall(item)),
    sweep: dynamo.sweep,
    messages: sqs.look,
    dead: async () => {
      const dead = await Promise.all(
        (['look', 'deliver'] as const).map(async queue =>
          (await sqs.look(deadQueue(queue))).map(message => ({ ...message, queue })),
        ),
      )
      const kept = (await dynamo.items(tableName)).map(item => unmarshall(item)).filter(isDead)
      return [...dead.flat(), ...kept].map(({ queue, body }) => ({ queue, body }))
    },
  }
}
