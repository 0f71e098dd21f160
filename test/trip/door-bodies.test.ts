// Bodies at the door: both protocol versions, wrong shapes, encodings, sizes, and tasks that nobody expects. One row a case.
import { deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '../../shared/hash.ts'
import { dialects } from '../support/dialects.ts'
import { type Door, type Push, played, type Row, signed, startDoor } from '../support/door.ts'
import { body } from '../support/pushes.ts'
import type { Kind } from '../support/spots.ts'

let door: Door

beforeAll(async () => {
  door = await startDoor()
})

afterAll(() => door.stop())

const byToken: Kind = { token: true }
const asUrl = dialects['Function URL']
const asBalancer = dialects['load balancer']
const x = 'x-a2a-notification-token'

/** Pushed by token, so that the reader alone decides. */
const text = (json: string): Push => ({ to: byToken, body: json })
const json = (value: unknown): Push => text(JSON.stringify(value))
const status = { state: 'TASK_STATE_COMPLETED' }
const update = { taskId: 't-100', contextId: 'c-1', status }
const artifactUpdate = { taskId: 't-100', contextId: 'c-1', artifact: { artifactId: 'a', parts: [] } }
const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] }
const task = { id: 't-100', contextId: 'c-1', status }

played('shapes of both versions', () => door, [
  [
    95,
    'a v0.3 task',
    {
      ...json({ kind: 'task', id: 't-100', contextId: 'c-1', status: { state: 'completed' } }),
      headers: { 'content-type': 'application/json' },
    },
    'ACK',
  ],
  [
    96,
    'a v0.3 status-update',
    json({
      kind: 'status-update',
      taskId: 't-100',
      contextId: 'c-1',
      status: { state: 'input-required' },
      final: true,
    }),
    'ACK',
  ],
  [96, 'a v0.3 artifact-update', json({ kind: 'artifact-update', ...artifactUpdate }), 'ACK'],
  ...Object.entries({
    task,
    statusUpdate: update,
    status_update: update,
    artifactUpdate,
    artifact_update: artifactUpdate,
  }).map(([name, event]): Row => [97, `${name} alone`, json({ [name]: event }), 'ACK']),
  [97, 'a message of no task', json({ message }), 'NOOP'],
  [97, 'a message of the task', json({ message: { ...message, taskId: 't-100' } }), 'ACK'],
  [
    97,
    'snake_case names throughout',
    json({ status_update: { task_id: 't-100', context_id: 'c-1', status } }),
    'ACK',
  ],
  [97, 'two members at once', json({ task, statusUpdate: update }), 'BAD'],
  [97, 'no member', json({ hello: 1 }), 'BAD'],
  [97, 'null beside one', json({ statusUpdate: null, task }), 'ACK'],
  [97, 'text under the name of another', json({ kind: 'task', ...task, message: 'done' }), 'ACK'],
  [97, 'a list beside one', json({ statusUpdate: [update], task }), 'BAD'],
  [97, 'a signed message of a task that only the JWT names', { body: JSON.stringify({ message }) }, 'ACK'],
  ...['x'.repeat(257), 'a\nb', '\ud800'].map(
    (taskId): Row => [
      97,
      `the same with ${JSON.stringify(taskId).slice(0, 9)}, which is no id`,
      { body: JSON.stringify({ message }), jwt: signed({ taskId }) },
      'DENY',
    ],
  ),
  [
    98,
    'wrapped in a JSON-RPC result',
    json({ jsonrpc: '2.0', id: 1, result: { statusUpdate: update } }),
    'ACK',
  ],
  [
    98,
    'wrapped in a JSON-RPC notification',
    json({ jsonrpc: '2.0', method: 'tasks/event', params: { statusUpdate: update } }),
    'ACK',
  ],
  [98, 'a JSON-RPC error', json({ jsonrpc: '2.0', id: 1, error: { code: -32603, message: 'no' } }), 'BAD'],
  [
    98,
    'wrapped twice',
    json({ jsonrpc: '2.0', result: { jsonrpc: '2.0', result: { statusUpdate: update } } }),
    'BAD',
  ],
  ...[[{ statusUpdate: update }, { statusUpdate: update }], [], 'text', 42, null, true].map(
    (value): Row => [99, `${JSON.stringify(value).slice(0, 20)} is no object`, json(value), 'BAD'],
  ),
])

describe('case 100: states by any spelling', () => {
  const spellings: [written: unknown, read: string | undefined][] = [
    ['completed', 'completed'],
    ['TASK_STATE_COMPLETED', 'completed'],
    [3, 'completed'],
    ['TASK_STATE_FUTURE_THING', 'unknown'],
    ['auth-required', 'auth-required'],
    ['rejected', 'rejected'],
    ['canceled', 'canceled'],
    ['TASK_STATE_CANCELLED', 'canceled'],
    [undefined, undefined],
  ]
  test.each(spellings)('%s is read as %s', async (written, read) => {
    const to = await door.spot(byToken)
    const push = {
      ...json({ statusUpdate: { ...update, status: { state: written } } }),
      to,
      task: `state ${written}`,
    }
    const { effects } = await door.during(() => door.send(push))
    const sent = effects.find(({ operation }) => operation === 'SendMessage')
    expect(JSON.parse(String(sent?.body.MessageBody)).state).toBe(read)
  })
})

const bytes = (...parts: (string | number[])[]): Push => ({
  to: byToken,
  body: Buffer.concat(parts.map(part => Buffer.from(part as string))),
})
const named = (name: string): string => body.replace('t-100', name)
const typed = (type: string | undefined): Push => ({ to: byToken, headers: { 'content-type': type } })
const withMetadata = (metadata: string): string =>
  body.replace('"contextId"', `"metadata":${metadata},"contextId"`)

played('encodings, types and odd JSON', () => door, [
  ...['\n', '\0', '\u0085'].map(
    (odd): Row => [
      0,
      `${JSON.stringify(odd)} in a task id, which the API could not name`,
      { to: byToken, ...json({ statusUpdate: { ...update, taskId: `t${odd}1` } }) },
      'BAD',
    ],
  ),
  [102, 'UTF-16', { ...bytes(), body: Buffer.from(body, 'utf16le') }, 'BAD'],
  [102, 'UTF-16 with its mark', { ...bytes(), body: Buffer.from(`\ufeff${body}`, 'utf16le') }, 'BAD'],
  [
    102,
    'a byte that is no UTF-8',
    bytes(named('odd').replace(/c-1.*/, 'c-1'), [0xff], named('odd').replace(/.*c-1/, '')),
    'BAD',
  ],
  [102, 'a byte order mark', bytes(`\ufeff${named('marked')}`), 'ACK'],
  ...[
    'application/a2a+json; charset=utf-8',
    'APPLICATION/JSON',
    'application/json; utf-8',
    'application/json, application/json',
    'application/problem+json',
    'text/json',
    'application/x-json; charset=utf-8',
    undefined,
    '',
  ].map((type): Row => [103, `the type ${type}`, typed(type), 'ACK']),
  ...[
    'text/plain',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded',
    'application/jsonp',
    'json',
  ].map((type): Row => [103, `the type ${type}`, typed(type), '415']),
  ...['', '   ', '{', '{"statusUpdate":'].map(
    (part): Row => [106, `the body ${JSON.stringify(part)}`, text(part), 'BAD'],
  ),
  ...[null, undefined, '', '   ', 7].map(
    (part): Row => [
      106,
      `the body ${JSON.stringify(part)} of an event`,
      { to: byToken, as: sent => ({ ...asUrl(sent), body: part, isBase64Encoded: false }) },
      'BAD',
    ],
  ),
  [
    106,
    'base64 that is none',
    { to: byToken, as: sent => ({ ...asUrl(sent), body: '%%%', isBase64Encoded: true }) },
    'BAD',
  ],
  [110, 'metadata 10 000 deep', text(withMetadata('['.repeat(10_000) + ']'.repeat(10_000))), 'BAD'],
  [
    110,
    'metadata 511 deep, and 510: as deep as an answer to GetTask may be',
    [
      text(withMetadata('['.repeat(511) + ']'.repeat(511))),
      text(withMetadata('['.repeat(510) + ']'.repeat(510))),
    ],
    ['BAD', 'ACK'],
  ],
  [111, 'a prototype at the top', text(body.replace('{', '{"__proto__":{"isAdmin":true},')), 'ACK'],
  [
    111,
    'a constructor at the top',
    text(body.replace('{', '{"constructor":{"prototype":{"isAdmin":true}},')),
    'ACK',
  ],
  [111, 'a prototype inside', text(withMetadata('{"__proto__":{"isAdmin":true}}')), 'ACK'],
  [
    111,
    'an event that is inherited',
    text('{"__proto__":{"statusUpdate":{"taskId":"t-100","status":{}}}}'),
    'BAD',
  ],
  [112, 'half a surrogate pair in a text', text(withMetadata('"\\ud800"')), 'ACK'],
  [112, 'half a surrogate pair in the task id', text(named('\\ud800')), 'BAD'],
  [
    114,
    'of two ids the last counts',
    { ...text(body.replace('"taskId"', '"taskId":"t-999","taskId"')), to: { ...byToken, taskId: 't-999' } },
    'NOOP',
  ],
  ...['12345678901234567890', 'true', '{"$ne":""}', 'null', '""', '["t-100"]', `"${'x'.repeat(5000)}"`].map(
    (id): Row => [115, `the id ${id.slice(0, 24)}`, text(body.replace('"t-100"', id)), 'BAD'],
  ),
  [
    115,
    'ids are compared byte for byte',
    ['tâche', 'ta\u0302che', 'tâche '].map(id => ({
      ...text(named(id)),
      to: { ...byToken, taskId: 'tâche' },
    })),
    ['ACK', 'NOOP', 'NOOP'],
  ],
  [
    118,
    'a task that nobody asked about',
    { ...text(named('t-999')), to: { ...byToken, taskId: 't-1' } },
    'NOOP',
  ],
  [118, 'a task that nobody asked about, signed', { task: 't-999', to: { taskId: 't-1' } }, 'NOOP'],
])

test('case 111: what came with a prototype changed none', () => {
  expect(Object.hasOwn(Object.prototype, 'isAdmin')).toBe(false)
})

/** An honest push of exactly so many bytes. */
function sized(length: number, name: string): Push {
  const bare = named(name).replace('"contextId"', '"metadata":"","contextId"')
  const whole = bare.replace('"metadata":"', `"metadata":"${'x'.repeat(length - bare.length)}`)
  return { to: byToken, body: whole, task: name }
}

const mega = 1_000_000

played('sizes', () => door, [
  ...[200_000, 390_000, 1.1 * mega, 4.4 * mega].map(
    (length): Row => [108, `${length} bytes`, sized(length, `size-${length}`), 'ACK'],
  ),
  [
    108,
    'a byte more than is read, at a hook of one task',
    { ...sized(4.4 * mega + 1, 'big'), to: { ...byToken, taskId: 'big' }, as: asBalancer },
    '413 and a look',
  ],
  [
    108,
    '10 MB, with a signed task',
    { ...sized(10 * mega, 'huge'), to: {}, as: asBalancer },
    '413 and a look',
  ],
  [108, '10 MB, of nobody knows which task', { ...sized(10 * mega, 'huge'), as: asBalancer }, '413'],
  [
    108,
    '10 MB without proof',
    { ...sized(10 * mega, 'huge'), headers: { [x]: 'no' }, as: asBalancer },
    'DENY',
  ],
  [
    108,
    'one within a flood, and one in its next window: the looks that are queued for those stand for it, too',
    async ({ push, ground }) => {
      const to: Kind = { ...byToken, taskId: 'flood' }
      const small = body.replace('t-100', 'flood').replace('COMPLETED', 'WORKING')
      const verdicts = new Set<string>()
      for (let n = 0; n < 61; n++)
        verdicts.add(await push({ to, as: asUrl, body: small.replace('c-1', `c-${n}`) }))
      const big = { ...sized(4.4 * mega + 1, 'flood'), to, as: asBalancer }
      const within = await push(big)
      ground.advance(1000)
      for (let n = 100; n < 120; n++) await push({ to, as: asUrl, body: small.replace('c-1', `c-${n}`) })
      return [...verdicts, within, await push(big)]
    },
    ['ACK', expect.stringMatching(/^202, 0 jobs, 1 records/), 'NOOP', '413', '413'],
  ],
  [
    108,
    'one whose look cannot be queued shall come again',
    async ({ push, fail, heal }) => {
      fail('SendMessage', 2)
      const big = { ...sized(4.4 * mega + 1, 'late'), to: {}, as: asBalancer }
      const verdicts = [await push(big)]
      heal()
      return [...verdicts, await push(big)]
    },
    ['LATER', '413 and a look'],
  ],
])

const packed = (encoding: string, content: Uint8Array | string, more: Push = {}): Push => ({
  to: byToken,
  body: Buffer.from(content),
  ...more,
  headers: { 'content-encoding': encoding },
})
const over = (content: Uint8Array | string): Push => ({
  to: {},
  jwt: signed({ request_body_sha256: sha256Hex(content) }),
})

played('packed bodies are not taken, however they are signed', () => door, [
  [44, 'the digest over the packed bytes', packed('gzip', gzipSync(body), over(gzipSync(body))), '415'],
  [44, 'the digest over the unpacked bytes', packed('gzip', gzipSync(body), over(body)), '415'],
  [109, 'gzip', packed('gzip', gzipSync(body)), '415'],
  [109, 'a bomb', packed('gzip', gzipSync(Buffer.alloc(20 * mega))), '415'],
  [109, 'gzip in gzip', packed('gzip, gzip', gzipSync(gzipSync(body))), '415'],
  [109, 'plain JSON that says gzip', packed('gzip', body), '415'],
  [109, 'gzip that says nothing', packed('', gzipSync(body)), 'BAD'],
  [109, 'deflate', packed('deflate', deflateSync(body)), '415'],
  [109, 'identity', packed('Identity', named('identity')), 'ACK'],
  [109, 'a charset where encodings belong', packed('UTF-8', named('charset')), 'ACK'],
  [109, 'gzip behind it', packed('utf-8, gzip', gzipSync(body)), '415'],
])
