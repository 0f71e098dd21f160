// Makes the environment that each door finds on a laptop. Pure.
import { sha256Hex } from '../../shared/hash.ts'
import type { NetRules } from '../../shared/net.ts'
import { deadQueue } from './deploy.ts'
import type { Secrets } from './folder.ts'

/** Where the parts of the ground are. */
export type Places = {
  hookOrigin: string
  apiOrigin: string
  dynamodb: string
  sqs: string
  queueUrl: (queue: string) => string
}

/** Everything on the loopback address may be called, nothing else that is private. */
export const loopback: NetRules = {
  allowHttp: true,
  allowAddresses: ['127.0.0.0/8', '::1/128'],
  allowPorts: '*',
}

/** The settings of all doors; the access key id, which is the door's name, comes on top. */
export const settingsFor = (places: Places, secrets: Secrets, net: NetRules): Record<string, string> => ({
  AWS_REGION: 'us-east-1',
  AWS_SECRET_ACCESS_KEY: 'local',
  AWS_ENDPOINT_URL_DYNAMODB: places.dynamodb,
  AWS_ENDPOINT_URL_SQS: places.sqs,
  TABLE_NAME: 'rouse',
  LOOK_QUEUE_URL: places.queueUrl('look'),
  DELIVER_QUEUE_URL: places.queueUrl('deliver'),
  LOOK_DEAD_QUEUE_URL: places.queueUrl(deadQueue('look')),
  DELIVER_DEAD_QUEUE_URL: places.queueUrl(deadQueue('deliver')),
  PUBLIC_ORIGIN: places.apiOrigin,
  HOOK_ORIGIN: places.hookOrigin,
  ROOT_KEYS: secrets.rootKeys,
  OPERATOR_KEY_SHA256: sha256Hex(secrets.operatorKey),
  ALLOW_HTTP: String(net.allowHttp),
  ALLOW_ADDRESSES: net.allowAddresses.join(','),
  ALLOW_PORTS: net.allowPorts === '*' ? '*' : net.allowPorts.join(','),
  DUE_SHARDS: '8',
  // Whoever runs it on a laptop wants to see each step; on AWS the details cost more than they tell.
  LOG_LEVEL: 'debug',
})
