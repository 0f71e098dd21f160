// Starts the parts of the ground in their order: table and queues, function URLs, then the doors, which need to know where all of that is.
import type { HttpHandler, QueueHandler, ScheduleHandler } from '../../functions/lambda.ts'
import { createLog, type Step } from '../../shared/log.ts'
import type { NetRules } from '../../shared/net.ts'
import { createRelay, type Relay } from '../../shared/relay.ts'
import { type DoorName, doors as functions, type QueueName, queues, schedules } from '../topology.ts'
import { type Clock, createClock } from './clock.ts'
import { deployQueues, deployTable } from './deploy.ts'
import { type Dynamo, startDynamo } from './dynamodb.ts'
import { type Folder, heldBy, noteHolder, type Secrets } from './folder.ts'
import { type FunctionUrl, openUrl } from './http.ts'
import { invoke } from './lambda.ts'
import { type Pump, startPump } from './pump.ts'
import { loopback, settingsFor } from './settings.ts'
import { queueArn, type Sqs, startSqs } from './sqs.ts'
import { startTicker, type Ticker } from './tick.ts'
import type { WireOptions } from './wire.ts'

/** The doors by name; a test may leave out those that it does not need. */
export type Doors = {
  receive?: (relay: Relay) => HttpHandler
  api?: (relay: Relay) => HttpHandler
  look?: (relay: Relay) => QueueHandler
  deliver?: (relay: Relay) => QueueHandler
  tick?: (relay: Relay) => ScheduleHandler
}

export type GroundOptions = WireOptions & {
  /** Data folder; without one everything is in memory and gone at the end. */
  dir?: string
  /** Free ports are chosen unless given. */
  ports?: { hook?: number; api?: number }
  /** Pace of the tick, each second unless said otherwise. `manual`: only `tick()` and `drain()` run it. */
  tick?: 'second' | 'minute' | 'manual'
  /** How many batches of a queue are under way at a time at most; as many as on AWS unless said. */
  batches?: number
  /** What the doors may call; everything on the loopback address unless said otherwise. */
  net?: NetRules
  /** A clock of the caller's own, which the ground then does not keep. */
  clock?: Clock
  /** Settings that win over those of the ground. */
  env?: Record<string, string>
  /** Takes every log line; without it they are dropped. */
  write?: (line: string) => void
  /** Told of every logged step. */
  onStep?: (door: DoorName, step: Step) => void
}

export type Base = {
  options: GroundOptions
  folder: Folder
  clock: Clock
  dynamo: Dynamo
  sqs: Sqs
  urls: FunctionUrl[]
  relays: Relay[]
  /** Lets the pumps know that there may be something to carry. */
  poke: () => void
  /** False once the ground has ended: whoever still runs is no longer heard. */
  alive: boolean
}

/** Table and queues, reachable but empty. */
export async function startBase(folder: Folder, options: GroundOptions): Promise<Base> {
  const { dir, faults, onCall } = options
  // A clock reads its file before the lock is won, and only reads.
  const clock = options.clock ?? createClock(folder.clock)
  const dynamo = await startDynamo({ path: folder.table, now: clock.now, faults, onCall }).catch(error => {
    throw dir === undefined ? error : heldBy(dir, error)
  })
  if (dir !== undefined) noteHolder(dir)
  const onSend = () => base.poke()
  const sqs = await startSqs({ dir: folder.queues, clock, faults, onCall, onSend }).catch(async error => {
    await dynamo.stop()
    throw error
  })
  const base: Base = {
    ...{ options, folder, clock, dynamo, sqs, urls: [], relays: [] },
    poke: () => {},
    alive: true,
  }
  return base
}

export type Running = { secrets: Secrets; env: Record<string, string>; pumps: Pump[]; ticker: Ticker }

/** Opens the ports, makes the doors, and starts what calls them. */
export async function openDoors(base: Base, doors: Doors): Promise<Running> {
  const { options, sqs } = base
  const served: Served = {}
  const hookOrigin = await openDoor(base, served, 'receive', options.ports?.hook)
  const apiOrigin = await openDoor(base, served, 'api', options.ports?.api)
  const secrets = base.folder.secrets()
  const places = { hookOrigin, apiOrigin, dynamodb: base.dynamo.endpoint, sqs: sqs.endpoint }
  const env = {
    ...settingsFor({ ...places, queueUrl: sqs.url }, secrets, options.net ?? loopback),
    ...options.env,
  }
  const own = relayFor(base, env, 'ground')
  await deployTable(own.table.client, own.table.name)
  await deployQueues(own.queues.client, sqs.url)
  if (doors.receive) served.receive = doors.receive(relayFor(base, env, 'receive'))
  if (doors.api) served.api = doors.api(relayFor(base, env, 'api'))
  const pump = (name: 'look' | 'deliver') => {
    const door = doors[name]
    return door ? [pumpOf(base, own, name, door(relayFor(base, env, name)))] : []
  }
  const pumps = [...pump('look'), ...pump('deliver')]
  base.poke = () => {
    for (const { poke } of pumps) poke()
  }
  const tick: ScheduleHandler = doors.tick ? doors.tick(relayFor(base, env, 'tick')) : async () => {}
  return { secrets, env, pumps, ticker: tickerOf(base, tick) }
}

/** HTTP doors, filled in once they are made: they need to know the ports, so the ports are opened first. */
type Served = { receive?: HttpHandler; api?: HttpHandler }

async function openDoor(base: Base, served: Served, door: 'receive' | 'api', port = 0): Promise<string> {
  const url = await openUrl({
    limit: limitOf(door),
    port,
    now: base.clock.now,
    handler: event => served[door]?.(event) ?? Promise.reject(new Error(`${door} is not open`)),
    onFailure: failureOf(base, door),
  })
  base.urls.push(url)
  return `http://127.0.0.1:${url.port}`
}

function relayFor(base: Base, env: Record<string, string>, name: DoorName | 'ground'): Relay {
  const write = name === 'ground' ? () => {} : writerOf(base, name)
  const relay = createRelay(name, { ...env, AWS_ACCESS_KEY_ID: name }, { now: base.clock.now, write })
  base.relays.push(relay)
  return relay
}

const writerOf = (base: Base, door: DoorName) => (line: string) => {
  if (!base.alive) return
  base.options.write?.(line)
  base.options.onStep?.(door, JSON.parse(line))
}

/** Logs what AWS would show as a failed invocation. */
function failureOf(base: Base, door: DoorName): (error: unknown) => void {
  const log = createLog(door, 'error', base.clock.now, writerOf(base, door))
  return error => log({ step: 'function.failed', level: 'error', error })
}

const limitOf = (door: DoorName) => ({ name: door, timeoutSeconds: functions[door].timeoutSeconds })

function pumpOf(base: Base, own: Relay, name: QueueName, handler: QueueHandler): Pump {
  const { consumer, batchSize, maxConcurrency: most } = queues[name]
  const maxConcurrency = Math.min(most, base.options.batches ?? most)
  return startPump({
    limit: limitOf(consumer),
    handler,
    client: own.queues.client,
    queue: { url: base.sqs.url(name), arn: queueArn(name), batchSize, maxConcurrency },
    onFailure: failureOf(base, consumer),
  })
}

function tickerOf(base: Base, tick: ScheduleHandler): Ticker {
  const paces = { second: 1000, minute: schedules.tick.everySeconds * 1000, manual: undefined }
  const pace = paces[base.options.tick ?? 'second']
  return startTicker(pace, () => invoke(limitOf('tick'), tick, {}), failureOf(base, 'tick'))
}
