// The way out against receivers that are slow, endless or packed too well: every exchange ends within its limits.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { finished } from 'node:stream/promises'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createNet, type Lookup, type NetReply, type NetRules } from '../../shared/net.ts'
import { fails } from '../support/fails.ts'
import { type Answer, type Receiver, startReceiver } from '../support/receiver.ts'

const rules: NetRules = { allowHttp: true, allowAddresses: ['127.0.0.1'], allowPorts: '*' }
const here: Lookup = async () => [{ address: '127.0.0.1', family: 4 }]
const net = createNet(rules, { lookup: here })
const limits = { timeoutMs: 10_000, maxBytes: 64 * 1024 }

let receiver: Receiver

beforeAll(async () => {
  receiver = await startReceiver()
})

afterAll(() => receiver.stop())

const url = (): string => `http://hooks.example:${receiver.port}/`

const get = (answer: Answer, more: { timeoutMs?: number; maxBytes?: number } = {}): Promise<NetReply> => {
  receiver.answer(answer)
  return net.request({ url: url(), ...limits, ...more })
}

const text = ({ body }: NetReply): string => new TextDecoder().decode(body)

describe('the time limit', () => {
  test('15: covers a resolver that never answers', async () => {
    const silent = createNet(rules, { lookup: () => new Promise(() => undefined) })
    await fails(silent.request({ url: url(), ...limits, timeoutMs: 50 }), 'timeout')
  })

  test('166: covers an answer that never starts, and closes the connection', async () => {
    await fails(get({ fault: 'hang' }, { timeoutMs: 100 }), 'timeout')
    await receiver.idle()
  })

  test('141: covers a body that trickles for ever, and closes the connection', async () => {
    await fails(get({ fault: 'trickle' }, { timeoutMs: 300 }), 'timeout', 200)
    await receiver.idle()
  })

  test('141: covers a packed body that trickles for ever', async () => {
    const packed = { headers: { 'content-encoding': 'gzip' }, body: gzipSync('') }
    await fails(get({ fault: 'trickle', ...packed }, { timeoutMs: 300 }), 'timeout', 200)
    await receiver.idle()
  })

  test('covers a handshake that never ends', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const to = `https://hooks.example:${(silent.address() as AddressInfo).port}/`
    const accepted = once(silent, 'connection')
    await fails(net.request({ url: to, ...limits, timeoutMs: 100 }), 'timeout')
    const [socket] = await accepted
    await finished(socket.resume(), { writable: false })
    silent.close()
  })

  test('is not hit by an answer in time', async () => {
    expect((await get({ delayMs: 20, body: 'late' })).status).toBe(200)
  })
})

describe('the size limit', () => {
  test('142: a body of just the limit passes, one byte more does not', async () => {
    expect((await get({ body: 'x'.repeat(1000) }, { maxBytes: 1000 })).body).toHaveLength(1000)
    await fails(get({ body: 'x'.repeat(1001) }, { maxBytes: 1000 }), 'too_large', 200)
  })

  test('17: a body is counted after inflation', async () => {
    const headers = { 'content-encoding': 'gzip' }
    const body = gzipSync('x'.repeat(1001))
    expect(body.length).toBeLessThan(100)
    await fails(get({ headers, body }, { maxBytes: 1000 }), 'too_large', 200)
    expect((await get({ headers, body }, { maxBytes: 1001 })).body).toHaveLength(1001)
  })

  test('142: an endless body is left at the limit, and the sender is stopped', async () => {
    const sent = pieces(Buffer.alloc(64 * 1024))
    await fails(get({ status: 410, body: sent.body }), 'too_large', 410)
    await receiver.idle()
    // What was made beyond the limit sat in buffers on the way.
    expect(sent.count()).toBeLessThan(1000)
  })

  test('142: an endless bomb is left at the limit without being inflated further', async () => {
    // Each piece is a whole gzip member of 4 MB: what fits the buffers on the way alone would be gigabytes.
    const bomb = pieces(gzipSync(Buffer.alloc(4 * 1024 * 1024)))
    const before = process.memoryUsage().arrayBuffers
    await fails(get({ headers: { 'content-encoding': 'gzip' }, body: bomb.body }), 'too_large', 200)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024)
    await receiver.idle()
  })

  test('a head over 16 kB is too large', async () => {
    await fails(get({ headers: { 'x-long': 'x'.repeat(17 * 1024) } }), 'too_large')
    expect((await get({ headers: { 'x-long': 'x'.repeat(15 * 1024) } })).status).toBe(200)
  })
})

/** A body without end, and how many pieces of it were taken. */
function pieces(piece: Uint8Array): { body: Iterable<Uint8Array>; count: () => number } {
  let count = 0
  function* body(): Iterable<Uint8Array> {
    for (;;) {
      count += 1
      yield piece
    }
  }
  return { body: body(), count: () => count }
}

describe('encodings', () => {
  const known: [encoding: string, body: Uint8Array | string][] = [
    ['gzip', gzipSync('task')],
    ['X-GZIP', gzipSync('task')],
    ['deflate', deflateSync('task')],
    ['br', brotliCompressSync('task')],
    ['identity', 'task'],
    ['identity, gzip', gzipSync('task')],
    ['', 'task'],
  ]
  for (const [encoding, body] of known)
    test(`${encoding || 'an empty encoding'} is read`, async () => {
      expect(text(await get({ headers: { 'content-encoding': encoding }, body }))).toBe('task')
    })

  const unknown: [encoding: string, body: Uint8Array | string][] = [
    ['gzip, gzip', gzipSync(gzipSync('task'))],
    [Array(10).fill('gzip').join(','), 'task'],
    ['br, gzip', gzipSync(brotliCompressSync('task'))],
    ['zstd', 'task'],
    ['compress', 'task'],
    ['gzip', 'not gzip'],
    ['gzip', gzipSync('task').subarray(0, -4)],
    ['br', 'not br'],
    ['deflate', 'not zlib'],
  ]
  for (const [encoding, body] of unknown)
    test(`142: ${encoding} around ${typeof body === 'string' ? body : 'bytes'} is unreachable`, async () => {
      await fails(get({ headers: { 'content-encoding': encoding }, body }), 'unreachable', 200)
      await receiver.idle()
    })

  test('142: an endless body in an unknown encoding is not read', async () => {
    const sent = pieces(Buffer.alloc(64 * 1024))
    const headers = { 'content-encoding': 'zstd' }
    await fails(get({ headers, body: sent.body }), 'unreachable', 200)
    await receiver.idle()
    expect(sent.count()).toBeLessThan(1000)
  })

  test('an empty answer that claims an encoding is empty', async () => {
    for (const status of [200, 204, 304])
      expect((await get({ status, headers: { 'content-encoding': 'gzip' } })).body).toHaveLength(0)
  })
})
