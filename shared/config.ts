// Reads the settings out of the environment, checks each, and reports every fault in one message. The only reader of the environment.
import { readRanges } from './address.ts'
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
 * Reads the settings; an empty one is as good as none, and blanks around one and its members do not count.
 * @param env the environment, as a record
 * @throws Error naming every missing or wrong setting at once
 */
export function loadConfig(env: Record<string, string | undefined>): Config {
  const { faults, read, origin, allOf, judged } = readerOf(env)
  const publicOrigin = origin('PUBLIC_ORIGIN')
  const hookOrigin = origin('HOOK_ORIGIN')
  const operatorKey = judged('OPERATOR_KEY_SHA256', /^(?:[\da-f]{64})?$/i, 'is no SHA-256 in 64 hex digits')
  const ports = read('ALLOW_PORTS')
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
    rootKeys: readRootKeys(allOf('ROOT_KEYS'), faults),
    operatorKeySha256: operatorKey.toLowerCase() || undefined,
    net: {
      allowHttp: judged('ALLOW_HTTP', /^(?:true|false)$/, 'is neither true nor false') === 'true',
      allowAddresses: allOf('ALLOW_ADDRESSES', isRange, 'is no address range such as 10.0.0.0/8'),
      allowPorts: ports === '*' ? '*' : allOf('ALLOW_PORTS', isPort, 'is no port').map(Number),
      ownOrigins: [publicOrigin, hookOrigin],
    },
    dueShards: Number(judged('DUE_SHARDS', /^[1-9]\d{0,4}$/, 'is no positive whole number')),
    logLevel: readLevel(judged('LOG_LEVEL', /^(?:debug|info|error)$/, 'is none of debug, info, error')),
  }
  if (faults.length > 0) throw new Error(`Settings: ${faults.join('; ')}.`)
  return config
}

/** Ways to read settings, which note what is wrong. No fault repeats a value: it may be a secret in the wrong place. */
function readerOf(env: Record<string, string | undefined>) {
  const faults: string[] = []
  const read = (name: SettingName): string => {
    const setting: { fallback?: string; says: string } = settings[name]
    const value = env[name]?.trim() || setting.fallback
    if (value === undefined) faults.push(`${name} is missing (${setting.says})`)
    return value ?? ''
  }
  const judged = (name: SettingName, form: RegExp, fault: string): string => {
    const value = read(name)
    if (!form.test(value)) faults.push(`${name} ${fault}`)
    return value
  }
  const origin = (name: SettingName): string => {
    const value = read(name)
    if (value !== '' && !isOrigin(value))
      faults.push(`${name} is not an origin such as https://rouse.example`)
    return value
  }
  /** The members of a list; a fault names the place of a wrong one. */
  const allOf = (name: SettingName, fits?: (member: string) => boolean, fault?: string): string[] => {
    const members = read(name)
      .split(',')
      .map(member => member.trim())
      .filter(Boolean)
    const wrong = fits === undefined ? -1 : members.findIndex(member => !fits(member))
    if (wrong >= 0) faults.push(`${name}: entry ${wrong + 1} ${fault}`)
    return members
  }
  return { faults, read, judged, origin, allOf }
}

const isOrigin = (text: string): boolean =>
  /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text

const isPort = (text: string): boolean => /^[1-9]\d{0,4}$/.test(text) && Number(text) < 65_536

function isRange(text: string): boolean {
  try {
    return readRanges([text]).length === 1
  } catch {
    return false
  }
}

const readLevel = (text: string): Config['logLevel'] => (text === 'debug' || text === 'error' ? text : 'info')

function readRootKeys(entries: string[], faults: string[]): Map<number, Uint8Array> {
  const keys = new Map<number, Uint8Array>()
  if (entries.length === 1 && entries[0] === 'none') return keys
  for (const entry of entries) {
    const [version = '', key = ''] = entry.split(':')
    const bytes = new Uint8Array(Buffer.from(key, 'base64url'))
    if (keys.has(Number(version))) faults.push(`ROOT_KEYS holds two keys of version ${Number(version)}`)
    if (!/^\d{1,3}$/.test(version) || Number(version) > 255 || bytes.length !== 32)
      faults.push(
        'ROOT_KEYS holds an entry that is not version:base64url(32 bytes) with a version of 0 to 255',
      )
    keys.set(Number(version), bytes)
  }
  return keys
}
