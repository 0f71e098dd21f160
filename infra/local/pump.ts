// Carries messages from one queue to its function, as Lambda's event source mapping does with ReportBatchItemFailures.
import {
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs'
import type { SQSEvent } from 'aws-lambda'
import { type Handler, invoke } from './lambda.ts'
import { isRecord } from './wire.ts'

export type Pump = {
  /** Polls now instead of at the next turn. */
  poke: () => void
  /** Resolves when a poll that began after the call found nothing while no batch was running. */
  settle: () => Promise<void>
  /** True while a batch is with the function. */
  busy: () => boolean
  /** Receives no more and waits for the batches under way. */
  stop: () => Promise<void>
  /** Receives no more and waits for nothing. */
  kill: () => void
}

export type PumpOptions = {
  /** Name and time-out of the function. */
  limit: { name: string; timeoutSeconds: number }
  handler: Handler<SQSEvent>
  client: SQSClient
  queue: { url: string; arn: string; batchSize: number; maxConcurrency: number }
  /** Told when a batch failed as a whole, or the queue did not answer. */
  onFailure: (error: unknown) => void
}

/**
 * Longest wait between two polls. Sends poke the pump, so only delays and visibility time-outs wait this long. The
 * polls are short ones: a long poll cannot be ended without losing the message it may just have been given.
 */
const turnMs = 200

/** Starts to carry messages. */
export function startPump(options: PumpOptions): Pump {
  const running = new Set<Promise<void>>()
  const settling: { since: number; resolve: () => void }[] = []
  let polls = 0
  let stopped = false
  let wake = () => {}
  let poked = false
  const poke = () => {
    poked = true
    wake()
  }
  const rest = async () => {
    if (!poked && !stopped) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, turnMs)
      wake = resolve
      await promise
      clearTimeout(timer)
    }
  }
  const quiet = (poll: number) => {
    for (const waiting of settling.splice(0)) {
      if (waiting.since < poll) waiting.resolve()
      else settling.push(waiting)
    }
  }
  const start = (messages: Message[]) => {
    const batch = carry(options, messages).finally(() => {
      running.delete(batch)
      poke()
    })
    running.add(batch)
  }
  const turn = async () => {
    if (running.size >= options.queue.maxConcurrency) return Promise.race(running)
    poked = false
    const poll = ++polls
    const messages = await receive(options)
    if (messages.length > 0) return start(messages)
    if (running.size === 0) quiet(poll)
    await rest()
  }
  const loop = async () => {
    while (!stopped)
      await turn().catch(async error => {
        if (!stopped) options.onFailure(error)
        await rest()
      })
  }
  const looping = loop()
  const halt = () => {
    stopped = true
    wake()
    for (const { resolve } of settling.splice(0)) resolve()
  }
  return {
    poke,
    busy: () => running.size > 0,
    settle: async () => {
      if (stopped) return
      const { promise, resolve } = Promise.withResolvers<void>()
      settling.push({ since: polls, resolve })
      poke()
      await promise
    },
    stop: async () => {
      halt()
      await looping
      await Promise.all(running)
    },
    kill: halt,
  }
}

async function receive({ client, queue }: PumpOptions): Promise<Message[]> {
  const { Messages = [] } = await client.send(
    new ReceiveMessageCommand({
      QueueUrl: queue.url,
      MaxNumberOfMessages: queue.batchSize,
      WaitTimeSeconds: 0,
      MessageSystemAttributeNames: ['All'],
    }),
  )
  return Messages
}

/** Hands one batch to the function and deletes what it did not report; the rest comes back by its visibility time-out. */
async function carry(options: PumpOptions, messages: Message[]): Promise<void> {
  try {
    const answer = await invoke(options.limit, options.handler, toEvent(messages, options.queue.arn))
    const failed = failures(answer, messages)
    const done = messages.filter(({ MessageId }) => !failed.has(MessageId))
    if (done.length === 0) return
    await options.client.send(
      new DeleteMessageBatchCommand({
        QueueUrl: options.queue.url,
        Entries: done.map(({ ReceiptHandle }, at) => ({ Id: String(at), ReceiptHandle })),
      }),
    )
  } catch (error) {
    options.onFailure(error)
  }
}

/**
 * The messages to keep. Nothing reported is success; an answer that cannot be read, or names a message that is not in
 * the batch, fails the whole batch (Lambda developer guide, "Success and failure conditions" of SQS batches).
 */
function failures(answer: unknown, messages: Message[]): Set<string | undefined> {
  if (answer === undefined || answer === null) return new Set()
  if (!isRecord(answer)) throw new Error('The answer to a batch is no object')
  const list = answer.batchItemFailures ?? []
  if (!Array.isArray(list)) throw new Error('batchItemFailures is no list')
  const known = new Set(messages.map(({ MessageId }) => MessageId))
  const failed = new Set<string | undefined>()
  for (const item of list) {
    const id: unknown = isRecord(item) ? item.itemIdentifier : undefined
    if (typeof id !== 'string' || !known.has(id))
      throw new Error('batchItemFailures names a message that is not in the batch')
    failed.add(id)
  }
  return failed
}

function toEvent(messages: Message[], arn: string): SQSEvent {
  return {
    Records: messages.map(message => ({
      messageId: message.MessageId ?? '',
      receiptHandle: message.ReceiptHandle ?? '',
      body: message.Body ?? '',
      attributes: {
        ApproximateReceiveCount: '',
        SentTimestamp: '',
        SenderId: '',
        ApproximateFirstReceiveTimestamp: '',
        ...message.Attributes,
      },
      messageAttributes: {},
      md5OfBody: message.MD5OfBody ?? '',
      eventSource: 'aws:sqs',
      eventSourceARN: arn,
      awsRegion: 'us-east-1',
    })),
  }
}
