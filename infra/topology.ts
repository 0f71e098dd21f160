// What stands on the ground, as plain data: table, index, queues, functions, schedule. Read by the AWS and the local ground; imports nothing.

export type DoorName = 'receive' | 'api' | 'look' | 'deliver' | 'tick'
export type QueueName = 'look' | 'deliver'

/** An operation on the table's items, or a query over its index of timers. */
export type TableRight = 'GetItem' | 'PutItem' | 'UpdateItem' | 'DeleteItem' | 'Query' | 'Query index'

type Door = {
  /** Handler as SST and Lambda name it: file without extension, dot, export. */
  handler: string
  timeoutSeconds: number
  memoryMegabytes: number
  /** What the door may do with the table. */
  table: readonly TableRight[]
  sends: readonly QueueName[]
  /** Whether it empties the dead-letter queues. */
  emptiesDead?: true
  /** Whether it holds the root keys. */
  keys: boolean
  /** Served at a Function URL. */
  url: boolean
}

type Queue = {
  consumer: DoorName
  batchSize: number
  /** Lambda's advice: at least six times the consumer's time-out, or a slow batch is delivered twice. */
  visibilitySeconds: number
  /** Receives before a message goes to the dead-letter queue. */
  maxReceives: number
  retentionSeconds: number
  deadRetentionSeconds: number
  /** How many batches the event source runs at once. */
  maxConcurrency: number
}

export const table = {
  name: 'Table',
  hashKey: 'pk',
  rangeKey: 'sk',
  ttl: 'ttl',
  /** Sparse: only items with a timer are in it. `group` and `holds` ride along, so that tick needs no read to queue and to hold. */
  index: { name: 'due', hashKey: 'slot', rangeKey: 'due', include: ['group', 'holds'] },
} as const

const everything: readonly TableRight[] = [
  'GetItem',
  'PutItem',
  'UpdateItem',
  'DeleteItem',
  'Query',
  'Query index',
]

export const doors: Record<DoorName, Door> = {
  receive: {
    handler: 'functions/receive.handler',
    timeoutSeconds: 5,
    memoryMegabytes: 512,
    // It stands in the open: no lists, no deletion.
    table: ['GetItem', 'PutItem', 'UpdateItem'],
    sends: ['look'],
    keys: true,
    url: true,
  },
  api: {
    handler: 'functions/api/app.handler',
    timeoutSeconds: 30,
    memoryMegabytes: 512,
    table: everything,
    sends: ['look', 'deliver'],
    keys: true,
    url: true,
  },
  look: {
    handler: 'functions/look.handler',
    timeoutSeconds: 30,
    memoryMegabytes: 512,
    table: everything,
    sends: ['look', 'deliver'],
    keys: true,
    url: false,
  },
  deliver: {
    handler: 'functions/deliver.handler',
    timeoutSeconds: 30,
    memoryMegabytes: 512,
    table: everything,
    sends: ['deliver'],
    keys: true,
    url: false,
  },
  tick: {
    handler: 'functions/tick.handler',
    timeoutSeconds: 50,
    memoryMegabytes: 256,
    // Reads and puts are for dead letters alone.
    table: ['GetItem', 'PutItem', 'UpdateItem', 'Query index'],
    sends: ['look', 'deliver'],
    emptiesDead: true,
    keys: false,
    url: false,
  },
}

const day = 24 * 60 * 60

export const queues: Record<QueueName, Queue> = {
  look: {
    consumer: 'look',
    batchSize: 10,
    visibilitySeconds: 180,
    maxReceives: 10,
    retentionSeconds: 4 * day,
    deadRetentionSeconds: 14 * day,
    maxConcurrency: 50,
  },
  deliver: {
    consumer: 'deliver',
    batchSize: 10,
    visibilitySeconds: 180,
    maxReceives: 10,
    retentionSeconds: 4 * day,
    deadRetentionSeconds: 14 * day,
    maxConcurrency: 50,
  },
}

export const schedules = { tick: { door: 'tick', everySeconds: 60 } } as const
