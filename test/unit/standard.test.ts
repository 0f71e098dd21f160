// Our signatures against the reference library of Standard Webhooks, and the secrets that may make them.
import { Webhook } from 'standardwebhooks'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { isSecret, makeSecret, sign } from '../../shared/channels/standard.ts'

const nowMs = Date.UTC(2026, 5, 1, 12, 0, 0, 999)
const secret = makeSecret(new Uint8Array(32).fill(7))
const other = makeSecret(new Uint8Array(32).fill(8))
const body = '{"type":"task.completed","data":{"words":"ü, \\u2028 and 🙂"}}'
const message = { id: 'wk_1', body, nowMs }

beforeEach(() => {
  vi.useFakeTimers({ now: nowMs, toFake: ['Date'] })
  return () => vi.useRealTimers()
})

describe('a signed webhook', () => {
  test('is accepted by the reference library', () => {
    expect(new Webhook(secret).verify(body, sign([secret], message))).toEqual(JSON.parse(body))
  })

  test('names its id and the whole seconds of its attempt', () => {
    expect(sign([secret], message)).toMatchObject({
      'webhook-id': 'wk_1',
      'webhook-timestamp': String(Date.UTC(2026, 5, 1, 12) / 1000),
    })
  })

  test('carries the reference signature', () => {
    const expected = new Webhook(secret).sign('wk_1', new Date(nowMs), body)
    expect(sign([secret], message)['webhook-signature']).toBe(expected)
  })

  test('167: is accepted under the old and the new secret while both sign', () => {
    const headers = sign([secret, other], message)
    expect(headers['webhook-signature']).toMatch(/^v1,\S{44} v1,\S{44}$/)
    for (const either of [secret, other])
      expect(new Webhook(either).verify(body, headers)).toEqual(JSON.parse(body))
  })

  test('167: is not accepted under a secret that no longer signs', () => {
    expect(() => new Webhook(secret).verify(body, sign([other], message))).toThrow('No matching signature')
  })

  test('is not accepted with one byte changed anywhere', () => {
    const headers = sign([secret], message)
    for (let at = 0; at < body.length; at += 1) {
      const changed = `${body.slice(0, at)}${body[at] === 'x' ? 'y' : 'x'}${body.slice(at + 1)}`
      expect(() => new Webhook(secret).verify(changed, headers)).toThrow('No matching signature')
    }
  })

  test('is not accepted under another id', () => {
    const headers = { ...sign([secret], message), 'webhook-id': 'wk_2' }
    expect(() => new Webhook(secret).verify(body, headers)).toThrow('No matching signature')
  })

  test('is not accepted when old, nor with its time changed', () => {
    const headers = sign([secret], message)
    vi.setSystemTime(nowMs + 301_000)
    expect(() => new Webhook(secret).verify(body, headers)).toThrow('too old')
    const changed = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 300) }
    expect(() => new Webhook(secret).verify(body, changed)).toThrow('No matching signature')
  })

  test('167: a later attempt has a fresh time and signature under the same id', () => {
    const first = sign([secret], message)
    const second = sign([secret], { ...message, nowMs: nowMs + 5000 })
    expect(second['webhook-id']).toBe(first['webhook-id'])
    expect(second['webhook-timestamp']).not.toBe(first['webhook-timestamp'])
    expect(second['webhook-signature']).not.toBe(first['webhook-signature'])
  })
})

describe('secrets', () => {
  const ofBytes = (length: number): string => `whsec_${Buffer.alloc(length, 0xfb).toString('base64')}`

  test('the ones we make can sign', () => {
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(isSecret(secret)).toBe(true)
  })

  for (const length of [24, 32, 64])
    test(`one of ${length} bytes can sign`, () => expect(isSecret(ofBytes(length))).toBe(true))

  const wrong: [why: string, secret: string][] = [
    ['23 bytes', ofBytes(23)],
    ['65 bytes', ofBytes(65)],
    ['no bytes', 'whsec_'],
    ['no prefix', ofBytes(32).slice('whsec_'.length)],
    ['another prefix', ofBytes(32).replace('whsec_', 'whsk_')],
    ['another prefix as long', ofBytes(32).replace('whsec_', 'whpub_')],
    ['base64url', ofBytes(32).replaceAll('+', '-').replaceAll('/', '_')],
    ['no padding', ofBytes(32).replace(/=+$/, '')],
    ['a blank at its end', `${ofBytes(32)} `],
    ['a blank within', ofBytes(33).replace('+/', '+ /')],
    ['loose bits at its end', ofBytes(32).replace(/.=$/, '9=')],
  ]
  for (const [why, text] of wrong)
    test(`one with ${why} cannot sign, and is not repeated`, () => {
      expect(isSecret(text)).toBe(false)
      expect(() => sign([secret, text], message)).toThrow('A webhook secret is not whsec_')
    })

  test('nothing goes out unsigned', () => {
    expect(() => sign([], message)).toThrow('needs a secret')
  })
})
