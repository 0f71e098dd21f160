// Registering agents: by card or by hand, every version and binding, with what is pinned, what is sealed, and what is refused.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Variant, variantCard, variants } from '../../infra/local/agent/cards.ts'
import { type Api, expectDiscreet, expectProblem, type Fields, startApi } from '../support/api.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'

let api: Api
/** Serves cards that tests write, and fails when it is told to. */
let host: Receiver

beforeAll(async () => {
  ;[api, host] = await Promise.all([startApi(), startReceiver()])
})

afterAll(() => Promise.all([api.stop(), host.stop()]))

afterEach(() => host.answer({ status: 404 }))

const put = (agent: string, body: unknown) => api.ask('PUT', `/v1/agents/${agent}`, { body })

const serve = (card: unknown): void => host.answer({ body: JSON.stringify(card) })

/** A port where nobody listens: the host's, once it is gone. */
async function deadOrigin(): Promise<string> {
  const gone = await startReceiver()
  await gone.stop()
  return gone.origin
}

const callable = (url: string, more: Fields = {}): Fields => ({
  name: 'Helper',
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { pushNotifications: true, streaming: false },
  ...more,
})

const named = ({ version, binding, pushes }: Variant): string =>
  `${version} over ${binding}${pushes ? '' : ', without pushes'}`

/** What is shown of an agent of the demo's that is a certain variant. */
const shownAs = (variant: Variant): Fields => ({
  url: api.agent.endpointUrl(variant),
  binding: variant.binding,
  version: variant.version,
  origins: [api.agent.origin],
  capabilities: expect.objectContaining({ pushNotifications: variant.pushes }),
  road: variant.pushes ? 'push' : 'poll',
  hasCredentials: false,
  verification: { token: true, authorization: 'Bearer' },
})

describe.each(variants.map(variant => [named(variant), variant] as const))(
  'an agent of %s',
  (name, variant) => {
    const id = name.replace(/\W+/g, '-')

    test('is registered by the address of its card', async () => {
      const made = await put(`at-${id}`, { cardUrl: api.agent.cardUrl(variant) })
      expect(made.status).toBe(201)
      expect(made.body).toMatchObject({
        agent: `at-${id}`,
        cardUrl: api.agent.cardUrl(variant),
        ...shownAs(variant),
      })
      expect((await api.ask('GET', `/v1/agents/at-${id}`)).body).toEqual(made.body)
    })

    test('is registered by its card', async () => {
      const made = await put(`by-${id}`, { card: variantCard(api.agent.origin, variant) })
      expect(made.body).toMatchObject(shownAs(variant))
      expect(made.body).not.toHaveProperty('cardUrl')
    })

    test('is registered by hand', async () => {
      const { version, binding, pushes } = variant
      const hand = { url: api.agent.endpointUrl(variant), version, binding, pushNotifications: pushes }
      expect((await put(`of-${id}`, hand)).body).toMatchObject({
        ...shownAs(variant),
        capabilities: { pushNotifications: pushes, streaming: false },
      })
    })
  },
)

describe('a card', () => {
  test('is found below the address of its agent', async () => {
    const { body } = await put('below', { cardUrl: `${api.agent.origin}/` })
    expect(body).toMatchObject({ cardUrl: api.agent.cardUrl(), version: '1.0', binding: 'JSONRPC' })
  })

  test('brings its tenant, unless the request names another', async () => {
    const card = callable(`${host.origin}/rpc`)
    card.supportedInterfaces = [
      { url: `${host.origin}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 'theirs' },
    ]
    expect((await put('tenanted', { card })).body.agentTenant).toBe('theirs')
    expect((await put('tenanted', { card, agentTenant: 'ours' })).body.agentTenant).toBe('ours')
  })

  test('may have any name, which is cut where it is long', async () => {
    serve(callable(`${host.origin}/rpc`, { name: `${'x'.repeat(199)}\u{1f600}` }))
    const { body } = await put('long-named', { cardUrl: `${host.origin}/card` })
    expect(body.name).toBe(`${'x'.repeat(199)}\ufffd`)
  })

  const unreadable: [name: string, answer: Parameters<Receiver['answer']>[0]][] = [
    ['that is missing', { status: 404 }],
    ['behind a login', { status: 401 }],
    ['that has moved', { status: 302, headers: { location: '/elsewhere' } }],
    ['that is a page', { body: '<html>' }],
    ['that is empty', { body: '' }],
    ['that is a list', { body: '[]' }],
    ['without an interface', { body: '{"name":"x"}' }],
    ['for gRPC only', { body: JSON.stringify({ url: 'http://x.example/', preferredTransport: 'GRPC' }) }],
    ['too deep', { body: `{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}` }],
    ['too large', { body: ' '.repeat(2 * 1024 * 1024) }],
  ]
  test.each(unreadable)('%s is refused and leaves nothing', async (_name, answer) => {
    const before = await api.items()
    host.answer(answer)
    const refused = await put('unread', { cardUrl: `${host.origin}/card` })
    expectProblem(api, refused, 'agent_card_unreadable', ['/cardUrl'])
    expect(await api.items()).toEqual(before)
  })

  test('that names a place which may not be called is refused', async () => {
    for (const url of ['http://10.0.0.1/rpc', 'https://user:pass@agent.example/', 'http://169.254.169.254/'])
      expectProblem(api, await put('unread', { card: callable(url), offline: true }), 'address_not_allowed', [
        '/card',
      ])
    expectProblem(api, await api.ask('GET', '/v1/agents/unread'), 'not_found')
  })
})

describe('a card whose interface', () => {
  const card = (more: Fields): Fields => ({
    capabilities: { pushNotifications: true },
    supportedInterfaces: [
      { url: 'https://agent.example/', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0', ...more },
    ],
  })
  test.each<[name: string, more: Fields]>([
    ['names half a character as its tenant', { tenant: '\ud800' }],
    ['names a step up as its tenant', { tenant: '..' }],
    ['has a control character in its tenant', { tenant: 'a\u0000b' }],
    ['has a tenant without end', { tenant: 'x'.repeat(500) }],
    ['has an address without end', { url: `https://agent.example/${'x'.repeat(3000)}` }],
    ['has a binding without end', { protocolBinding: 'x'.repeat(100_000) }],
  ])('%s is refused in few words and leaves nothing', async (_name, more) => {
    const before = await api.items()
    const refused = await put('odd', { card: card(more), offline: true })
    expectProblem(api, refused, 'agent_card_unreadable', ['/card'])
    expect(JSON.stringify(refused.body).length).toBeLessThan(2000)
    expect(await api.items()).toEqual(before)
  })
})

describe('an agent that is down', () => {
  test('is not stored, whichever way it is given', async () => {
    const before = await api.items()
    const dead = await deadOrigin()
    const ways: [pointer: string, body: Fields][] = [
      ['/cardUrl', { cardUrl: `${dead}/card` }],
      ['/cardUrl', { cardUrl: `${dead}/card`, offline: true }],
      ['/card', { card: callable(`${dead}/rpc`) }],
      ['/url', { url: `${dead}/rpc`, binding: 'JSONRPC', version: '1.0' }],
    ]
    for (const [pointer, body] of ways)
      expectProblem(api, await put('down', body), 'agent_unreachable', [pointer])
    expect(await api.items()).toEqual(before)
  })

  test('is stored when the request says that it is off line', async () => {
    const url = `${await deadOrigin()}/rpc`
    const made = await put('later', { card: callable(url), offline: true })
    expect({ status: made.status, url: made.body.url }).toEqual({ status: 201, url })
    const hand = { url, binding: 'HTTP+JSON', version: '0.3', offline: true }
    expect((await put('later-too', hand)).status).toBe(201)
  })

  test('stays as it was when it is registered anew', async () => {
    serve(callable(`${host.origin}/rpc`))
    const made = await put('was-up', { cardUrl: `${host.origin}/card` })
    host.answer({ fault: 'reset' })
    const again = await put('was-up', { cardUrl: `${host.origin}/card` })
    expectProblem(api, again, 'agent_unreachable', ['/cardUrl'])
    expect((await api.ask('GET', '/v1/agents/was-up')).body).toEqual(made.body)
  })
})

describe('the origins of an agent', () => {
  const cardUrl = () => `${host.origin}/card`

  test('have that of its token endpoint among them, which stays with its credentials and is told', async () => {
    serve(callable(`${host.origin}/rpc`))
    const { origin: tokenOrigin } = api.agent
    const client = { grant: 'client_credentials', clientId: 'c', clientSecret: 'token-secret-5b1e' }
    const credentials = { type: 'oauth2', tokenUrl: `${tokenOrigin}/token`, ...client }
    const pinned = { origins: [host.origin, tokenOrigin], tokenOrigin, hasCredentials: true }
    expect((await put('granted', { cardUrl: cardUrl(), credentials })).body).toMatchObject(pinned)
    expect((await put('granted', { cardUrl: cardUrl() })).body).toMatchObject(pinned)
    const moved = { cardUrl: cardUrl(), credentials: { ...credentials, tokenUrl: 'http://127.0.0.2:9/' } }
    expectProblem(api, await put('granted', moved), 'origin_changed', ['/origins'])
    const wild = { cardUrl: cardUrl(), credentials: { ...credentials, tokenUrl: 'ftp://127.0.0.1/' } }
    expectProblem(api, await put('granted', wild), 'address_not_allowed', ['/credentials/tokenUrl'])
    for (const end of ['#', '#part']) {
      const cut = {
        cardUrl: cardUrl(),
        credentials: { ...credentials, tokenUrl: `${tokenOrigin}/token${end}` },
      }
      expectProblem(api, await put('granted', cut), 'invalid', ['/credentials/tokenUrl'])
    }
    const none = await put('granted', { cardUrl: cardUrl(), credentials: null })
    expect(none.body).toMatchObject({ origins: [host.origin], hasCredentials: false })
  })

  test('are all those that its registration names', async () => {
    const elsewhere = await startReceiver()
    serve(callable(`${api.agent.origin}/rpc`))
    const jwt = { jwksUrl: `${elsewhere.origin}/keys`, issuer: 'i' }
    const { body } = await put('spread', { cardUrl: cardUrl(), verification: { jwt } })
    expect(body.origins).toEqual([api.agent.origin, host.origin, elsewhere.origin])
    await elsewhere.stop()
  })

  test('do not change by the word of a card', async () => {
    serve(callable(`${host.origin}/rpc`))
    const credentials = { type: 'bearer', token: 'stays-where-it-is' }
    const made = await put('pinned', { cardUrl: cardUrl(), credentials })
    serve(callable(`${api.agent.origin}/rpc`))
    const before = await api.items()
    expectProblem(api, await put('pinned', { cardUrl: cardUrl() }), 'origin_changed', ['/origins'])
    expect(await api.items()).toEqual(before)
    expect((await api.ask('GET', '/v1/agents/pinned')).body).toEqual(made.body)
    expect(api.lines.some(line => line.includes('"agent.origin_refused"') && line.includes('pinned'))).toBe(
      true,
    )
  })

  test('change when the request names the new one', async () => {
    serve(callable(`${host.origin}/rpc`))
    await put('moves', { cardUrl: cardUrl() })
    serve(callable(`${api.agent.origin}/rpc`))
    const moved = await put('moves', { cardUrl: cardUrl(), origins: [api.agent.origin] })
    expect(moved.status).toBe(200)
    expect(moved.body.origins).toEqual([api.agent.origin, host.origin])
    // The old interface's origin is pinned no more once nothing is there.
    await put('moves', { cardUrl: api.agent.cardUrl() })
    expectProblem(api, await put('moves', { cardUrl: cardUrl() }), 'origin_changed')
  })

  test('change only with credentials that are given anew, or with none: those that stand never move along', async () => {
    serve(callable(`${host.origin}/rpc`))
    const credentials = { type: 'bearer', token: 'stays-at-home' }
    await put('settled', { cardUrl: cardUrl(), credentials })
    serve(callable(`${api.agent.origin}/rpc`))
    const moved = { cardUrl: cardUrl(), origins: [api.agent.origin] }
    const before = await api.items()
    expectProblem(api, await put('settled', moved), 'invalid', ['/credentials'])
    expect(await api.items()).toEqual(before)
    expect((await put('settled', { ...moved, credentials })).body).toMatchObject({ hasCredentials: true })
    // Back to an origin that is still pinned they may go.
    serve(callable(`${host.origin}/rpc`))
    expect((await put('settled', { cardUrl: cardUrl() })).body).toMatchObject({ hasCredentials: true })
    serve(callable(`${api.agent.origin}/rpc`))
    expect((await put('settled', { ...moved, credentials: null })).body).toMatchObject({
      hasCredentials: false,
    })
  })

  test('are no others than those that the first registration names', async () => {
    serve(callable(`${api.agent.origin}/rpc`))
    const credentials = { type: 'bearer', token: 'for-nobody-else' }
    const strict = { cardUrl: cardUrl(), origins: [host.origin], credentials }
    expectProblem(api, await put('strict', strict), 'origin_changed', ['/origins'])
    expectProblem(api, await api.ask('GET', '/v1/agents/strict'), 'not_found')
    const both = { ...strict, origins: [host.origin, api.agent.origin] }
    expect((await put('strict', both)).status).toBe(201)
  })
})

describe('credentials', () => {
  const kinds = {
    bearer: { type: 'bearer', token: 'tok-bearer-9f2c7a41d0b8' },
    basic: { type: 'basic', username: 'rouse', password: 'pass word 9f2c7a41' },
    header: { type: 'apiKey', in: 'header', name: 'X-Api-Key', value: 'key-header-9f2c7a41' },
    query: { type: 'apiKey', in: 'query', name: 'key', value: 'key-query-9f2c7a41' },
  }

  test.each(Object.entries(kinds))('of kind %s are sealed and never shown', async (kind, credentials) => {
    const made = await put(`with-${kind}`, { cardUrl: api.agent.cardUrl(), credentials })
    const shown = await api.ask('GET', `/v1/agents/with-${kind}`)
    const listed = await api.ask('GET', '/v1/agents?limit=100')
    expect(shown.body.hasCredentials).toBe(true)
    const secret = Object.values(credentials).at(-1) ?? ''
    for (const text of [made.text, shown.text, listed.text, JSON.stringify(await api.items())])
      expect(text).not.toContain(secret)
  })

  test('stay when a later registration says nothing of them, and go when it says null', async () => {
    await put('keeps', { cardUrl: api.agent.cardUrl(), credentials: kinds.bearer })
    expect((await put('keeps', { cardUrl: api.agent.cardUrl() })).body.hasCredentials).toBe(true)
    const gone = await put('keeps', { cardUrl: api.agent.cardUrl(), credentials: null })
    expect(gone.body.hasCredentials).toBe(false)
  })

  const wrong: [name: string, credentials: Fields, pointer: string][] = [
    ['a line break', { type: 'bearer', token: 'tok\r\nX-Admin: 1' }, '/credentials/token'],
    ['a blank', { type: 'bearer', token: 'tok en' }, '/credentials/token'],
    ['a blank at its end', { type: 'basic', username: 'u', password: 'p ' }, '/credentials/password'],
    ['a NUL', { type: 'bearer', token: 'tok\u0000' }, '/credentials/token'],
    ['a letter outside ASCII', { type: 'bearer', token: 'tök' }, '/credentials/token'],
    ['nothing', { type: 'bearer', token: '' }, '/credentials/token'],
    ['too much', { type: 'bearer', token: 'x'.repeat(8193) }, '/credentials/token'],
    ['a colon in the name', { type: 'basic', username: 'u:v', password: 'p' }, '/credentials/username'],
    ['a bad header', { type: 'apiKey', in: 'header', name: 'a b', value: 'v' }, '/credentials/name'],
    [
      'the transport’s own header',
      { type: 'apiKey', in: 'header', name: 'Host', value: 'v' },
      '/credentials/name',
    ],
    [
      'a header of ours',
      { type: 'apiKey', in: 'header', name: 'a2a-version', value: 'v' },
      '/credentials/name',
    ],
    ['another place', { type: 'apiKey', in: 'cookie', name: 'a', value: 'v' }, '/credentials/in'],
    ['another kind', { type: 'digest', token: 'x' }, '/credentials/type'],
    ['a field too many', { type: 'bearer', token: 'x', scope: 'y' }, '/credentials/scope'],
  ]
  test.each(wrong)('with %s are refused by name', async (_name, credentials, pointer) => {
    const refused = await put('wrong', { cardUrl: api.agent.cardUrl(), credentials })
    expectProblem(api, refused, 'invalid', [pointer])
    expectProblem(api, await api.ask('GET', '/v1/agents/wrong'), 'not_found')
  })
})

describe('the proofs of pushes', () => {
  const keys = 'http://127.0.0.1:9/keys'
  const usual = {
    algorithms: expect.arrayContaining(['RS256', 'ES256', 'EdDSA']),
    digest: 'optional',
    windowSeconds: 300,
    skewSeconds: 60,
  }
  const right: [name: string, asked: Fields, shown: Fields][] = [
    ['a token', { token: true }, { token: true }],
    ['Basic', { authorization: 'Basic' }, { authorization: 'Basic' }],
    ['both', { token: true, authorization: 'Bearer' }, { token: true, authorization: 'Bearer' }],
    ['no token but Bearer', { token: false, authorization: 'Bearer' }, { authorization: 'Bearer' }],
    ['a JWT', { jwt: { jwksUrl: keys, issuer: 'i' } }, { jwt: { jwksUrl: keys, issuer: 'i', ...usual } }],
    [
      'a JWT in the shape of 2025',
      { jwt: { jwksUrl: keys, digest: 'required', algorithms: ['RS256'] } },
      { jwt: { ...usual, jwksUrl: keys, digest: 'required', algorithms: ['RS256'] } },
    ],
  ]
  test.each(right)('can be %s', async (name, verification, shown) => {
    const { body } = await put(name.replace(/ /g, '-'), { cardUrl: api.agent.cardUrl(), verification })
    expect(body.verification).toEqual(shown)
  })

  const wrong: [name: string, verification: Fields, pointer: string][] = [
    ['none', {}, '/verification'],
    ['a token that is switched off', { token: false }, '/verification'],
    ['a JWT and a token', { jwt: { jwksUrl: keys, issuer: 'i' }, token: true }, '/verification'],
    ['a JWT without an issuer', { jwt: { jwksUrl: keys } }, '/verification/jwt/issuer'],
    ['a JWT without keys', { jwt: { issuer: 'i' } }, '/verification/jwt/jwksUrl'],
    ['no algorithm', { jwt: { jwksUrl: keys, issuer: 'i', algorithms: [] } }, '/verification/jwt/algorithms'],
    [
      'a symmetric one',
      { jwt: { jwksUrl: keys, issuer: 'i', algorithms: ['HS256'] } },
      '/verification/jwt/algorithms/0',
    ],
    [
      'a wide window',
      { jwt: { jwksUrl: keys, issuer: 'i', windowSeconds: 1e9 } },
      '/verification/jwt/windowSeconds',
    ],
    [
      'half a second',
      { jwt: { jwksUrl: keys, issuer: 'i', skewSeconds: 0.5 } },
      '/verification/jwt/skewSeconds',
    ],
    [
      'a header that tells the time',
      { token: true, timestampHeader: 'x-time' },
      '/verification/timestampHeader',
    ],
    [
      'a header beside a JWT',
      { jwt: { jwksUrl: keys, issuer: 'i', timestampHeader: 'x-time' } },
      '/verification/jwt/timestampHeader',
    ],
    ['a scheme that few senders know', { authorization: 'Digest' }, '/verification/authorization'],
    ['half a surrogate', { jwt: { jwksUrl: keys, issuer: '\ud800' } }, '/verification/jwt/issuer'],
  ]
  test.each(wrong)('cannot be %s', async (_name, verification, pointer) => {
    const refused = await put('unproven', { cardUrl: api.agent.cardUrl(), verification })
    expectProblem(api, refused, 'invalid', [pointer])
  })
})

describe('a registration', () => {
  const wrong: [name: string, body: Fields, pointer: string][] = [
    ['no way to find it', {}, ''],
    ['two ways', { cardUrl: 'http://127.0.0.1:9/', url: 'http://127.0.0.1:9/' }, ''],
    ['no binding', { url: 'http://127.0.0.1:9/', version: '1.0' }, '/binding'],
    ['no version', { url: 'http://127.0.0.1:9/', binding: 'JSONRPC' }, '/version'],
    ['a version beside a card', { cardUrl: 'http://127.0.0.1:9/', version: '0.3' }, '/version'],
    [
      'a binding that is not spoken',
      { url: 'http://127.0.0.1:9/', binding: 'GRPC', version: '1.0' },
      '/binding',
    ],
    [
      'an origin with a path',
      { cardUrl: 'http://127.0.0.1:9/', origins: ['http://a.example/x'] },
      '/origins/0',
    ],
    ['an origin that is none', { cardUrl: 'http://127.0.0.1:9/', origins: ['a.example'] }, '/origins/0'],
    ['a floor below a minute', { cardUrl: 'http://127.0.0.1:9/', floorSeconds: 59 }, '/floorSeconds'],
    ['an unknown field', { cardUrl: 'http://127.0.0.1:9/', 'web/hook~': 1 }, '/web~1hook~0'],
  ]
  test.each(wrong)('with %s is refused by name', async (_name, body, pointer) => {
    expectProblem(api, await put('wrong', body), 'invalid', [pointer])
  })

  test('can be repeated', async () => {
    const body = { cardUrl: api.agent.cardUrl(), floorSeconds: 600 }
    const [first, again] = [await put('twice', body), await put('twice', body)]
    expect([first.status, again.status]).toEqual([201, 200])
    const meanwhile = { etag: expect.any(String), updatedAt: expect.any(Number) }
    expect(again.body).toEqual({ ...first.body, ...meanwhile })
  })

  test('is gone when it is deleted, but not while somebody is subscribed', async () => {
    await put('ends', { cardUrl: api.agent.cardUrl() })
    await api.must('PUT', '/v1/subscriptions/on-ends', { agent: 'ends', client: 'c' })
    expectProblem(api, await api.ask('DELETE', '/v1/agents/ends'), 'conflict')
    expect((await api.ask('DELETE', '/v1/subscriptions/on-ends')).status).toBe(200)
    expect((await api.ask('DELETE', '/v1/agents/ends')).status).toBe(204)
    expectProblem(api, await api.ask('GET', '/v1/agents/ends'), 'not_found')
    expectProblem(api, await api.ask('DELETE', '/v1/agents/ends'), 'not_found')
  })
})

test('no log line of all this holds a secret', () => {
  expectDiscreet(api)
})
