// Makes table and queues as the topology states them, or checks that those of an earlier start are the same.
import {
  type AttributeDefinition,
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  type KeySchemaElement,
  ResourceNotFoundException,
  type TableDescription,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb'
import {
  CreateQueueCommand,
  QueueNameExists,
  SetQueueAttributesCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs'
import { type QueueName, queues, table } from '../topology.ts'
import { queueArn } from './sqs.ts'

/** Name of the dead-letter queue of a queue. */
export const deadQueue = (queue: QueueName): string => `${queue}-dead`

const attributes: AttributeDefinition[] = [
  { AttributeName: table.hashKey, AttributeType: 'S' },
  { AttributeName: table.rangeKey, AttributeType: 'S' },
  { AttributeName: table.index.hashKey, AttributeType: 'S' },
  { AttributeName: table.index.rangeKey, AttributeType: 'N' },
]

const keySchema = ({ hashKey, rangeKey }: { hashKey: string; rangeKey: string }): KeySchemaElement[] => [
  { AttributeName: hashKey, KeyType: 'HASH' },
  { AttributeName: rangeKey, KeyType: 'RANGE' },
]

const index = {
  IndexName: table.index.name,
  KeySchema: keySchema(table.index),
  Projection: { ProjectionType: 'INCLUDE' as const, NonKeyAttributes: [...table.index.include] },
}

/**
 * Makes the table.
 * @throws Error when the one that is there has another key or index: it must be deleted, it cannot be changed
 */
export async function deployTable(client: DynamoDBClient, name: string): Promise<void> {
  const found = await client.send(new DescribeTableCommand({ TableName: name })).catch(error => {
    if (error instanceof ResourceNotFoundException) return undefined
    throw error
  })
  if (found === undefined)
    await client.send(
      new CreateTableCommand({
        TableName: name,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: attributes,
        KeySchema: keySchema(table),
        GlobalSecondaryIndexes: [index],
      }),
    )
  else if (!sameLayout(found.Table))
    throw new Error('The data was made with another table layout; delete the data folder to start anew.')
  const { TimeToLiveDescription: ttl } = await client.send(new DescribeTimeToLiveCommand({ TableName: name }))
  if (ttl?.TimeToLiveStatus !== 'ENABLED')
    await client.send(
      new UpdateTimeToLiveCommand({
        TableName: name,
        TimeToLiveSpecification: { AttributeName: table.ttl, Enabled: true },
      }),
    )
}

function sameLayout(found: TableDescription | undefined): boolean {
  const facts = (table: TableDescription) =>
    JSON.stringify([
      table.KeySchema,
      table.GlobalSecondaryIndexes?.map(({ IndexName, KeySchema, Projection }) => [
        IndexName,
        KeySchema,
        Projection?.ProjectionType,
        Projection?.NonKeyAttributes,
      ]),
    ])
  const wanted = { KeySchema: keySchema(table), GlobalSecondaryIndexes: [index] }
  return found !== undefined && facts(found) === facts(wanted)
}

/** Makes both queues with their dead-letter queues; changed settings are taken over. */
export async function deployQueues(client: SQSClient, urlOf: (queue: string) => string): Promise<void> {
  for (const name of ['look', 'deliver'] as const) {
    const queue = queues[name]
    await deployQueue(client, urlOf, deadQueue(name), {
      MessageRetentionPeriod: String(queue.deadRetentionSeconds),
    })
    await deployQueue(client, urlOf, name, {
      MessageRetentionPeriod: String(queue.retentionSeconds),
      VisibilityTimeout: String(queue.visibilitySeconds),
      RedrivePolicy: JSON.stringify({
        deadLetterTargetArn: queueArn(deadQueue(name)),
        maxReceiveCount: queue.maxReceives,
      }),
    })
  }
}

async function deployQueue(
  client: SQSClient,
  urlOf: (queue: string) => string,
  name: string,
  attributes: Record<string, string>,
): Promise<void> {
  try {
    await client.send(new CreateQueueCommand({ QueueName: name, Attributes: attributes }))
  } catch (error) {
    if (!(error instanceof QueueNameExists)) throw error
    await client.send(new SetQueueAttributesCommand({ QueueUrl: urlOf(name), Attributes: attributes }))
  }
}
