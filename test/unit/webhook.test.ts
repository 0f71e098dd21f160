// The webhook channel against a real receiver: what arrives there, and what each answer means for the wake.
import { setImmediate as turn } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { excerpt, longestWishMs, type Outcome, retryAfterMs } from '../../shared/channels/channel.ts'
import { makeSecret } from '../../shared/channels/standard.ts'
import { sendWebhook } from '../../shared/channels/webhook.ts'
import { createNet, NetError } from '../../shared/net.ts'
import { readRetryAfter } from '../../shared/retryafter.ts'
import { type Answer, certificates, type Receiver, startReceiver } from '../support/receiver.ts'

const nowMs = Date.UTC(2026, 5, 1, 12)
const secrets = [makeSecret(new Uint8Array(32).fill(1)), makeSecret(new Uint8Array(32).fill(2))]
const net = createNet({ allowHttp: true, allowAddresses: ['127.0.0.1'], allowPorts: '*' })
const wake = { net, secrets, id: 'wk_7', body: '{"type":"task.completed"}', nowMs }
const minute = 60_000
const hour = 60 * minute

let receiver: Receiver

beforeAll(async () => {
  receiver = await startReceiver()
})

afterAll(() => receiver.stop())

beforeEach(() => {
  receiver.requests.length = 0
  receiver.answer({})
})

const send = (answer: Answer): Promise<Outcome> => {
  receiver.answer(answer)
  return sendWebhook({ ...wake, url: `${receiver.origin}/hook` })
}

describe('what arrives', () => {
  test('is the exact body, as JSON, signed under every secret', async () => {
    await send({})
    const [request] = receiver.requests
    expect(request).toMatchObject({
      method: 'POST',
      url: '/hook',
      body: wake.body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'rouse',
        'rouse-hop': '1',
        'webhook-id': 'wk_7',
      },
    })
    vi.useFakeTimers({ now: nowMs, toFake: ['Date'] })
    for (const secret of secrets) {
      const headers: Record<string, string> = {}
      for (const [name, value] of Object.entries(request?.headers ?? {})) headers[name] = String(value)
      expect(new Webhook(secret).verify(request?.body ?? '', headers)).toEqual({ type: 'task.completed' })
    }
    vi.useRealTimers()
  })
})

const retry = { kind: 'retry', reason: expect.any(String) }
const zstd = { 'content-encoding': 'zstd' }
const date = 'Mon, 01 Jun 2026 12:10:00 GMT'

const verdicts: [why: string, answer: Answer, outcome: unknown][] = [
  ['200', { status: 200, body: 'ok' }, { kind: 'delivered', status: 200, answer: 'ok' }],
  ['202 without a body', { status: 202 }, { kind: 'delivered', status: 202 }],
  ['204', { status: 204 }, { kind: 'delivered', status: 204 }],
  ['164: 410', { status: 410 }, { kind: 'disable', reason: expect.stringContaining('410'), status: 410 }],
  ['a redirect', { status: 301, headers: { location: '/elsewhere' } }, { ...retry, status: 301 }],
  [
    'a redirect that keeps the method',
    { status: 307, headers: { location: '/b' } },
    { ...retry, status: 307 },
  ],
  ['400', { status: 400, body: 'what?' }, { ...retry, status: 400, answer: 'what?' }],
  ['401', { status: 401 }, { ...retry, status: 401 }],
  ['164: 404, as in a deploy', { status: 404 }, { ...retry, status: 404 }],
  ['413', { status: 413 }, { ...retry, status: 413 }],
  ['140: 500', { status: 500 }, { ...retry, status: 500 }],
  ['500 with a wish', { status: 500, headers: { 'retry-after': '9' } }, { ...retry, status: 500 }],
  ['429 without a wish', { status: 429 }, { ...retry, status: 429 }],
  [
    '429 with seconds',
    { status: 429, headers: { 'retry-after': '90' } },
    { ...retry, status: 429, afterMs: 90_000 },
  ],
  [
    '502 with seconds',
    { status: 502, headers: { 'retry-after': '1' } },
    { ...retry, status: 502, afterMs: 1000 },
  ],
  [
    '503 with a date',
    { status: 503, headers: { 'retry-after': date } },
    { ...retry, status: 503, afterMs: 10 * minute },
  ],
  [
    '504 with a day',
    { status: 504, headers: { 'retry-after': '86400' } },
    { ...retry, status: 504, afterMs: hour },
  ],
  ['503 with nonsense', { status: 503, headers: { 'retry-after': 'soon' } }, { ...retry, status: 503 }],
  ['142: an answer too large after 200', { body: 'x'.repeat(65_537) }, { kind: 'delivered', status: 200 }],
  [
    'an answer too large after 410',
    { status: 410, body: 'x'.repeat(65_537) },
    { kind: 'disable', status: 410, reason: expect.any(String) },
  ],
  ['an answer too large after 500', { status: 500, body: 'x'.repeat(65_537) }, { ...retry, status: 500 }],
  ['140: a reset', { fault: 'reset' }, retry],
  ['166: a connection closed within the head', { raw: 'HTTP/1.1 200 OK\r\nconte' }, retry],
  ['a body cut short after 200', { fault: 'cut' }, { kind: 'delivered', status: 200 }],
  [
    'a body cut short after 410',
    { status: 410, fault: 'cut' },
    { kind: 'disable', status: 410, reason: expect.any(String) },
  ],
  ['a body cut short after 500', { status: 500, fault: 'cut' }, { ...retry, status: 500 }],
  [
    'a body in an encoding that is not taken',
    { headers: zstd, body: 'xx' },
    { kind: 'delivered', status: 200 },
  ],
  [
    'the same after 410',
    { status: 410, headers: zstd, body: 'xx' },
    { kind: 'disable', status: 410, reason: expect.any(String) },
  ],
  [
    'a body that is not what its encoding says',
    { status: 206, headers: { 'content-encoding': 'gzip' }, body: 'no gzip' },
    { kind: 'delivered', status: 206 },
  ],
  ['a head too large', { headers: { 'x-long': 'x'.repeat(17_000) } }, retry],
]

describe('what an answer means', () => {
  for (const [why, answer, outcome] of verdicts)
    test(`${why}`, async () => {
      expect(await send(answer)).toEqual(outcome)
      expect(receiver.requests).toHaveLength(1)
    })

  test('166: no answer within 15 s is tried again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const sent = send({ fault: 'hang' })
    await receiver.arrived(1)
    vi.advanceTimersByTime(14_999)
    const early = await Promise.race([sent, turn()])
    vi.advanceTimersByTime(1)
    vi.useRealTimers()
    expect(early).toBeUndefined()
    expect(await sent).toEqual({ kind: 'retry', reason: expect.stringContaining('15000 ms') })
    await receiver.idle()
  })

  test.each([
    [200, 'delivered'],
    [410, 'disable'],
    [500, 'retry'],
  ])('a body that still comes when the time is up leaves what the head said: %i', async (status, kind) => {
    const request = () => Promise.reject(new NetError('timeout', 'x took longer.', undefined, status))
    expect(await sendWebhook({ ...wake, net: { ...net, request }, url: receiver.origin })).toMatchObject({
      ...{ kind, status },
    })
  })

  test("an address that may not be called is the owner's to mend, and gets nothing", async () => {
    const to = { ...wake, url: 'https://169.254.169.254/hook' }
    expect(await sendWebhook(to)).toEqual({ kind: 'config', reason: expect.any(String) })
  })

  test("140: a certificate that does not hold is the owner's to mend, and gets nothing", async () => {
    const sealed = await startReceiver({ key: certificates.key, cert: certificates.expired })
    expect(await sendWebhook({ ...wake, url: `${sealed.origin}/` })).toEqual({
      kind: 'config',
      reason: expect.stringContaining('TLS'),
    })
    expect(sealed.requests).toEqual([])
    await sealed.stop()
  })

  test('a broken secret is a bug of ours, not a verdict about the target', async () => {
    const broken = sendWebhook({ ...wake, secrets: ['whsec_'], url: receiver.origin })
    await expect(broken).rejects.toThrow('secret')
    expect(receiver.requests).toEqual([])
  })

  test('a bug in the way out is not a verdict about the target', async () => {
    const request = () => Promise.reject(new TypeError('a bug'))
    await expect(sendWebhook({ ...wake, net: { ...net, request }, url: receiver.origin })).rejects.toThrow(
      'a bug',
    )
  })
})

describe('the kept start of an answer', () => {
  const kept: [why: string, body: string | Uint8Array, text: string | undefined][] = [
    ['is its text', 'fine', 'fine'],
    ['is one line without control characters', 'a\r\nb\u0000\u001b[31mc\u2028d\u0085e', 'a b [31mc d e'],
    ['is nothing for an empty answer', '', undefined],
    ['is nothing for an answer of blanks', ' \n\t ', undefined],
    ['is at most a kilobyte', 'x'.repeat(5000), 'x'.repeat(1024)],
    ['does not end in half a character', `${'x'.repeat(1023)}ü`, 'x'.repeat(1023)],
    ['shows what is no text as such', Uint8Array.of(0x61, 0xff, 0x62), 'a\ufffdb'],
  ]
  for (const [why, body, text] of kept) test(why, () => expect(excerpt(Buffer.from(body))).toBe(text))
})

describe('the next attempt', () => {
  const schedule = [
    5000,
    5 * minute,
    30 * minute,
    2 * hour,
    5 * hour,
    10 * hour,
    14 * hour,
    20 * hour,
    24 * hour,
  ]

  test('follows the schedule of Standard Webhooks, then there is none', () => {
    const waits = schedule.map((_wait, index) => retryAfterMs(index + 1, 0))
    expect(waits).toEqual(schedule)
    expect(retryAfterMs(schedule.length + 1, 0)).toBeUndefined()
  })

  test('is up to a tenth later by chance, never earlier', () => {
    expect(schedule.map((_wait, index) => retryAfterMs(index + 1, 0.5))).toEqual(
      schedule.map(wait => wait * 1.05),
    )
    expect(retryAfterMs(1, 0.999_999)).toBe(5500)
  })

  test('waits as long as the target wishes, up to an hour, and spreads from there', () => {
    expect(retryAfterMs(1, 0, 90_000)).toBe(90_000)
    expect(retryAfterMs(1, 0.5, 100_000)).toBe(105_000)
    expect(retryAfterMs(1, 0, 7 * hour)).toBe(hour)
  })

  test('is not earlier than planned because the target wishes so', () => {
    expect(retryAfterMs(4, 0, 1000)).toBe(2 * hour)
  })

  const wishes: [header: string | null, ms: number | undefined][] = [
    [null, undefined],
    ['', undefined],
    ['0', 0],
    ['120', 120_000],
    [' 120 ', 120_000],
    ['3601', hour],
    ['9'.repeat(400), hour],
    ['-1', undefined],
    ['1.5', undefined],
    ['1e3', undefined],
    ['soon', undefined],
    ['2026', 2026 * 1000],
    ['Mon, 01 Jun 2026 12:00:30 GMT', 30_000],
    ['Monday, 01-Jun-26 12:00:30 GMT', 30_000],
    ['Mon, 01 Jun 2026 11:00:00 GMT', 0],
    ['Mon, 01 Jun 2099 11:00:00 GMT', hour],
    ['Mon, 99 Foo 2026 11:00:00 GMT', undefined],
    ['10, 20', 20_000],
    ['20,10, soon', 20_000],
    ['Mon, 01 Jun 2026 12:00:30 GMT, 10', 30_000],
    ['40, Mon, 01 Jun 2026 12:00:30 GMT, Monday, 01-Jun-26 12:00:50 GMT', 50_000],
    ['soon, later', undefined],
  ]
  for (const [header, ms] of wishes)
    test(`Retry-After ${header?.slice(0, 70) ?? 'missing'} is ${ms ?? 'no wish'}`, () => {
      expect(readRetryAfter(header, nowMs, longestWishMs)).toBe(ms)
    })
})
