// Queues of their own for a test, made from the topology on a local SQS, and a function that a test writes to empty them.
import {
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import type { SQSEvent } from 'aws-lambda'
import { type Clock, createClock } from '../../infra/local/clock.ts'
import { deployQueues } from '../../infra/local/deploy.ts'
import { type Pump, startPump } from '../../infra/local/pump.ts'
import { queueArn, type Sqs, startSqs } from '../../infra/local/sqs.ts'
import type { Fault } from '../../infra/local/wire.ts'
import { longestDelayMs } from '../../shared/queue.ts'
import { local } from './table.ts'

export type TestQueue = {
  sqs: Sqs
  client: SQSClient
  clock: Clock
  send: (body: string, delaySeconds?: number) => Promise<void>
  receive: () => Promise<Message[]>
  remove: (messages: Message[]) => Promise<void>
  /** Starts to carry the messages of the queue `look` to a handler; failures of whole batches are kept. */
  pump: (
    handler: (event: SQSEvent) => Promise<unknown>,
    more?: { maxConcurrency?: number; timeoutSeconds?: number },
  ) => Pump & { failures: unknown[] }
  /** Lets the next calls of an operation go wrong, one fault each. */
  plan: (operation: string, ...faults: Fault[]) => void
  /** Ends the pumps and removes all messages, delayed and hidden ones too; the clock moves for that. */
  empty: () => Promise<void>
  stop: () => Promise<void>
}

/** Starts an SQS with all queues in it. */
export async function startQueue(options: { dir?: string; clock?: Clock } = {}): Promise<TestQueue> {
  const { dir, clock = createClock() } = options
  const planned: { operation: string; fault: Fault }[] = []
  const pumps: Pump[] = []
  const sqs = await startSqs({
    dir,
    clock,
    onSend: () => {
      for (const { poke } of pumps) poke()
    },
    faults: ({ operation }) => {
      const at = planned.findIndex(plan => plan.operation === operation)
      return at < 0 ? undefined : planned.splice(at, 1)[0]?.fault
    },
  })
  const client = new SQSClient({ ...local, endpoint: sqs.endpoint })
  await deployQueues(client, sqs.url)
  const url = sqs.url('look')
  const stopPumps = () => Promise.all(pumps.splice(0).map(pump => pump.stop()))
  const receive = async () => {
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({
        QueueUrl: url,
        MaxNumberOfMessages: 10,
        MessageSystemAttributeNames: ['All'],
      }),
    )
    return Messages
  }
  const remove = async (messages: Message[]) => {
    const Entries = messages.map(({ ReceiptHandle }, at) => ({ Id: String(at), ReceiptHandle }))
    await client.send(new DeleteMessageBatchCommand({ QueueUrl: url, Entries }))
  }
  return {
    sqs,
    client,
    clock,
    send: async (body, delaySeconds) => {
      await client.send(
        new SendMessageCommand({
          QueueUrl: url,
          MessageBody: body,
          MessageGroupId: 'g',
          ...(delaySeconds !== undefined && { DelaySeconds: delaySeconds }),
        }),
      )
    },
    receive,
    remove,
    pump: (handler, { maxConcurrency = 50, timeoutSeconds = 30 } = {}) => {
      const failures: unknown[] = []
      const pump = startPump({
        limit: { name: 'look', timeoutSeconds },
        handler,
        client,
        queue: { url, arn: queueArn('look'), batchSize: 10, maxConcurrency },
        onFailure: error => failures.push(error),
      })
      pumps.push(pump)
      return { ...pump, failures }
    },
    plan: (operation, ...faults) => {
      for (const fault of faults) planned.push({ operation, fault })
    },
    empty: async () => {
      await stopPumps()
      clock.advance(longestDelayMs)
      for (let left = await receive(); left.length > 0; left = await receive()) await remove(left)
    },
    stop: async () => {
      await stopPumps()
      client.destroy()
      await sqs.stop()
    },
  }
}
