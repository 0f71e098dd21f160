// The settings of the doors: what each may be, that an empty one is none, and that all faults are told at once.
import { expect, test } from 'vitest'
import { loadConfig } from '../../shared/config.ts'

const key = Buffer.alloc(32, 7).toString('base64url')
const enough = {
  ...{
    TABLE_NAME: 't',
    LOOK_QUEUE_URL: 'https://sqs.example/look',
    DELIVER_QUEUE_URL: 'https://sqs.example/deliver',
  },
  ...{ PUBLIC_ORIGIN: 'https://rouse.example', HOOK_ORIGIN: 'https://hooks.example', ROOT_KEYS: `1:${key}` },
}
const load = (more: Record<string, string>) => loadConfig({ ...enough, ...more })

test.each([
  ['TABLE_NAME', ''],
  ['LOOK_QUEUE_URL', ' '],
  ['PUBLIC_ORIGIN', ''],
  ['HOOK_ORIGIN', ''],
  ['ROOT_KEYS', ''],
])('an empty %s is a missing one', (name, value) => {
  expect(() => load({ [name]: value })).toThrow(`${name} is missing`)
})

test.each([
  ['PUBLIC_ORIGIN', 'ftp://rouse.example'],
  ['PUBLIC_ORIGIN', 'rouse.example'],
  ['HOOK_ORIGIN', 'https://rouse.example/'],
  ['HOOK_ORIGIN', 'https://rouse.example/hooks'],
  ['ROOT_KEYS', 'none,none'],
  ['ROOT_KEYS', '1:short'],
  ['ROOT_KEYS', `1:${key},2:${key},01:${key}`],
  ['ROOT_KEYS', `256:${key}`],
  ['OPERATOR_KEY_SHA256', 'hello'],
  ['OPERATOR_KEY_SHA256', 'g'.repeat(64)],
  ['ALLOW_HTTP', 'yes'],
  ['ALLOW_PORTS', '443,abc'],
  ['ALLOW_PORTS', '0'],
  ['ALLOW_PORTS', '65536'],
  ['ALLOW_PORTS', '443,*'],
  ['ALLOW_ADDRESSES', '10.0.0.0/33'],
  ['ALLOW_ADDRESSES', '10.0.0.0/8/9'],
  ['ALLOW_ADDRESSES', '127.0.0.1,localhost'],
  ['ALLOW_ADDRESSES', '10.0.0.0 /8'],
  ['DUE_SHARDS', '0'],
  ['DUE_SHARDS', '1.5'],
  ['DUE_SHARDS', '1e2'],
  ['LOG_LEVEL', 'warn'],
])('%s=%s is refused by name', (name, value) => {
  const fault = expect.objectContaining({
    message: expect.stringMatching(new RegExp(`^Settings: ${name}[ :]`)),
  })
  expect(() => load({ [name]: value })).toThrow(fault)
})

test('every fault is told at once', () => {
  expect(() => load({ TABLE_NAME: '', ALLOW_HTTP: 'yes', ALLOW_PORTS: 'abc', LOG_LEVEL: 'warn' })).toThrow(
    /^Settings: TABLE_NAME is missing .*; ALLOW_HTTP .*; ALLOW_PORTS: entry 1 .*; LOG_LEVEL .*\.$/,
  )
})

test('blanks around settings and members do not count, and empty settings with a default have it', () => {
  const lists = {
    ALLOW_ADDRESSES: ' 10.0.0.0/8 , ::1,',
    ALLOW_PORTS: '443, 8443',
    ROOT_KEYS: ` 1:${key}, 2:${key} `,
  }
  const read = load({
    ...lists,
    ALLOW_HTTP: '',
    DUE_SHARDS: '',
    LOG_LEVEL: ' debug',
    OPERATOR_KEY_SHA256: '',
  })
  expect(read).toMatchObject({
    net: { allowHttp: false, allowAddresses: ['10.0.0.0/8', '::1'], allowPorts: [443, 8443] },
    ...{ dueShards: 64, logLevel: 'debug', operatorKeySha256: undefined },
  })
  expect([...read.rootKeys.keys()]).toEqual([1, 2])
})
