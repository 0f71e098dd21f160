// Subscribing: what is handed out, what is registered at the agent, what may be repeated, and how it ends.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Caller, callAgent } from '../../infra/local/agent/caller.ts'
import { variants } from '../../infra/local/agent/cards.ts'
import {
  type Api,
  configsAt,
  expectDiscreet,
  expectProblem,
  type Fields,
  type Made,
  startApi,
  unread,
} from '../support/api.ts'

let api: Api
let caller: Caller
/** What a webhook is sent to; nothing is sent here. */
let hook: string
/** Keeps the queues' messages where they are. */
let still = false

beforeAll(async () => {
  api = await startApi({
    faults: call => (still ? unread(call) : undefined),
  })
  caller = await callAgent(api.agent.cardUrl())
  hook = `${api.agent.origin}/woken`
  await api.must('PUT', '/v1/agents/demo', { cardUrl: api.agent.cardUrl(), maxConcurrentCalls: 100 })
  await api.must('PUT', '/v1/targets/phone', { url: hook })
})

afterAll(() => api.stop())

const post = (body: unknown) => api.ask<Made>('POST', '/v1/subscriptions', { body })
const put = (id: string, body: unknown) => api.ask<Made>('PUT', `/v1/subscriptions/${id}`, { body })
const get = (id: string) => api.ask('GET', `/v1/subscriptions/${id}`)
const wish: Fields = { agent: 'demo', client: 'me' }

/** All of an agent's subscriptions as they are listed, however many pages that takes. */
async function listed(query = ''): Promise<Fields[]> {
  const found: Fields[] = []
  let after = ''
  do {
    const path = `/v1/subscriptions?limit=20${query}${after && `&after=${after}`}`
    const page = await api.must<{ subscriptions: Fields[]; next?: string }>('GET', path)
    found.push(...page.subscriptions)
    after = page.next ?? ''
  } while (after !== '')
  return found
}

describe('the push config', () => {
  const proofs: [name: string, verification: Fields | undefined, fields: string[], scheme?: string][] = [
    ['unless said otherwise', undefined, ['authentication', 'id', 'token', 'url'], 'Bearer'],
    ['with a token', { token: true }, ['id', 'token', 'url']],
    ['with Basic', { authorization: 'Basic' }, ['authentication', 'id', 'url'], 'Basic'],
    ['with a JWT', { jwt: { jwksUrl: 'http://127.0.0.1:9/', issuer: 'i' } }, ['id', 'url']],
  ]
  const versions = [
    ['1.0', (scheme: string) => ({ scheme })],
    ['0.3', (scheme: string) => ({ schemes: [scheme] })],
  ] as const

  describe.each(versions)('for an agent of %s', (version, schemes) => {
    test.each(proofs)(
      'holds what its proofs need and nothing else: %s',
      async (_name, verification, fields, scheme) => {
        const agent = `proves-${version}-${fields.length}-${scheme ?? 'none'}`
        const cardUrl = api.agent.cardUrl({ version })
        await api.must('PUT', `/v1/agents/${agent}`, { cardUrl, ...(verification && { verification }) })
        const { pushNotificationConfig: config, ...made } = (await post({ ...wish, agent })).body
        expect(Object.keys(config).sort()).toEqual(fields)
        expect(config).toEqual(made.pushNotificationConfigs[version])
        expect(config.id).toBe(made.id)
        expect(config.url).toMatch(new RegExp(`^${api.local.hookOrigin}/hooks/[\\w-]{34}$`))
        if (scheme !== undefined)
          expect(config.authentication).toEqual({
            ...schemes(scheme),
            credentials: expect.stringMatching(/^[\w-]{43}$|=$/),
          })
      },
    )
  })

  test('has secrets of its own in each subscription', async () => {
    const made = await Promise.all([post(wish), post(wish)])
    const [one, other] = made.map(({ body }) => body.pushNotificationConfig)
    expect(one?.url).not.toBe(other?.url)
    expect(one?.token).not.toBe(other?.token)
    expect(one?.authentication?.credentials).not.toBe(other?.authentication?.credentials)
    expect(one?.authentication?.credentials).not.toBe(one?.token)
  })

  test('is shown to whoever asks for it, not to whoever reads', async () => {
    const { body } = await post({
      ...wish,
      targets: [{ url: hook }],
      credentials: { type: 'bearer', token: 'as-this-principal' },
    })
    const { url, token = '', authentication } = body.pushNotificationConfig
    const secrets = [
      url.split('/').at(-1) ?? '',
      token,
      authentication?.credentials ?? '',
      'as-this-principal',
      body.targets[0]?.secret ?? '',
    ]
    expect(secrets.every(secret => secret.length > 10)).toBe(true)
    for (const path of [
      `/v1/subscriptions/${body.id}`,
      '/v1/subscriptions?limit=100',
      '/v1/targets?limit=100',
      '/v1/agents/demo',
    ]) {
      const { text } = await api.ask('GET', path)
      expect(secrets.filter(secret => text.includes(secret))).toEqual([])
    }
  })
})

describe.each(
  variants.map(
    one => [`${one.version} over ${one.binding}`, one.pushes ? 'registered' : 'unsupported', one] as const,
  ),
)('a subscription to a known task of an agent of %s', (_name, status, variant) => {
  test(`is ${status}, and looks at once`, async () => {
    const agent = `of-${variant.version}-${variant.binding === 'JSONRPC' ? 'rpc' : 'rest'}-${variant.pushes}`
    const cardUrl = api.agent.cardUrl(variant)
    await api.must('PUT', `/v1/agents/${agent}`, { cardUrl })
    const taskId = await (await callAgent(cardUrl)).send('work')
    const { body } = await post({ ...wish, agent, taskId })
    expect(body).toMatchObject({ status: 'active', registration: { status } })
    const { url, id } = body.pushNotificationConfig
    if (variant.pushes) expect(await configsAt(api, taskId)).toEqual([{ url, id }])
    await api.local.drain()
    expect(await api.must('GET', `/v1/tasks/${agent}/${taskId}`)).toMatchObject({ state: 'working', rev: 1 })
    await api.must('DELETE', `/v1/subscriptions/${body.id}`)
    if (variant.pushes) expect(await configsAt(api, taskId)).toEqual([])
  })
})

describe('a subscription', () => {
  test('is shown as it was asked for, with what was left out filled in', async () => {
    const { body } = await post(wish)
    expect((await get(body.id)).body).toEqual({
      ...{
        id: body.id,
        status: 'active',
        agent: 'demo',
        scope: 'task',
        principal: 'agent',
        client: 'me',
        targets: [],
      },
      states: ['completed', 'failed', 'canceled', 'rejected', 'input-required', 'auth-required'],
      hasCredentials: false,
      registration: { status: 'handed_out', says: expect.any(String) },
      partialWork: 'expose',
      traceparent: expect.any(String),
      generation: 1,
      pauseTimeoutSeconds: 86_400,
      onOverdue: 'tell',
      createdAt: expect.any(Number),
      expiresAt: expect.any(Number),
      bindBy: expect.any(Number),
    })
  })

  test('of a whole agent has no task', async () => {
    const { body } = await put('wide', { ...wish, scope: 'agent' })
    expect(body).toMatchObject({ scope: 'agent', registration: { status: 'handed_out' } })
    expect(body).not.toHaveProperty('bindBy')
    expectProblem(api, await put('wider', { ...wish, scope: 'agent', taskId: 't' }), 'invalid', ['/taskId'])
    const bind = await api.ask('POST', '/v1/subscriptions/wide/bind', { body: { taskId: 't' } })
    expectProblem(api, bind, 'conflict')
  })

  test('wakes targets by name and targets given with it', async () => {
    const { body } = await put('targets', { ...wish, targets: ['phone', { url: hook }] })
    expect(body.targets).toEqual([
      expect.objectContaining({ target: 'phone', url: hook }),
      expect.objectContaining({
        target: expect.stringMatching(/^inline_/),
        secret: expect.stringMatching(/^whsec_/),
      }),
    ])
    expect(body.targets[0]).not.toHaveProperty('secret')
    const inline = body.targets[1]?.target ?? ''
    expect((await get('targets')).body.targets).toEqual(['phone', inline])
    // It ends with its own subscription, so no other may count on it.
    expectProblem(api, await post({ ...wish, targets: [inline] }), 'invalid', ['/targets/0'])
    await api.must('DELETE', '/v1/subscriptions/targets')
    expect((await api.ask('GET', `/v1/targets/${inline}`)).status).toBe(404)
    expect((await api.ask('GET', '/v1/targets/phone')).status).toBe(200)
    const left = (await api.items()).filter(({ pk }) => !String(pk).startsWith('S#'))
    expect(left.filter(item => JSON.stringify(item).includes(inline))).toEqual([])
  })

  test('expires when its time is over, whatever the table still holds', async () => {
    await put('brief', { ...wish, ttlSeconds: 60 })
    api.local.advance(61_000)
    expect((await get('brief')).body.status).toBe('expired')
    const late = { credentials: { type: 'bearer', token: 'too-late-now' } }
    expectProblem(
      api,
      await api.ask('PUT', '/v1/subscriptions/brief/credentials', { body: late }),
      'conflict',
    )
    const anew = await put('brief', { ...wish, client: 'heir', ttlSeconds: 120 })
    expect(anew.body.status).toBe('active')
    expect((await listed('&client=me')).map(({ id }) => id)).not.toContain('brief')
    expect((await listed('&client=heir')).map(({ id }) => id)).toEqual(['brief'])
  })

  test('takes new credentials while it lives, and looks again', async () => {
    const taskId = await caller.send('work')
    await put('renewed', { ...wish, taskId })
    await api.local.drain()
    const looks = api.agent.calls('GetTask')
    api.local.advance(2000)
    const body = { credentials: { type: 'apiKey', in: 'header', name: 'X-Key', value: 'renewed-9f2c7a41' } }
    const answer = await api.ask('PUT', '/v1/subscriptions/renewed/credentials', { body })
    expect({ status: answer.status, text: answer.text }).toEqual({ status: 204, text: '' })
    await api.local.drain()
    expect(api.agent.calls('GetTask')).toBe(looks + 1)
    expect((await get('renewed')).body.hasCredentials).toBe(true)
  })
})

describe('the same request again', () => {
  test('gives the same answer and makes nothing new', async () => {
    const taskId = await caller.send('work')
    const asked = { ...wish, taskId, targets: [{ url: hook }, 'phone'], ttlSeconds: 3600 }
    const first = await put('same', asked)
    await api.local.drain()
    const before = await api.items()
    api.local.advance(5000)
    const again = await put('same', { ...asked, states: undefined })
    expect(again.body).toEqual(first.body)
    expect((await configsAt(api, taskId)).length).toBe(1)
    await api.local.drain()
    // The look that follows is all that changes, and with it the agent's turns.
    const stable = (items: Fields[]) =>
      items.filter(({ lookAt, looked, sk }) => lookAt === undefined && looked === undefined && sk !== 'calls')
    expect(stable(await api.items())).toEqual(stable(before))
  })

  test('is the same with a webhook secret of the caller', async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
    const asked = { ...wish, targets: [{ url: hook, secret }] }
    const first = await put('own-secret', asked)
    expect(first.body.targets[0]?.secret).toBe(secret)
    expect((await put('own-secret', asked)).body).toEqual(first.body)
  })

  test('makes one subscription when it comes ten times at once', async () => {
    const asked = { ...wish, targets: [{ url: hook }] }
    const answers = await Promise.all(Array.from({ length: 10 }, () => put('at-once', asked)))
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect(new Set(answers.map(({ body }) => body.pushNotificationConfig.url)).size).toBe(1)
    expect(new Set(answers.map(({ body }) => body.targets[0]?.secret)).size).toBe(1)
    const items = await api.items()
    expect(items.filter(({ pk, id }) => String(pk).startsWith('S#') && id === 'at-once')).toHaveLength(1)
  })

  const others: [name: string, more: Fields][] = [
    ['another address', { targets: [{ url: 'http://127.0.0.1:9/elsewhere' }] }],
    [
      'another secret',
      {
        targets: [{ url: 'http://127.0.0.1:9/', secret: `whsec_${Buffer.alloc(24, 1).toString('base64')}` }],
      },
    ],
    ['another client', { client: 'you' }],
    ['another task', { taskId: 'another' }],
    ['another lifetime', { ttlSeconds: 61 }],
    ['other states', { states: ['completed'] }],
    ['another principal', { principal: 'alice' }],
  ]
  test.each(others)('but for %s is refused and changes nothing', async (_name, more) => {
    const asked = { ...wish, targets: [{ url: 'http://127.0.0.1:9/' }] }
    await put('taken', asked)
    const before = await api.items()
    expectProblem(api, await put('taken', { ...asked, ...more }), 'conflict')
    expect(await api.items()).toEqual(before)
  })

  test('but for defaults that are spelled out is the same, and for others it is not', async () => {
    const spelled = { partialWork: 'expose', onOverdue: 'tell', pauseTimeoutSeconds: 86_400 }
    await put('spelled', wish)
    expect((await put('spelled', { ...wish, ...spelled })).status).toBe(200)
    expectProblem(api, await put('spelled', { ...wish, partialWork: 'withhold' }), 'conflict')
  })
})

describe('binding', () => {
  const bind = (id: string, taskId: string) =>
    api.ask('POST', `/v1/subscriptions/${id}/bind`, { body: { taskId } })

  test('registers at the agent, may be repeated, and is for good', async () => {
    const [taskId, other] = [await caller.send('work'), await caller.send('work')]
    const { body } = await put('binds', wish)
    const bound = await bind('binds', taskId)
    expect(bound.body).toMatchObject({ id: 'binds', taskId, registration: { status: 'registered' } })
    expect(bound.body).not.toHaveProperty('bindBy')
    expect(await configsAt(api, taskId)).toEqual([{ url: body.pushNotificationConfig.url, id: 'binds' }])
    expect((await bind('binds', taskId)).body).toEqual(bound.body)
    expectProblem(api, await bind('binds', other), 'conflict')
    // A repeat of the first request finds it bound.
    expect((await put('binds', wish)).body).toMatchObject({ taskId, registration: { status: 'registered' } })
  })

  test('is told in the words of the agent when the agent does not know the task', async () => {
    await put('strays', wish)
    const { body } = await bind('strays', 'no-such-task')
    expect(body.registration).toMatchObject({ status: 'failed', detail: expect.stringMatching(/not found/i) })
  })
})

test('a task takes fifty subscriptions; the next is refused and leaves nothing', async () => {
  await api.must('PUT', '/v1/agents/quiet', { cardUrl: api.agent.cardUrl({ pushes: false }) })
  const taskId = 'crowded'
  still = true
  for (let at = 0; at < 50; at++)
    await api.must('PUT', `/v1/subscriptions/crowd-${at}`, { ...wish, agent: 'quiet', taskId })
  await put('waits', { ...wish, agent: 'quiet' })
  const before = (await api.items()).filter(({ pk }) => !String(pk).startsWith('S#'))
  const late = { ...wish, agent: 'quiet', taskId, targets: [{ url: hook }] }
  expectProblem(api, await put('late', late), 'limit_reached')
  expectProblem(api, await get('late'), 'not_found')
  expect((await api.items()).filter(({ pk }) => !String(pk).startsWith('S#'))).toEqual(before)
  const bind = await api.ask('POST', '/v1/subscriptions/waits/bind', { body: { taskId } })
  expectProblem(api, bind, 'limit_reached')
  expect((await get('waits')).body).not.toHaveProperty('taskId')
  expect(await listed('&agent=quiet')).toHaveLength(51)
  still = false
})

test('lists of many subscriptions give each exactly once, by agent, by client and in all', async () => {
  await api.must('PUT', '/v1/agents/busy', { cardUrl: api.agent.cardUrl() })
  const ids = Array.from({ length: 25 }, (_, at) => `many-${at}`)
  for (const [at, id] of ids.entries())
    await api.must('PUT', `/v1/subscriptions/${id}`, { ...wish, agent: 'busy', client: `of-${at % 2}` })
  for (const [query, expected] of [
    ['agent=busy', ids],
    ['client=of-0', ids.filter((_, at) => at % 2 === 0)],
  ] as const) {
    const seen: unknown[] = []
    let after: string | undefined
    do {
      const path: string = `/v1/subscriptions?${query}&limit=4${after === undefined ? '' : `&after=${after}`}`
      const page = await api.must<{ subscriptions: Fields[]; next?: string }>('GET', path)
      expect(page.subscriptions.length).toBeLessThanOrEqual(4)
      seen.push(...page.subscriptions.map(({ id }) => id))
      after = page.next
    } while (after !== undefined)
    expect(seen.sort()).toEqual([...expected].sort())
  }
  const whole = (await listed()).map(({ id }) => id)
  expect(ids.every(id => whole.includes(id))).toBe(true)
  expect(new Set(whole).size).toBe(whole.length)
})

test('an ended subscription is gone from every list and shown no more', async () => {
  await put('ends', { ...wish, client: 'leaver' })
  expect((await api.ask('DELETE', '/v1/subscriptions/ends')).body).toMatchObject({
    id: 'ends',
    status: 'deleted',
  })
  expectProblem(api, await get('ends'), 'not_found')
  expectProblem(api, await api.ask('DELETE', '/v1/subscriptions/ends'), 'not_found')
  expect(await listed('&client=leaver')).toEqual([])
  const anew = await put('ends', { ...wish, client: 'leaver' })
  expect(anew.body.status).toBe('active')
})

test('no log line of all this holds a secret', () => {
  expectDiscreet(api)
})
