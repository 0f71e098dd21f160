// The world of a door in one record, and the one function that builds it.
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { SQSClient } from '@aws-sdk/client-sqs'
import { systemNow, systemRandom } from './clock.ts'
import { type Config, loadConfig } from './config.ts'
import { heed, innermost } from './deadline.ts'
import { createLog, type Log } from './log.ts'
import { createNet, type Net } from './net.ts'
import type { Permits } from './permits.ts'
import type { Queues } from './queue.ts'
import { signQuickly } from './signer.ts'
import type { Table } from './store/table.ts'
import { traceIdOf } from './trace.ts'

export type Relay = {
  config: Config
  /** Milliseconds since 1970. */
  now: () => number
  random: (length: number) => Uint8Array
  log: Log
  table: Table
  queues: Queues
  net: Net
  /** The slots of agents' calls that this process holds. */
  permits: Permits
  /** W3C `traceparent` of what is being worked on, once that is known. */
  trace?: string
}

/** What a ground may replace: time, randomness and where log lines go. */
export type World = {
  now?: () => number
  random?: (length: number) => Uint8Array
  write?: (line: string) => void
}

/** Builds the world of one door from the environment. Everything in it is shared by all requests of the process. */
export function createRelay(door: string, env: Record<string, string | undefined>, world: World = {}): Relay {
  const config = loadConfig(env)
  const now = world.now ?? systemNow
  const random = world.random ?? systemRandom
  // Two attempts, each cut off: a hung connection must not eat the 5 s that a sender waits.
  const tuned = {
    region: config.region,
    credentials: config.credentials,
    cacheMiddleware: true,
    maxAttempts: 2,
    requestHandler: { connectionTimeout: 500, requestTimeout: 1500, throwOnRequestTimeout: true },
  }
  const dynamodb = new DynamoDBClient({
    ...tuned,
    ...(config.dynamodbEndpoint !== undefined && { endpoint: config.dynamodbEndpoint }),
  })
  dynamodb.middlewareStack.add(heed(dynamodb.config), innermost)
  signQuickly(dynamodb.config)
  const sqs = new SQSClient({
    ...tuned,
    md5: false,
    ...(config.sqsEndpoint !== undefined && { endpoint: config.sqsEndpoint }),
  })
  sqs.middlewareStack.add(heed(sqs.config), innermost)
  signQuickly(sqs.config)
  return {
    config,
    now,
    random,
    log: createLog(door, config.logLevel, now, world.write ?? writeLine),
    table: {
      client: dynamodb,
      name: config.tableName,
      shards: config.dueShards,
      nonce: countFrom(Buffer.from(random(9)).toString('base64url')),
    },
    queues: {
      client: sqs,
      urls: { look: config.lookQueueUrl, deliver: config.deliverQueueUrl },
      dead: { look: config.lookDeadQueueUrl, deliver: config.deliverDeadQueueUrl },
    },
    net: createNet(config.net),
    permits: new Map(),
  }
}

/**
 * The same world while it works on one thing: every line it logs says so, and every call and message belongs to its trace.
 * @param of the `traceparent`, and the task that this one was delegated from, as `agent/task`; what is not known yet stays
 */
export function within(relay: Relay, of: { trace?: string | undefined; parent?: string | undefined }): Relay {
  const { trace, parent } = of
  const facts = {
    ...(trace !== undefined && { trace: traceIdOf(trace) }),
    ...(parent !== undefined && { parent }),
  }
  return {
    ...relay,
    ...(trace !== undefined && { trace, queues: { ...relay.queues, trace } }),
    log: step => relay.log({ ...facts, ...step }),
  }
}

/** Marks of writes: drawing each of them at random would cost as much as signing it. */
function countFrom(start: string): () => string {
  let count = 0
  return () => `${start}${(++count).toString(36)}`
}

const writeLine = (line: string): void => {
  process.stdout.write(`${line}\n`)
}
