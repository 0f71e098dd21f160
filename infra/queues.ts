// The two queues, each with a dead-letter queue for messages that nobody could work through.
import { type QueueName, queues as stated } from './topology.ts'

function queue(name: QueueName, label: string): sst.aws.Queue {
  const { visibilitySeconds, maxReceives, retentionSeconds, deadRetentionSeconds } = stated[name]
  const dead = new sst.aws.Queue(`${label}Dead`, {
    transform: {
      queue: args => {
        args.messageRetentionSeconds = deadRetentionSeconds
      },
    },
  })
  return new sst.aws.Queue(`${label}Queue`, {
    visibilityTimeout: `${visibilitySeconds} seconds`,
    dlq: { queue: dead.arn, retry: maxReceives },
    transform: {
      queue: args => {
        args.messageRetentionSeconds = retentionSeconds
      },
    },
  })
}

export const queues: Record<QueueName, sst.aws.Queue> = {
  look: queue('look', 'Look'),
  deliver: queue('deliver', 'Deliver'),
}
