// The two queues, each with a dead-letter queue for messages that nobody could work through.
import { type QueueName, queues as stated } from './topology.ts'

function queue(name: QueueName, label: string): { live: sst.aws.Queue; dead: sst.aws.Queue } {
  const { visibilitySeconds, maxReceives, retentionSeconds, deadRetentionSeconds } = stated[name]
  const dead = new sst.aws.Queue(`${label}Dead`, {
    transform: {
      queue: args => {
        args.messageRetentionSeconds = deadRetentionSeconds
      },
    },
  })
  const live = new sst.aws.Queue(`${label}Queue`, {
    visibilityTimeout: `${visibilitySeconds} seconds`,
    dlq: { queue: dead.arn, retry: maxReceives },
    transform: {
      queue: args => {
        args.messageRetentionSeconds = retentionSeconds
      },
    },
  })
  return { live, dead }
}

const look = queue('look', 'Look')
const deliver = queue('deliver', 'Deliver')

export const queues: Record<QueueName, sst.aws.Queue> = { look: look.live, deliver: deliver.live }
export const deadQueues: Record<QueueName, sst.aws.Queue> = { look: look.dead, deliver: deliver.dead }
