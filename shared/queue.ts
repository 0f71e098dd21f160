// Sends to the two queues. Delays are whole seconds of at most 15 minutes: that is SQS's limit.
import { SendMessageCommand, type SQSClient } from '@aws-sdk/client-sqs'
import { endBy } from './deadline.ts'
import type { DeliverMessage, LookMessage } from './messages.ts'

export type QueueName = 'look' | 'deliver'

export type Queues = {
  client: SQSClient
  urls: Record<QueueName, string>
  /** Their dead-letter queues, for the door that empties them. */
  dead: Record<QueueName, string | undefined>
  /** Ends calls that are under way, for doors with a deadline. */
  signal?: AbortSignal
  /** W3C `traceparent` that messages carry on, unless they bring one. */
  trace?: string
}

/** Longest delay of an SQS message. */
export const longestDelayMs = 15 * 60 * 1000

/**
 * Queues a look.
 * @param group fair-queue group, from `agentGroup`
 * @param delayMs rounded up to whole seconds, capped at 15 minutes
 */
export const sendLook = (queues: Queues, group: string, message: LookMessage, delayMs = 0): Promise<void> =>
  send(queues, queues.urls.look, group, message, delayMs)

/** Queues a delivery; `group` comes from `targetGroup`. */
export const sendDeliver = (
  queues: Queues,
  group: string,
  message: DeliverMessage,
  delayMs = 0,
): Promise<void> => send(queues, queues.urls.deliver, group, message, delayMs)

/** Queues a message again that its queue had given up, in the very words it had. */
export const sendAgain = (queues: Queues, queue: QueueName, group: string, body: string): Promise<void> =>
  sendText(queues, queues.urls[queue], { group, body, delayMs: 0 })

const send = (
  queues: Queues,
  url: string,
  group: string,
  message: LookMessage | DeliverMessage,
  delayMs: number,
): Promise<void> => {
  const traced = queues.trace === undefined ? message : { trace: queues.trace, ...message }
  return sendText(queues, url, { group, body: JSON.stringify(traced), delayMs })
}

async function sendText(
  queues: Queues,
  url: string,
  { group, body, delayMs }: { group: string; body: string; delayMs: number },
): Promise<void> {
  await queues.client.send(
    endBy(
      new SendMessageCommand({
        QueueUrl: url,
        MessageBody: body,
        MessageGroupId: group,
        DelaySeconds: Math.ceil(Math.min(Math.max(delayMs, 0), longestDelayMs) / 1000),
      }),
      queues.signal,
    ),
  )
}
