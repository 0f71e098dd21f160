// The way out against a real receiver: what is sent, what is refused, and what becomes of names and certificates.
import { execFile } from 'node:child_process'
import * as tls from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createNet, hurried, type Lookup, NetError, type NetReply, type NetRules } from '../../shared/net.ts'
import { fails } from '../support/fails.ts'
import { type Answer, certificates, type Receiver, startReceiver } from '../support/receiver.ts'

const rules: NetRules = { allowHttp: true, allowAddresses: ['127.0.0.1/32'], allowPorts: '*' }
const here: Lookup = async () => [{ address: '127.0.0.1', family: 4 }]
const net = createNet(rules, { lookup: here })
const limits = { timeoutMs: 10_000, maxBytes: 64 * 1024 }

let receiver: Receiver

beforeEach(async () => {
  receiver = await startReceiver()
})

afterEach(async () => {
  await receiver.stop()
})

const url = (path = '/'): string => `http://hooks.example:${receiver.port}${path}`

const get = (answer: Answer, more: { timeoutMs?: number; maxBytes?: number } = {}): Promise<NetReply> => {
  receiver.answer(answer)
  return net.request({ url: url(), ...limits, ...more })
}

const text = ({ body }: NetReply): string => new TextDecoder().decode(body)

describe('an exchange', () => {
  test('sends what it is given and hands the answer back', async () => {
    receiver.answer({ status: 201, headers: { 'x-one': ['a', 'b'], etag: '"e"' }, body: 'thanks, ü' })
    const reply = await net.request({
      url: url('/a%2Fb?c=d#e'),
      method: 'POST',
      headers: { 'Content-Type': 'application/json', authorization: 'Bearer t' },
      body: '{"ü":1}',
      ...limits,
    })
    expect(receiver.requests).toEqual([
      {
        method: 'POST',
        url: '/a%2Fb?c=d',
        body: '{"ü":1}',
        headers: {
          'accept-encoding': 'gzip, br',
          authorization: 'Bearer t',
          connection: 'close',
          'content-length': '8',
          'content-type': 'application/json',
          host: `hooks.example:${receiver.port}`,
          'user-agent': 'rouse',
        },
      },
    ])
    expect(reply.status).toBe(201)
    expect(reply.headers.get('x-one')).toBe('a, b')
    expect(reply.headers.get('etag')).toBe('"e"')
    expect(text(reply)).toBe('thanks, ü')
  })

  test('sends bytes, and a method without a body', async () => {
    await net.request({ url: url(), method: 'POST', body: Uint8Array.of(104, 105), ...limits })
    await net.request({ url: url(), method: 'DELETE', ...limits })
    await net.request({ url: url(), ...limits })
    expect(receiver.requests.map(({ method, body }) => [method, body])).toEqual([
      ['POST', 'hi'],
      ['DELETE', ''],
      ['GET', ''],
    ])
  })

  for (const status of [301, 302, 303, 307, 308])
    test(`16: a redirect (${status}) is an answer and nobody follows it`, async () => {
      const reply = await get({ status, headers: { location: url('/elsewhere') } })
      expect(reply.status).toBe(status)
      expect(receiver.requests.map(request => request.url)).toEqual(['/'])
    })

  for (const status of [204, 304, 400, 404, 500])
    test(`a ${status} is an answer like any other`, async () => {
      expect((await get({ status })).status).toBe(status)
    })

  test('leaves no connection and no timer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    await get({ body: 'fine' })
    await fails(get({ fault: 'reset' }), 'unreachable')
    const timers = vi.getTimerCount()
    vi.useRealTimers()
    expect(timers).toBe(0)
    await receiver.idle()
  })

  test('132: proxies named by the environment are not used', async () => {
    const proxy = await startReceiver()
    const program = `
      import * as http from 'node:http'
      import { createNet } from ${JSON.stringify(new URL('../../shared/net.ts', import.meta.url).href)}
      await createNet(${JSON.stringify(rules)}).request({ url: '${receiver.origin}/', timeoutMs: 9000, maxBytes: 9 })
      await new Promise(done => http.get('${receiver.origin}/', done))
      process.exit()
    `
    const env = { PATH: process.env.PATH, NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy.origin }
    await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], { env })
    // The plain request shows that the variables work: only that one went to the proxy.
    expect([receiver.connections(), proxy.connections()]).toEqual([1, 1])
    await proxy.stop()
  })
})

describe('what is sent', () => {
  for (const name of [
    'Host',
    'connection',
    'Content-Length',
    'transfer-encoding',
    'Upgrade',
    'Expect',
    'Proxy-Authorization',
  ])
    test(`nobody but the transport sets ${name}`, async () => {
      await fails(net.request({ url: url(), headers: { [name]: '1' }, ...limits }), 'not_allowed')
      expect(receiver.connections()).toBe(0)
    })

  for (const value of ['a\r\nx-b: c', 'a\nb', 'a\u0000b', 'a\u2028b'])
    test(`126: a header value ${JSON.stringify(value)} is refused and not repeated`, async () => {
      const headers = { authorization: `Bearer SECRET${value}` }
      const error = await fails(net.request({ url: url(), headers, ...limits }), 'not_allowed')
      expect(error.message).not.toContain('SECRET')
      expect(receiver.connections()).toBe(0)
    })

  test('no failure tells a path, a query, or credentials', async () => {
    const secret = 'SECRET'
    const closed = await startReceiver()
    await closed.stop()
    receiver.answer({ fault: 'reset' })
    const urls = [
      url(`/${secret}?key=${secret}`),
      `http://hooks.example:${closed.port}/${secret}?key=${secret}`,
      `http://${secret}:${secret}@hooks.example/${secret}`,
      `ftp://hooks.example/${secret}`,
      `https://hooks.example:0/${secret}`,
      `https://10.0.0.1/${secret}`,
      `not a url ${secret}`,
      `//${secret}`,
    ]
    for (const to of urls) {
      const error = await net.request({ url: to, ...limits }).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(NetError)
      expect(JSON.stringify(error, Object.getOwnPropertyNames(error)).replaceAll('at ', '')).not.toContain(
        secret,
      )
    }
  })
})

describe('names', () => {
  test('45: each connection is judged by its own answer, so a name that turns to a private address is refused', async () => {
    const answers = ['127.0.0.1', '169.254.169.254', '127.0.0.1']
    let asked = 0
    const lookup: Lookup = async () => [{ address: answers[asked++] ?? '', family: 4 }]
    const rebound = createNet(rules, { lookup })
    const request = { url: url(), ...limits }
    expect((await rebound.request(request)).status).toBe(200)
    await fails(rebound.request(request), 'not_allowed')
    expect((await rebound.request(request)).status).toBe(200)
    expect(asked).toBe(3)
    expect(receiver.connections()).toBe(2)
  })

  test('a name is asked for once per exchange, and the judged address is the one that is called', async () => {
    // The system cannot resolve this name: the connection can only come from the judged answer.
    let asked = 0
    const lookup: Lookup = async name => {
      asked += 1
      // A resolver that lies on the second question, as rebinding does.
      return asked === 1 && name === 'only.once.example' ? here(name) : [{ address: '10.0.0.5', family: 4 }]
    }
    const reply = await createNet(rules, { lookup }).request({
      url: `http://only.once.example:${receiver.port}/`,
      ...limits,
    })
    expect([reply.status, asked]).toEqual([200, 1])
    expect(receiver.requests[0]?.headers.host).toBe(`only.once.example:${receiver.port}`)
  })

  const mixed: [why: string, ...addresses: string[]][] = [
    ['a private address', '10.0.0.5'],
    ['a private address after a good one', '127.0.0.1', '10.0.0.5'],
    ['a private address before a good one', 'fd00::1', '127.0.0.1'],
    ['a metadata address', '169.254.169.254'],
    ['an IPv4 address mapped into IPv6', '::ffff:127.0.0.1'],
    ['a link-local address with its zone', 'fe80::1%lo'],
    ['something that is no address', 'localhost'],
  ]
  for (const [why, ...addresses] of mixed)
    test(`a name that resolves to ${why} is not called, and the address is not told`, async () => {
      const lookup: Lookup = async () => addresses.map(address => ({ address, family: 4 }))
      const error = await fails(
        createNet(rules, { lookup }).request({ url: url(), ...limits }),
        'not_allowed',
      )
      for (const address of addresses) expect(error.message).not.toContain(address)
      expect(receiver.connections()).toBe(0)
    })

  test('123: a local name may be called at an allowed address, and only there', async () => {
    const local = { url: `http://printer.local:${receiver.port}/`, ...limits }
    expect((await net.request(local)).status).toBe(200)
    const outside = createNet(rules, { lookup: async () => [{ address: '8.8.8.8', family: 4 }] })
    await fails(outside.request(local), 'not_allowed')
    const strict = createNet({ ...rules, allowAddresses: [] }, { lookup: here })
    await fails(strict.request(local), 'not_allowed')
  })

  test('the second address is tried when the first leads nowhere', async () => {
    const lookup: Lookup = async () => [
      { address: '::1', family: 6 },
      { address: '127.0.0.1', family: 4 },
    ]
    const both = createNet({ ...rules, allowAddresses: ['127.0.0.1', '::1'] }, { lookup })
    expect((await both.request({ url: url(), ...limits })).status).toBe(200)
  })

  test('a name without an address, or a resolver that fails, is unreachable', async () => {
    await fails(
      createNet(rules, { lookup: async () => [] }).request({ url: url(), ...limits }),
      'unreachable',
    )
    const broken: Lookup = async () => {
      throw Object.assign(new Error('getaddrinfo ENOTFOUND hooks.example'), { code: 'ENOTFOUND' })
    }
    const error = await fails(
      createNet(rules, { lookup: broken }).request({ url: url(), ...limits }),
      'unreachable',
    )
    expect(error.message).toContain('ENOTFOUND')
  })

  test('the system resolver is used unless another is given', async () => {
    const request = { url: `http://localhost:${receiver.port}/`, ...limits }
    const rooms = { ...rules, allowAddresses: ['127.0.0.0/8', '::1'] }
    expect((await createNet(rooms).request(request)).status).toBe(200)
  })
})

test('for work that is hurried no exchange begins once its time is over', async () => {
  let now = 1000
  const soon = hurried(net, 100, () => now)
  const ask = () => soon.request({ url: url(), ...limits })
  receiver.answer({ status: 200 })
  now = 1100
  await ask()
  now = 1101
  await fails(ask(), 'timeout')
  expect(receiver.requests).toHaveLength(1)
})

describe('broken answers', () => {
  test('140: a reset is unreachable', async () => {
    await fails(get({ fault: 'reset' }), 'unreachable')
  })

  test('140: a closed port is unreachable', async () => {
    const closed = await startReceiver()
    await closed.stop()
    const to = `http://hooks.example:${closed.port}/`
    await fails(net.request({ url: to, ...limits }), 'unreachable')
  })

  test('a body cut short is unreachable, with and without a length', async () => {
    await fails(get({ fault: 'cut' }), 'unreachable', 200)
    await fails(get({ fault: 'cut', headers: { 'content-length': 100 } }), 'unreachable', 200)
    await fails(get({ fault: 'cut', headers: { 'content-encoding': 'br' } }), 'unreachable', 200)
  })

  const wire: [why: string, raw: string][] = [
    ['no HTTP', 'SSH-2.0-OpenSSH_9.9\r\n'],
    ['nothing', ''],
    ['a head that stops', 'HTTP/1.1 200 OK\r\ncontent-le'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
    [
      'a length and chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['other protocols', 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'],
  ]
  for (const [why, raw] of wire)
    test(`166: ${why} is unreachable`, async () => {
      await fails(get({ raw }), 'unreachable')
      await receiver.idle()
    })

  test('a body that was announced and never came is unreachable', async () => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n'
    await fails(get({ raw: `${head}\r\n` }), 'unreachable', 200)
    await fails(get({ raw: `${head}content-encoding: gzip\r\n\r\n` }), 'unreachable', 200)
  })

  test('a broken chunk is unreachable', async () => {
    const raw = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'
    await fails(get({ raw }), 'unreachable', 200)
  })
})

describe('TLS', () => {
  const secure = { key: certificates.key, cert: certificates.good }
  const trusted = tls.getCACertificates('default')

  beforeAll(() => tls.setDefaultCACertificates([...trusted, certificates.good, certificates.expired]))
  afterAll(() => tls.setDefaultCACertificates(trusted))

  const against = async (
    options: tls.TlsOptions,
    name: string,
    run: (asked: Promise<NetReply>, server: Receiver) => Promise<unknown>,
  ): Promise<void> => {
    const server = await startReceiver(options)
    server.answer({ body: 'sealed' })
    try {
      await run(net.request({ url: `https://${name}:${server.port}/`, ...limits }), server)
    } finally {
      await server.stop()
    }
  }

  test('a certificate for the name passes, and the name goes into handshake and request', async () => {
    const names: string[] = []
    const SNICallback: tls.TlsOptions['SNICallback'] = (name, done) => done(null, void names.push(name))
    await against({ ...secure, SNICallback }, 'hooks.example', async (asked, server) => {
      expect(text(await asked)).toBe('sealed')
      expect(names).toEqual(['hooks.example'])
      expect(server.requests[0]?.headers.host).toBe(`hooks.example:${server.port}`)
    })
  })

  test('a certificate for an address passes', () =>
    against(secure, '127.0.0.1', async asked => {
      expect(text(await asked)).toBe('sealed')
    }))

  test('140: a certificate for another name is a TLS fault, and nothing is sent', () =>
    against(secure, 'other.example', async (asked, server) => {
      const error = await fails(asked, 'tls')
      expect(error.message).toContain('ERR_TLS_CERT_ALTNAME_INVALID')
      expect(server.requests).toEqual([])
    }))

  test('140: a certificate that ran out is a TLS fault', () =>
    against({ ...secure, cert: certificates.expired }, 'expired.example', async asked => {
      expect((await fails(asked, 'tls')).message).toContain('CERT_HAS_EXPIRED')
    }))

  test('140: a certificate that nobody vouches for is a TLS fault', async () => {
    tls.setDefaultCACertificates(trusted)
    try {
      await against(secure, 'hooks.example', async (asked, server) => {
        await fails(asked, 'tls')
        expect(server.requests).toEqual([])
      })
    } finally {
      tls.setDefaultCACertificates([...trusted, certificates.good, certificates.expired])
    }
  })

  test('140: no environment variable switches the checks off', async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      await against(secure, 'other.example', asked => fails(asked, 'tls'))
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
    }
  })

  test('140: TLS before 1.2 is a TLS fault', () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
    return against({ ...secure, ...old }, 'hooks.example', asked => fails(asked, 'tls'))
  })

  test('plain http where https is spoken is a TLS fault', async () => {
    receiver.answer({ raw: 'HTTP/1.1 400 Bad Request\r\n\r\n' })
    await fails(net.request({ url: `https://hooks.example:${receiver.port}/`, ...limits }), 'tls')
  })
})
