// Runs doors in processes of their own, one each, behind the local ground: what a process uses is then the door's own.
import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import type { Doors } from '../../infra/local/parts.ts'
import type { DoorName } from '../../infra/topology.ts'
import type { Config } from '../../shared/config.ts'
import type { Relay } from '../../shared/relay.ts'
import type { Told, Used } from './instance.ts'

export type Apart = {
  doors: Required<Doors>
  /** How often a door's function was called. */
  calls: Record<DoorName, number>
  /** What a door's process used so far. */
  used: (name: DoorName) => Promise<Used>
  stop: () => void
}

type Instance = { invoke: (now: number, event?: unknown) => Promise<unknown>; stop: () => void }

/** @param flags of Node for each process */
export function runApart(flags: string[] = []): Apart {
  const instances = new Map<DoorName, Instance>()
  const calls = { receive: 0, api: 0, look: 0, deliver: 0, tick: 0 }
  const open = (name: DoorName) => (relay: Relay) => {
    const instance = start(name, relay.config, flags)
    instances.set(name, instance)
    return (event: unknown): Promise<never> => {
      calls[name] += 1
      return instance.invoke(relay.now(), event) as Promise<never>
    }
  }
  return {
    doors: {
      receive: open('receive'),
      api: open('api'),
      look: open('look'),
      deliver: open('deliver'),
      tick: open('tick'),
    },
    calls,
    used: async name => (await instances.get(name)?.invoke(0)) as Used,
    stop: () => {
      for (const { stop } of instances.values()) stop()
    },
  }
}

function start(name: DoorName, config: Config, flags: string[]): Instance {
  const child: ChildProcess = fork(join(import.meta.dirname, 'instance.ts'), [name], {
    env: envOf(config),
    execArgv: flags,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const waiting = new Map<number, (told: Told) => void>()
  child.on('message', (told: Told) => {
    waiting.get(told.id)?.(told)
    waiting.delete(told.id)
  })
  let asked = 0
  return {
    invoke: async (now, event) => {
      const id = ++asked
      const told = Promise.withResolvers<Told>()
      waiting.set(id, told.resolve)
      child.send({ id, now, event })
      const { answer, fault } = await told.promise
      if (fault !== undefined) throw new Error(fault)
      return answer
    },
    stop: () => void child.kill(),
  }
}

/** The settings that a relay was made from, for another process. */
const envOf = (config: Config): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  AWS_REGION: config.region,
  AWS_ACCESS_KEY_ID: config.credentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: config.credentials.secretAccessKey,
  AWS_ENDPOINT_URL_DYNAMODB: config.dynamodbEndpoint ?? '',
  AWS_ENDPOINT_URL_SQS: config.sqsEndpoint ?? '',
  TABLE_NAME: config.tableName,
  LOOK_QUEUE_URL: config.lookQueueUrl,
  DELIVER_QUEUE_URL: config.deliverQueueUrl,
  PUBLIC_ORIGIN: config.publicOrigin,
  HOOK_ORIGIN: config.hookOrigin,
  ROOT_KEYS: [...config.rootKeys]
    .map(([version, key]) => `${version}:${Buffer.from(key).toString('base64url')}`)
    .join(','),
  OPERATOR_KEY_SHA256: config.operatorKeySha256 ?? '',
  ALLOW_HTTP: String(config.net.allowHttp),
  ALLOW_ADDRESSES: config.net.allowAddresses.join(','),
  ALLOW_PORTS: config.net.allowPorts === '*' ? '*' : config.net.allowPorts.join(','),
  DUE_SHARDS: String(config.dueShards),
  LOG_LEVEL: config.logLevel,
})
