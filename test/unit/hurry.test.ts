// What hangs ends with the time that a request has for it, and what is at hand serves.
import { expect, test } from 'vitest'
import { createNet } from '../../shared/net.ts'
import { agent, answered, type HostAnswer, jwksUrl, setOf, startKeyHost, turns } from '../support/keyhost.ts'
import { makeKey } from '../support/keys.ts'
import { startReceiver } from '../support/receiver.ts'

const k1 = makeKey('ES256', 'k1')
const good: HostAnswer = { body: setOf(k1.jwk) }
const want = { kid: 'k1', alg: 'ES256' }
const minute = 60_000

test.each([
  ['load', 1],
  ['lease', 1],
  ['save', 2],
])('a table that hangs at %s costs no more than the time for keys', async (step, fetches) => {
  const host = startKeyHost(good)
  const one = host.instance()
  await one.keysFor(agent, jwksUrl, want)
  host.pass(11 * minute)
  host.holdStore(step, new Promise(() => {}))
  const ending = new AbortController()
  const asked = one.keysFor(agent, jwksUrl, want, ending.signal)
  await turns()
  ending.abort()
  expect(answered(await asked)).toBe('k1')
  expect(host.requests).toHaveLength(fetches)
})

test('a fetch may take no longer than the time for keys', async () => {
  const host = startKeyHost(good)
  const { signal } = new AbortController()
  await host.instance().keysFor(agent, jwksUrl, want, signal)
  expect(host.requests.map(request => request.signal)).toEqual([signal])
})

test.each(['before it began', 'while it lasted'])(
  'an exchange ends as timed out if its signal came %s',
  async when => {
    const receiver = await startReceiver()
    const arrived = Promise.withResolvers<void>()
    receiver.answer(() => {
      arrived.resolve()
      return { fault: 'hang' }
    })
    const net = createNet({ allowHttp: true, allowAddresses: ['127.0.0.0/8'], allowPorts: '*' })
    const ending = new AbortController()
    const ask = () =>
      net.request({ url: receiver.origin, timeoutMs: 60_000, maxBytes: 100, signal: ending.signal })
    if (when === 'before it began') ending.abort()
    const asked = ask()
    asked.catch(() => {})
    if (when === 'while it lasted') {
      await arrived.promise
      ending.abort()
    }
    await expect(asked).rejects.toMatchObject({ name: 'NetError', fault: 'timeout' })
    expect(receiver.requests).toHaveLength(when === 'before it began' ? 0 : 1)
    await receiver.stop()
  },
)
