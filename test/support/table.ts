// A table of its own for a test, made from the topology on a local DynamoDB, in memory or in a folder.
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { type Clock, createClock } from '../../infra/local/clock.ts'
import { deployTable } from '../../infra/local/deploy.ts'
import { type Dynamo, startDynamo } from '../../infra/local/dynamodb.ts'
import type { Fault } from '../../infra/local/wire.ts'
import type { Table } from '../../shared/store/table.ts'

export type TestTable = {
  table: Table
  client: DynamoDBClient
  dynamo: Dynamo
  clock: Clock
  /** Operations called so far, and the units billed for reads and writes. */
  calls: string[]
  units: number[]
  /** Lets the next calls of an operation go wrong, one fault each. */
  plan: (operation: string, ...faults: Fault[]) => void
  stop: () => Promise<void>
}

/** How a client calls a local service. */
export const local = {
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'x' },
  maxAttempts: 2,
}

/** Starts a DynamoDB with the table in it. */
export async function startTable(options: { path?: string } = {}): Promise<TestTable> {
  const clock = createClock()
  const planned: { operation: string; fault: Fault }[] = []
  const calls: string[] = []
  const units: number[] = []
  const dynamo = await startDynamo({
    ...options,
    now: clock.now,
    faults: ({ operation }) => {
      const at = planned.findIndex(plan => plan.operation === operation)
      return at < 0 ? undefined : planned.splice(at, 1)[0]?.fault
    },
    onCall: ({ operation }, outcome) => {
      calls.push(operation)
      if (outcome.units !== undefined) units.push(outcome.units)
    },
  })
  const client = new DynamoDBClient({ ...local, endpoint: dynamo.endpoint })
  await deployTable(client, 'rouse')
  let marks = 0
  return {
    table: { client, name: 'rouse', shards: 8, nonce: () => String(++marks) },
    client,
    dynamo,
    clock,
    calls,
    units,
    plan: (operation, ...faults) => {
      for (const fault of faults) planned.push({ operation, fault })
    },
    stop: async () => {
      client.destroy()
      await dynamo.stop()
    },
  }
}
