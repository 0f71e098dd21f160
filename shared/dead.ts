// Takes messages out of the two dead-letter queues. What becomes of them is letters.ts's business.
import { DeleteMessageCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs'
import { idOf } from './hash.ts'
import type { QueueName, Queues } from './queue.ts'

/** A message that was received too often. */
export type DeadMessage = {
  body: string
  /** Fair-queue group that it was sent in. */
  group: string
  /** Takes it out of the dead-letter queue for good. */
  forget: () => Promise<void>
}

/** How long whoever took a message has it alone, in seconds; one that is not forgotten comes again. */
const visibilitySeconds = 60

/** Up to ten messages that a queue gave up; none if there are none, or if this door does not empty it. */
export async function takeDead({ client, dead }: Queues, queue: QueueName): Promise<DeadMessage[]> {
  const QueueUrl = dead[queue]
  if (QueueUrl === undefined) return []
  const { Messages = [] } = await client.send(
    new ReceiveMessageCommand({
      QueueUrl,
      MaxNumberOfMessages: 10,
      WaitTimeSeconds: 0,
      VisibilityTimeout: visibilitySeconds,
      MessageSystemAttributeNames: ['MessageGroupId'],
    }),
  )
  return Messages.map(({ Body = '', Attributes, ReceiptHandle }) => ({
    body: Body,
    group: Attributes?.MessageGroupId ?? idOf('group', 'dead', queue),
    forget: async () => {
      await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
    },
  }))
}
