// How agents' keys are kept at hand: who fetches when, what is believed while a host is down, what outsiders cannot cause.
import { describe, expect, test } from 'vitest'
import type { KeySets } from '../../shared/keysets.ts'
import { limits } from '../../shared/limits.ts'
import {
  agent,
  answered,
  type HostAnswer,
  jwksUrl,
  type KeyHost,
  setOf,
  startKeyHost,
  turns,
} from '../support/keyhost.ts'
import { makeKey } from '../support/keys.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const k1 = makeKey('ES256', 'k1')
const k2 = makeKey('ES256', 'k2')
const good: HostAnswer = { body: setOf(k1.jwk) }
const rotated: HostAnswer = { body: setOf(k1.jwk, k2.jwk) }

const ask = async (of: KeySets, kid: string | undefined = 'k1', tried?: Set<string>): Promise<string> =>
  answered(await of.keysFor(agent, jwksUrl, { kid, alg: 'ES256', tried }))

/** A host that has answered once, and an instance that remembers it. */
async function warm(answer = good): Promise<{ host: KeyHost; one: KeySets }> {
  const host = startKeyHost(answer)
  const one = host.instance()
  expect(await ask(one)).toBe('k1')
  return { host, one }
}

describe('asking', () => {
  test('a remembered key costs neither a read nor a fetch', async () => {
    const { host, one } = await warm()
    const calls = host.calls.length
    for (let n = 0; n < 50; n++) {
      host.pass(second)
      expect(await ask(one)).toBe('k1')
    }
    expect(host.requests).toHaveLength(1)
    expect(host.calls).toHaveLength(calls)
  })

  test('another instance takes the set from the table, without a fetch', async () => {
    const { host } = await warm()
    expect(await ask(host.instance())).toBe('k1')
    expect(host.requests).toHaveLength(1)
  })

  test('concurrent misses share one fetch, and every caller waits for it', async () => {
    const host = startKeyHost(good)
    const one = host.instance()
    expect(new Set(await Promise.all(Array.from({ length: 20 }, () => ask(one))))).toEqual(new Set(['k1']))
    expect(host.requests).toHaveLength(1)
    expect(host.calls).toEqual(['load', 'lease', 'save'])
  })

  test('an instance waits for another that is fetching, instead of refusing or fetching too', async () => {
    const opened = Promise.withResolvers<void>()
    const host = startKeyHost({ ...good, until: opened.promise })
    const [a, b] = [host.instance(), host.instance()]
    const first = ask(a)
    await turns()
    const other = ask(b)
    opened.resolve()
    expect(await Promise.all([first, other])).toEqual(['k1', 'k1'])
    expect(host.requests).toHaveLength(1)
  })

  test('of two instances that begin at once one fetches and both have the keys', async () => {
    const host = startKeyHost(good)
    expect(await Promise.all([ask(host.instance()), ask(host.instance())])).toEqual(['k1', 'k1'])
    expect(host.requests).toHaveLength(1)
  })

  test('a fetch that ended after the wait for it is noticed at the next question', async () => {
    const opened = Promise.withResolvers<void>()
    const host = startKeyHost({ ...good, until: opened.promise })
    const [a, b] = [host.instance(), host.instance()]
    const first = ask(a)
    await turns()
    expect(await ask(b)).toBe('unavailable')
    opened.resolve()
    expect(await first).toBe('k1')
    host.pass(2 * second)
    expect(await ask(b)).toBe('k1')
    expect(host.requests).toHaveLength(1)
  })

  test('case 78: nothing runs on after an answer', async () => {
    const { host, one } = await warm()
    host.pass(11 * minute)
    host.answer(rotated)
    const opened = Promise.withResolvers<void>()
    host.holdStore('save', opened.promise)
    let answers = 0
    const asked = ['k1', 'k2', 'nope'].map(kid => ask(one, kid).then(() => answers++))
    await turns()
    expect(host.calls.at(-1)).toBe('save')
    expect(answers).toBe(0)
    opened.resolve()
    await Promise.all(asked)
    expect(host.open()).toBe(0)
  })

  test('the log and the table get the names of the agent and nothing else of its record', async () => {
    const host = startKeyHost(good)
    const whole = { ...agent, credentials: 'sealed-secret' }
    await host.instance().keysFor(whole, jwksUrl, { kid: 'k1', alg: 'ES256' })
    expect(host.steps).toMatchObject([{ step: 'keys.fetched', tenant: 'acme', agent: 'a1' }])
    expect(JSON.stringify(host.steps)).not.toContain('sealed-secret')
  })

  test('the memory of one process is bounded', async () => {
    const { host, one } = await warm()
    for (let n = 0; n < 1000; n++)
      await one.keysFor({ tenant: 'acme', agent: `other-${n}` }, jwksUrl, { kid: 'k1', alg: 'ES256' })
    const calls = host.calls.length
    expect(await ask(one)).toBe('k1')
    expect(host.calls.slice(calls)).toEqual(['load'])
  })
})

describe('keys that are not there', () => {
  test('case 8: an unknown kid costs at most one fetch, then it is refused', async () => {
    const { host, one } = await warm()
    host.pass(31 * second)
    expect(await ask(one, 'nope')).toBe('no_key')
    expect(host.requests).toHaveLength(2)
    expect(await ask(one, 'nope')).toBe('no_key')
    expect(host.requests).toHaveLength(2)
  })

  test('case 9: a new kid is found although the old set is still fresh', async () => {
    const { host, one } = await warm({ ...good, headers: { 'cache-control': 'max-age=86400' } })
    host.pass(120 * second)
    host.answer(rotated)
    expect(await ask(one, 'k2')).toBe('k2')
    expect(host.requests).toHaveLength(2)
  })

  test('a new kid that another instance has fetched is found without a fetch', async () => {
    const { host, one } = await warm()
    host.pass(31 * second)
    host.answer(rotated)
    const other = host.instance()
    expect(await ask(other, 'k2')).toBe('k2')
    expect(await ask(one, 'k2')).toBe('k2')
    expect(host.requests).toHaveLength(2)
  })

  test('case 11: random kids make one fetch each 30 s, all instances together, and good pushes pass meanwhile', async () => {
    const { host, one } = await warm()
    const instances = [one, host.instance(), host.instance()]
    host.pass(31 * second)
    for (let n = 0; n < 200; n++) {
      for (const each of instances) expect(await ask(each, `random-${n}`)).toBe('no_key')
      host.pass(50)
    }
    for (const each of instances) expect(await ask(each)).toBe('k1')
    expect(host.requests).toHaveLength(2)
    expect(host.calls.length).toBeLessThan(20)
  })

  test('case 21: a key replaced under its old kid is found after its forerunner failed', async () => {
    const { host, one } = await warm()
    const first = await one.keysFor(agent, jwksUrl, { kid: 'k1', alg: 'ES256' })
    const tried = new Set(first.ok ? first.keys.map(({ id }) => id) : [])
    expect(await ask(one, 'k1', tried)).toBe('no_key')
    host.pass(31 * second)
    expect(await ask(one, 'k1', tried)).toBe('no_key')
    host.pass(31 * second)
    host.answer({ body: setOf({ ...makeKey('ES256').jwk, kid: 'k1' }) })
    expect(await ask(one, 'k1', tried)).toBe('k1')
    expect(host.requests).toHaveLength(3)
  })
})

describe('hosts that fail', () => {
  test('case 14: a failure is not remembered as an answer', async () => {
    const host = startKeyHost({ status: 500 })
    const one = host.instance()
    expect(await ask(one)).toBe('unavailable')
    host.answer(good)
    host.pass(35 * second)
    expect(await ask(one)).toBe('k1')
  })

  test('failures are backed off: 5 s, doubled each time, at most 5 min, for all instances', async () => {
    const host = startKeyHost({ fault: 'unreachable' })
    const instances = [host.instance(), host.instance()]
    const times: number[] = []
    const start = host.now()
    while (host.now() - start < 30 * minute) {
      for (const each of instances) {
        const before = host.requests.length
        expect(await ask(each)).toBe('unavailable')
        if (host.requests.length > before) times.push(Math.round((host.now() - start) / second))
      }
      host.pass(second)
    }
    const gaps = times.slice(1).map((time, at) => time - (times[at] ?? 0))
    expect(gaps).toEqual([5, 10, 20, 40, 80, 160, 300, 300, 300, 300])
  })

  test.each<[string, HostAnswer]>([
    ['case 15: too slow a host', { fault: 'timeout' }],
    ['case 16: a redirect', { status: 302, headers: { location: 'http://169.254.169.254/' } }],
    ['case 16: a moved set', { status: 301, headers: { location: 'https://other.example/jwks' } }],
    ['case 17: too large a set', { fault: 'too_large' }],
    ['case 18: an error page', { body: '<html>' }],
    ['case 18: a list', { body: '[]' }],
    ['case 18: members that are no list', { body: '{"keys":{}}' }],
    ['case 18: no member', { body: setOf() }],
    ['case 18: a set in base64', { body: Buffer.from(setOf(k1.jwk)).toString('base64') }],
    ['case 45: an address that may not be called', { fault: 'not_allowed' }],
    ['an error', { status: 503, body: setOf(k1.jwk) }],
  ])('%s is no answer: nothing known, come again; a known set is kept', async (_says, answer) => {
    const cold = startKeyHost(answer)
    expect(await ask(cold.instance())).toBe('unavailable')
    expect(cold.requests.map(({ url }) => url)).toEqual([jwksUrl])
    expect(cold.steps).toMatchObject([{ step: 'keys.fetch_failed', failures: 1 }])

    const { host, one } = await warm()
    host.pass(11 * minute)
    host.answer(answer)
    expect(await ask(one)).toBe('k1')
    expect(host.requests).toHaveLength(2)
    expect(await ask(host.instance())).toBe('k1')
  })

  test('cases 15 and 17: a whole fetch has 2.5 s and 512 kB', async () => {
    const { host } = await warm()
    expect(host.requests[0]).toMatchObject({ url: jwksUrl, timeoutMs: 2500, maxBytes: limits.keySetBytes })
    expect(limits.keySetBytes).toBe(512 * 1024)
  })

  test('case 17: a set of 60 kB and 40 keys serves its last key', async () => {
    const others = Array.from({ length: 39 }, (_, n) => ({
      ...k2.jwk,
      kid: `o${n}`,
      x5c: ['A'.repeat(1500)],
    }))
    const { host } = await warm({ body: setOf(...others, k1.jwk) })
    expect(await ask(host.instance())).toBe('k1')
  })

  test('case 18: a set behind a byte order mark serves', async () => {
    await warm({ body: `\uFEFF${setOf(k1.jwk)}` })
  })

  test('while a host is down an unknown kid is a case of come again, not of a wrong sender', async () => {
    const { host, one } = await warm()
    host.pass(31 * second)
    host.answer({ status: 500 })
    expect(await ask(one, 'k2')).toBe('unavailable')
    expect(await ask(one)).toBe('k1')
  })

  test('the last good set serves for a day after it ran out, and no longer', async () => {
    const { host, one } = await warm()
    host.answer({ status: 500 })
    host.pass(10 * minute + 24 * hour - 1)
    expect(await ask(one)).toBe('k1')
    expect(await ask(host.instance())).toBe('k1')
    host.pass(1)
    expect(await ask(one)).toBe('unavailable')
    expect(await ask(host.instance())).toBe('unavailable')
  })

  test('an instance that was killed while fetching blocks nobody once its fetch must have ended', async () => {
    const host = startKeyHost({ ...good, until: new Promise(() => {}) })
    void ask(host.instance())
    await turns()
    expect(host.requests).toHaveLength(1)
    const leasedAt = host.now()
    host.answer(good)
    const other = host.instance()
    expect(await ask(other)).toBe('unavailable')
    host.pass(leasedAt + 3.5 * second - host.now())
    expect(await ask(other)).toBe('k1')
    expect(host.requests).toHaveLength(2)
  })
})

describe('how long a set is fresh', () => {
  const life = async (headers: Record<string, string>): Promise<number> => {
    const { host } = await warm({ ...good, headers })
    return ((host.stored()?.freshUntil ?? 0) - host.now()) / minute
  }

  test.each<[string, Record<string, string>, number]>([
    ['a year is a day', { 'cache-control': 'max-age=31536000' }, 24 * 60],
    ['0 s is a minute', { 'cache-control': 'max-age=0' }, 1],
    ['no-store is a minute', { 'cache-control': 'no-store' }, 1],
    ['no-cache beside a max-age is a minute', { 'cache-control': 'max-age=3600, no-cache' }, 1],
    ['an age beyond max-age is a minute', { 'cache-control': 'max-age=600', age: '700' }, 1],
    ['an age counts', { 'cache-control': 'public, Max-Age=600', age: '120' }, 8],
    ['nothing said is ten minutes', {}, 10],
    ['nonsense is ten minutes', { 'cache-control': 'max-age=soon' }, 10],
    ['a shared cache’s own age does not count', { 'cache-control': 's-maxage=9999' }, 10],
  ])('case 46: %s', async (_says, headers, minutes) => {
    expect(await life(headers)).toBe(minutes)
  })

  test('case 46: no-store does not mean a fetch per push', async () => {
    const { host, one } = await warm({ ...good, headers: { 'cache-control': 'no-store' } })
    for (let n = 0; n < 120; n++) {
      expect(await ask(one)).toBe('k1')
      host.pass(second)
    }
    expect(host.requests).toHaveLength(2)
  })

  test('case 46: a key that was withdrawn is refused once the set ran out', async () => {
    const { host, one } = await warm({ ...good, headers: { 'cache-control': 'max-age=31536000' } })
    host.answer({ body: setOf(k2.jwk) })
    host.pass(24 * hour - 1)
    expect(await ask(one)).toBe('k1')
    host.pass(1)
    expect(await ask(one)).toBe('no_key')
  })
})

describe('around the fetch', () => {
  test('a set is refreshed two minutes before it runs out, and not earlier', async () => {
    const { host, one } = await warm()
    host.pass(8 * minute - 1)
    expect(await one.refresh(agent, jwksUrl)).toMatchObject({ ok: true, keys: 1 })
    expect(host.requests).toHaveLength(1)
    host.pass(1)
    await one.refresh(agent, jwksUrl)
    expect(host.requests).toHaveLength(2)
  })

  test('a registration learns what the set holds, and what is wrong with it', async () => {
    const exported = k2.privateKey.export({ format: 'jwk' })
    const host = startKeyHost({ body: setOf(k1.jwk, { ...exported, kid: 'k2' }, { kty: 'oct', k: 'AA' }) })
    expect(await host.instance().refresh(agent, jwksUrl)).toMatchObject({
      ok: true,
      keys: 1,
      flags: ['private_key_published', 'symmetric_key_published'],
    })
    expect(JSON.stringify(host.stored())).not.toContain(String(exported.d))
  })

  test('a registration learns why there is no set', async () => {
    const host = startKeyHost({ status: 404 })
    expect(await host.instance().refresh(agent, jwksUrl)).toEqual({
      ok: false,
      fault: 'status_404',
      flags: [],
    })
    host.answer({ body: '[]' })
    host.pass(minute)
    expect(await host.instance().refresh(agent, jwksUrl)).toMatchObject({ fault: 'not_a_key_set' })
  })

  test('keys of another URL than the rule names are never used', async () => {
    const { host, one } = await warm()
    host.answer({ body: setOf(k2.jwk) })
    const moved = 'https://agent.example/new.json'
    const answer = await one.keysFor(agent, moved, { kid: 'k1', alg: 'ES256' })
    expect(answered(answer)).toBe('no_key')
    expect(answered(await one.keysFor(agent, moved, { kid: 'k2', alg: 'ES256' }))).toBe('k2')
    expect(host.requests.map(({ url }) => url)).toEqual([jwksUrl, moved])
    expect(host.stored()?.url).toBe(moved)
  })

  test('while the table fails, what is in memory serves', async () => {
    const { host, one } = await warm()
    host.breakStore(true)
    host.pass(11 * minute)
    expect(await ask(one)).toBe('k1')
    expect(await ask(one, 'k2')).toBe('no_key')
    expect(await ask(host.instance())).toBe('unavailable')
    host.breakStore(false)
    expect(await ask(host.instance())).toBe('k1')
  })

  test('a fetch whose record is lost still serves', async () => {
    const opened = Promise.withResolvers<void>()
    const host = startKeyHost({ ...good, until: opened.promise })
    const one = host.instance()
    const asked = ask(one)
    await turns()
    host.breakStore(true)
    opened.resolve()
    expect(await asked).toBe('k1')
    expect(await ask(one)).toBe('k1')
  })
})
