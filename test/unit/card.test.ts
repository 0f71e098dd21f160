// Cards of both versions are read alike, and the interface that is called is one that the card offers and Rouse speaks.
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { chooseInterface, fetchCard, readCard } from '../../shared/a2a/card.ts'
import { loopbackNet } from '../support/net.ts'
import { startReceiver } from '../support/receiver.ts'

const offer = (url: string, protocolBinding: string, protocolVersion?: string, tenant?: string) => ({
  url,
  protocolBinding,
  protocolVersion,
  tenant,
})

const capabilities = { pushNotifications: true, streaming: false }

const newCard = (...supportedInterfaces: unknown[]) => ({ name: 'Chef', capabilities, supportedInterfaces })

const oldCard = {
  name: 'Chef',
  protocolVersion: '0.3.0',
  url: 'https://chef.example/rpc',
  preferredTransport: 'JSONRPC',
  additionalInterfaces: [{ url: 'https://chef.example/rest', transport: 'HTTP+JSON' }],
  capabilities,
}

const choiceOf = (json: unknown): unknown => {
  const read = readCard(json)
  const chosen = read.ok ? chooseInterface(read.card) : read
  return chosen.ok ? chosen.choice : chosen.why
}

const rpc = (version: string) => ({ url: 'https://chef.example/rpc', binding: 'JSONRPC', version })

describe('the interface that is chosen', () => {
  test.each<[name: string, card: unknown, choice: unknown]>([
    [
      'the first of version 1.0 that the card names',
      newCard(
        offer('https://chef.example/rest', 'HTTP+JSON', '1.0'),
        offer('https://chef.example/rpc', 'JSONRPC', '1.0'),
      ),
      { url: 'https://chef.example/rest', binding: 'HTTP+JSON', version: '1.0' },
    ],
    [
      'version 1.0 though 0.3 comes first',
      newCard(
        offer('https://chef.example/old', 'JSONRPC', '0.3'),
        offer('https://chef.example/rpc', 'JSONRPC', '1.0'),
      ),
      rpc('1.0'),
    ],
    [
      'one that Rouse speaks though another comes first',
      newCard(
        offer('chef.example:443', 'GRPC', '1.0'),
        offer('https://chef.example/rpc', 'jsonrpc', '1.0.1'),
      ),
      rpc('1.0'),
    ],
    [
      '1.0 where a 1.0 card leaves the version out',
      newCard(offer('https://chef.example/rpc', 'JSONRPC')),
      rpc('1.0'),
    ],
    [
      'the tenant that belongs to it',
      newCard(offer('https://chef.example/rpc', 'JSONRPC', '1.0', 'kitchen')),
      { ...rpc('1.0'), agentTenant: 'kitchen' },
    ],
    [
      'no tenant where it is empty',
      newCard(offer('https://chef.example/rpc', 'JSONRPC', '1.0', '')),
      rpc('1.0'),
    ],
    ['the main URL of a 0.3 card', oldCard, rpc('0.3')],
    ['JSONRPC where a 0.3 card does not say', { url: 'https://chef.example/rpc', capabilities }, rpc('0.3')],
    ['the same for the 0.2 series', { ...oldCard, protocolVersion: '0.2.6' }, rpc('0.3')],
    [
      'the additional one where the main one is gRPC',
      { ...oldCard, preferredTransport: 'GRPC' },
      { url: 'https://chef.example/rest', binding: 'HTTP+JSON', version: '0.3' },
    ],
    [
      'the newer half of a hybrid card',
      { ...oldCard, ...newCard(offer('https://chef.example/v1', 'JSONRPC', '1.0')) },
      { url: 'https://chef.example/v1', binding: 'JSONRPC', version: '1.0' },
    ],
    [
      'the older half of a hybrid card whose newer half is gRPC',
      { ...oldCard, ...newCard(offer('chef.example:443', 'GRPC', '1.0')) },
      rpc('0.3'),
    ],
  ])('is %s', (_name, card, choice) => {
    expect(choiceOf(card)).toEqual(choice)
  })

  test.each<[name: string, card: unknown, why: RegExp]>([
    ['only gRPC', newCard(offer('chef.example:443', 'GRPC', '1.0')), /offers GRPC 1\.0 only/],
    [
      'only a version of the future',
      newCard(offer('https://chef.example', 'JSONRPC', '2.0')),
      /JSONRPC 2\.0 only/,
    ],
    ['a URL that is no web address', newCard(offer('ftp://chef.example', 'JSONRPC', '1.0')), /only/],
    ['no interface', newCard(), /names no interface/],
    [
      'entries that are none',
      newCard(null, 'x', { url: 7, protocolBinding: 'JSONRPC' }),
      /names no interface/,
    ],
    ['not an object', [], /no JSON object/],
    ['nothing', undefined, /no JSON object/],
  ])('is none for a card with %s', (_name, card, why) => {
    expect(choiceOf(card)).toMatch(why)
  })
})

test('an agent pushes and streams only if its card says true', () => {
  const flags = (said: unknown): unknown => {
    const read = readCard({ ...oldCard, capabilities: said })
    return read.ok && [read.card.pushes, read.card.streams]
  }
  expect(flags({ pushNotifications: true, streaming: true })).toEqual([true, true])
  expect(flags({ pushNotifications: 'yes' })).toEqual([false, false])
  expect(flags(undefined)).toEqual([false, false])
})

describe('fetching', async () => {
  const host = await startReceiver()
  afterAll(host.stop)
  const { origin } = host
  const body = JSON.stringify(oldCard)
  beforeEach(() => {
    host.requests.length = 0
  })
  const paths = (): string[] => host.requests.map(({ url }) => url)

  test('a card’s own address is used as it is, and says that we speak 1.0', async () => {
    host.answer({ body })
    const fetched = await fetchCard(loopbackNet, `${origin}/chef.json?v=2`)
    expect(fetched).toMatchObject({ ok: true, cardUrl: `${origin}/chef.json?v=2`, card: { name: 'Chef' } })
    expect(host.requests).toMatchObject([{ url: '/chef.json?v=2', headers: { 'a2a-version': '1.0' } }])
  })

  test('below an agent’s address the two well-known paths are tried in turn', async () => {
    host.answer(({ url }) => (url.endsWith('/agent.json') ? { body } : { status: 404 }))
    const fetched = await fetchCard(loopbackNet, `${origin}/agents/chef/`)
    expect(fetched).toMatchObject({ cardUrl: `${origin}/agents/chef/.well-known/agent.json` })
    expect(paths()).toEqual([
      '/agents/chef/.well-known/agent-card.json',
      '/agents/chef/.well-known/agent.json',
    ])
    await fetchCard(loopbackNet, origin)
    expect(paths()[2]).toBe('/.well-known/agent-card.json')
  })

  test('case 144: a card that has moved is not followed', async () => {
    host.answer({ status: 301, headers: { location: '/elsewhere.json' } })
    const fetched = await fetchCard(loopbackNet, `${origin}/chef.json`)
    expect(fetched).toEqual({ ok: false, code: 'agent_card_unreadable', why: expect.stringMatching(/moved/) })
    expect(paths()).toEqual(['/chef.json'])
  })

  test.each<[name: string, answer: Parameters<typeof host.answer>[0], code: string, why: RegExp]>([
    ['a 401', { status: 401 }, 'agent_card_unreadable', /HTTP 401/],
    ['a web page', { body: '<html>' }, 'agent_card_unreadable', /not JSON/],
    ['a card without interfaces', { body: '{"name":"Chef"}' }, 'agent_card_unreadable', /no interface/],
    ['two megabytes', { body: `"${'x'.repeat(2 ** 21)}"` }, 'agent_card_unreadable', /too large/],
    ['a reset', { fault: 'reset' }, 'agent_unreachable', /./],
  ])('%s is refused by its own code', async (_name, answer, code, why) => {
    host.answer(answer)
    const fetched = await fetchCard(loopbackNet, `${origin}/chef.json`)
    expect(fetched).toEqual({ ok: false, code, why: expect.stringMatching(why) })
  })

  test.each(['http://10.0.0.1/card.json', 'not an address', 'ftp://chef.example/card.json'])(
    'the address %s is not called',
    async address => {
      expect(await fetchCard(loopbackNet, address)).toMatchObject({ ok: false, code: 'address_not_allowed' })
    },
  )
})
