// An SQS for laptops and tests: fauxqs in a worker, behind a front that takes only what Rouse uses and injects faults.
import { Worker } from 'node:worker_threads'
import type { Clock } from './clock.ts'
import {
  type Answer,
  type Call,
  exception,
  isRecord,
  serveWire,
  type Wire,
  type WireOptions,
} from './wire.ts'

/** One message as it lies in a queue, seen without receiving it. */
export type Lying = {
  id: string
  body: string
  /** Whether it can be received now, is being worked on, or waits for its delay. */
  place: 'ready' | 'inflight' | 'delayed'
  receives: number
  sentAt: number
}

export type Sqs = Wire & {
  /** URL of a queue by name. */
  url: (queue: string) => string
  /** How many messages were sent so far. */
  sends: () => number
  /** All messages of a queue, without touching them. */
  look: (queue: string) => Promise<Lying[]>
  /** Ends at once: nothing is closed in order. */
  kill: () => Promise<void>
}

/** Parameters taken, by operation. Anything else is refused by name, so that nothing is silently ignored. */
const takes: Record<string, string[]> = {
  CreateQueue: ['QueueName', 'Attributes'],
  SetQueueAttributes: ['QueueUrl', 'Attributes'],
  GetQueueAttributes: ['QueueUrl', 'AttributeNames'],
  SendMessage: ['QueueUrl', 'MessageBody', 'DelaySeconds', 'MessageGroupId'],
  ReceiveMessage: [
    'QueueUrl',
    'MaxNumberOfMessages',
    'WaitTimeSeconds',
    'VisibilityTimeout',
    'MessageSystemAttributeNames',
  ],
  DeleteMessage: ['QueueUrl', 'ReceiptHandle'],
  DeleteMessageBatch: ['QueueUrl', 'Entries'],
}

/** Account number in ARNs and queue URLs. */
const account = '000000000000'

/** ARN of a queue by name. */
export const queueArn = (queue: string): string => `arn:aws:sqs:us-east-1:${account}:${queue}`

const invalid = (message: string): Answer =>
  exception('com.amazonaws.sqs#InvalidParameterValueException', message)

/**
 * Starts an SQS on a free port of 127.0.0.1.
 * @param options `dir`: folder of the data, in memory without one; `onSend`: told of every message sent
 */
export async function startSqs(
  options: WireOptions & { dir?: string | undefined; clock: Clock; onSend?: () => void },
): Promise<Sqs> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: { offset: options.clock.offset, dir: options.dir },
  })
  const ended = new Promise(resolve => worker.once('exit', resolve))
  const port = await new Promise<unknown>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  const behind = `http://127.0.0.1:${port}`
  let sends = 0
  const wire = await serveWire(
    {
      name: 'sqs',
      throttled: 'com.amazonaws.sqs#RequestThrottled',
      answer: async call => {
        const answer = refuse(call) ?? (await forward(behind, call))
        if (call.operation === 'SendMessage' && answer.status === 200) {
          sends += 1
          options.onSend?.()
        }
        return answer
      },
    },
    options,
  )
  const end = async (how: () => unknown) => {
    how()
    await wire.stop()
    await ended
  }
  return {
    endpoint: wire.endpoint,
    url: queue => `${wire.endpoint}/${account}/${queue}`,
    sends: () => sends,
    look: queue => look(behind, queue),
    stop: () => end(() => worker.postMessage('stop')),
    kill: () => end(() => worker.terminate()),
  }
}

function refuse({ operation, body }: Call): Answer | undefined {
  const taken = Object.hasOwn(takes, operation) ? takes[operation] : undefined
  if (taken === undefined) return invalid(`${operation} is not among the operations taken here`)
  const unknown = Object.keys(body).filter(name => !taken.includes(name))
  if (unknown.length > 0) return invalid(`${operation} does not take ${unknown.join(', ')} here`)
  const delay = Number(body.DelaySeconds ?? 0)
  if (!(Number.isInteger(delay) && delay >= 0 && delay <= 900))
    return invalid(`DelaySeconds must be a whole number of 0 to 900, not ${String(body.DelaySeconds)}`)
  return undefined
}

async function forward(behind: string, { operation, body }: Call): Promise<Answer> {
  const response = await fetch(behind, {
    method: 'POST',
    headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': `AmazonSQS.${operation}` },
    body: JSON.stringify(body),
  })
  const answer: unknown = await response.json()
  return { status: response.status, body: isRecord(answer) ? answer : {} }
}

type Inspected = {
  messageId: string
  body: string
  approximateReceiveCount: number
  sentTimestamp: number
}

async function look(behind: string, queue: string): Promise<Lying[]> {
  const response = await fetch(`${behind}/_fauxqs/queues/${queue}`)
  if (!response.ok) throw new Error(`There is no queue ${queue}`)
  const { messages } = (await response.json()) as {
    messages: { ready: Inspected[]; delayed: Inspected[]; inflight: { message: Inspected }[] }
  }
  const lying = (place: Lying['place']) => (message: Inspected) => ({
    id: message.messageId,
    body: message.body,
    place,
    receives: message.approximateReceiveCount,
    sentAt: message.sentTimestamp,
  })
  return [
    ...messages.ready.map(lying('ready')),
    ...messages.inflight.map(({ message }) => message).map(lying('inflight')),
    ...messages.delayed.map(lying('delayed')),
  ]
}
