// The doors behind the queues. A batch is answered in part, so that one poisoned message repeats alone.
import { door } from './door.ts'
import { queues } from './queues.ts'
import { type QueueName, queues as stated } from './topology.ts'

function consume(name: QueueName, label: string): void {
  const { consumer, batchSize, maxConcurrency } = stated[name]
  queues[name].subscribe(door(consumer, label).arn, {
    batch: { size: batchSize, partialResponses: true },
    transform: {
      eventSourceMapping: args => {
        args.scalingConfig = { maximumConcurrency: maxConcurrency }
      },
    },
  })
}

consume('look', 'Look')
consume('deliver', 'Deliver')
