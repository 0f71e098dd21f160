// Reads the environment once, checks all of it, and reports every fault in one message. The only reader of the environment.
import type { NetRules } from './net.ts'

export type Config = {
  region: string
  /** Given to the SDK as values so that it need not search for them; Lambda and the local ground set all three. */
  credentials: { accessKeyId: string; secretAccessKey: string; sessionToken?: string }
  dynamodbEndpoint: string | undefined
  sqsEndpoint: string | undefined
  tableName: string
  lookQueueUrl: string
  deliverQueueUrl: string
  /** Their dead-letter queues; undefined for a door that does not empty them. */
  lookDeadQueueUrl: string | undefined
  deliverDeadQueueUrl: string | undefined
  /** Origin of the API and its pages, e.g. `https://rouse.example`. Links are built from it, never from `Host`. */
  publicOrigin: string
  /** Origin of the hooks. Hook URLs live as long as tasks, so it must not change lightly. */
  hookOrigin: string
  /** Root keys by version; the highest version makes new secrets, all versions open old ones. Empty where a door holds none. */
  rootKeys: ReadonlyMap<number, Uint8Array>
  /** SHA-256 (hex) of the operator's key; undefined switches the operator off. */
  operatorKeySha256: string | undefined
  net: NetRules
  /** Shards of the index `due`. */
  dueShards: number
  logLevel: 'debug' | 'info' | 'error'
}

/** Settings by name, with their default and meaning. The README's table is checked against this list. */
export const settings = {
  TABLE_NAME: { says: 'DynamoDB table' },
  LOOK_QUEUE_URL: { says: 'SQS queue of the looks' },
  DELIVER_QUEUE_URL: { says: 'SQS queue of the deliveries' },
  LOOK_DEAD_QUEUE_URL: { fallback: '', says: 'Dead-letter queue of the looks; tick alone needs it' },
  DELIVER_DEAD_QUEUE_URL: { fallback: '', says: 'Dead-letter queue of the deliveries; tick alone needs it' },
  PUBLIC_ORIGIN: { says: 'Origin of the API, e.g. https://rouse.example' },
  HOOK_ORIGIN: { says: 'Origin that agents push to; lives as long as tasks' },
  ROOT_KEYS: {
    says: 'Root keys, `version:base64url(32 bytes)`, separated by commas; the highest makes new secrets. `none` for a door that holds none',
  },
  OPERATOR_KEY_SHA256: { fallback: '', says: 'SHA-256 (hex) of the operator key; empty switches it off' },
  ALLOW_HTTP: { fallback: 'false', says: 'Whether plain http may be called; for laptops' },
  ALLOW_ADDRESSES: {
    fallback: '',
    says: 'Private addresses that may be called all the same: CIDRs, commas between',
  },
  ALLOW_PORTS: { fallback: '443', says: 'Ports that may be called, commas between; `*` for all' },
  DUE_SHARDS: { fallback: '64', says: 'Shards of the timer index' },
  LOG_LEVEL: {
    fallback: 'info',
    says: '`debug` (each step), `info` (a line for each push, look with news and wake) or `error`',
  },
} as const satisfies Record<string, { fallback?: string; says: string }>

type SettingName = keyof typeof settings

/**
 * Reads the settings.
 * @param env the environment, as a record
 * @throws Error naming every missing or wrong setting at once
 */
export function loadConfig(env: Record<string, string | undefined>): Config {
  const faults: string[] = []
  const read = (name: SettingName): string => {
    const setting: { fallback?: string; says: string } = settings[name]
    const value = env[name] ?? setting.fallback
    if (value === undefined) faults.push(`${name} is missing (${setting.says})`)
    return value ?? ''
  }
  const origin = (name: SettingName): string => {
    const value = read(name)
    if (value !== '' && !(URL.canParse(value) && new URL(value).origin === value))
      faults.push(`${name} is not an origin such as https://rouse.example`)
    return value
  }
  const list = (name: SettingName): string[] => read(name).split(',').filter(Boolean)
  const level = read('LOG_LEVEL')
  if (!isLevel(level)) faults.push('LOG_LEVEL is none of debug, info, error')
  const dueShards = Number(read('DUE_SHARDS'))
  if (!Number.isInteger(dueShards) || dueShards < 1) faults.push('DUE_SHARDS is no positive whole number')
  const publicOrigin = origin('PUBLIC_ORIGIN')
  const hookOrigin = origin('HOOK_ORIGIN')
  const config: Config = {
    region: env.AWS_REGION ?? 'us-east-1',
    credentials: {
      accessKeyId: env.AWS_ACCESS_KEY_ID ?? '',
      secretAccessKey: env.AWS_SECRET_ACCESS_KEY ?? '',
      ...(env.AWS_SESSION_TOKEN === undefined ? {} : { sessionToken: env.AWS_SESSION_TOKEN }),
    },
    dynamodbEndpoint: env.AWS_ENDPOINT_URL_DYNAMODB,
    sqsEndpoint: env.AWS_ENDPOINT_URL_SQS,
    tableName: read('TABLE_NAME'),
    lookQueueUrl: read('LOOK_QUEUE_URL'),
    deliverQueueUrl: read('DELIVER_QUEUE_URL'),
    lookDeadQueueUrl: read('LOOK_DEAD_QUEUE_URL') || undefined,
    deliverDeadQueueUrl: read('DELIVER_DEAD_QUEUE_URL') || undefined,
    publicOrigin,
    hookOrigin,
    rootKeys: readRootKeys(read('ROOT_KEYS'), faults),
    operatorKeySha256: read('OPERATOR_KEY_SHA256').toLowerCase() || undefined,
    net: {
      allowHttp: read('ALLOW_HTTP') === 'true',
      allowAddresses: list('ALLOW_ADDRESSES'),
      allowPorts: read('ALLOW_PORTS') === '*' ? '*' : list('ALLOW_PORTS').map(Number),
      ownOrigins: [publicOrigin, hookOrigin],
    },
    dueShards,
    logLevel: isLevel(level) ? level : 'info',
  }
  if (faults.length > 0) throw new Error(`Settings: ${faults.join('; ')}.`)
  return config
}

const isLevel = (level: string): level is Config['logLevel'] => ['debug', 'info', 'error'].includes(level)

function readRootKeys(text: string, faults: string[]): Map<number, Uint8Array> {
  const keys = new Map<number, Uint8Array>()
  if (text === 'none') return keys
  for (const entry of text.split(',').filter(Boolean)) {
    const [version = '', key = ''] = entry.split(':')
    const bytes = new Uint8Array(Buffer.from(key, 'base64url'))
    if (!/^\d{1,3}$/.test(version) || Number(version) > 255 || bytes.length !== 32)
      faults.push(
        'ROOT_KEYS holds an entry that is not version:base64url(32 bytes) with a version of 0 to 255',
      )
    keys.set(Number(version), bytes)
  }
  if (text !== '' && keys.size === 0) faults.push('ROOT_KEYS holds no key')
  return keys
}
