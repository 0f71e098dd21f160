// Where secrets may be: handed out once, sealed or hashed at rest, and in no log line, queue message or other answer, whatever goes wrong.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { callAgent } from '../../infra/local/agent/caller.ts'
import { type DemoAgent, startAgent } from '../../infra/local/agent.ts'
import type { Call, Fault } from '../../infra/local/wire.ts'
import { type Api, type Exchange, expectDiscreet, type Made, secretsIn, startApi } from '../support/api.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'

let api: Api
/** Signs its pushes. */
let signer: DemoAgent
/** Repeats all that it is told in what it answers, as an agent and as a webhook. */
let parrot: Receiver
let plan: (call: Call) => Fault | undefined = () => undefined
const messages: string[] = []
const printed: string[] = []

const agentSecrets = {
  bearer: 'bearer-secret-9f2c7a41d0b84e6b',
  basic: 'basic-secret-9f2c7a41d0b84e6b',
  header: 'header-secret-9f2c7a41d0b84e6b',
  query: 'query-secret-9f2c7a41d0b84e6b',
  renewed: 'renewed-secret-9f2c7a41d0b84e6b',
}

const kinds = [
  { type: 'bearer', token: agentSecrets.bearer },
  { type: 'basic', username: 'rouse', password: agentSecrets.basic },
  { type: 'apiKey', in: 'header', name: 'X-Api-Key', value: agentSecrets.header },
  { type: 'apiKey', in: 'query', name: 'key', value: agentSecrets.query },
]

/** Secrets of ours that are no field of any request: they stand inside others. */
const hidden = ['path-secret-9f2c7a41', Buffer.from(`rouse:${agentSecrets.basic}`).toString('base64')]

beforeAll(async () => {
  for (const method of ['log', 'info', 'warn', 'error', 'debug'] as const)
    vi.spyOn(console, method).mockImplementation((...words) => void printed.push(words.map(String).join(' ')))
  parrot = await startReceiver()
  parrot.answer(({ headers, body, url }) => ({
    status: 400,
    headers: { 'x-heard': JSON.stringify(headers) },
    body: JSON.stringify({
      error: { code: -32000, message: `I heard ${url} ${JSON.stringify(headers)} ${body}` },
    }),
  }))
  api = await startApi({
    faults: call => plan(call),
    onCall: ({ operation, body }) => {
      if (operation === 'SendMessage') messages.push(JSON.stringify(body))
    },
  })
  signer = await startAgent({ now: api.local.now, sign: 'ES256' })
})

afterAll(async () => {
  vi.restoreAllMocks()
  await Promise.all([api.stop(), signer.stop(), parrot.stop()])
})

const subscribe = (body: unknown) => api.must<Made>('POST', '/v1/subscriptions', body)
const webhook = () => `${parrot.origin}/services/path-secret-9f2c7a41`

/** Routes that hand secrets out, to whoever just made what they belong to. */
const handsOut = ({ method, path }: Exchange): boolean =>
  (method === 'POST' && ['/v1/keys', '/v1/subscriptions'].includes(path)) ||
  (method === 'POST' && /^\/v1\/targets\/[^/]+\/rotate$/.test(path)) ||
  (method === 'PUT' && /^\/v1\/(?:targets|subscriptions)\/[^/]+$/.test(path))

test('agents that repeat what they were told, in any kind of credentials', async () => {
  for (const [at, credentials] of kinds.entries()) {
    const agent = `parrot-${at}`
    const hand = { url: `${parrot.origin}/a2a`, binding: at % 2 ? 'HTTP+JSON' : 'JSONRPC', version: '1.0' }
    await api.must('PUT', `/v1/agents/${agent}`, { ...hand, credentials })
    const made = await subscribe({ agent, client: 'me', taskId: `t-${at}`, targets: [{ url: webhook() }] })
    expect(made.registration).toMatchObject({ status: 'failed', detail: expect.stringContaining('I heard') })
    await api.local.drain()
    await api.must('GET', `/v1/subscriptions/${made.id}`)
    await api.must('GET', `/v1/tasks/${agent}/t-${at}`)
    const renewed = { credentials: { type: 'bearer', token: agentSecrets.renewed } }
    await api.must('POST', `/v1/subscriptions/${made.id}/bind`, { taskId: `t-${at}` })
    await api.ask('PUT', `/v1/subscriptions/${made.id}/credentials`, { body: renewed })
    await api.local.drain()
  }
  expect(api.lines.filter(line => line.includes('look.failed')).length).toBeGreaterThanOrEqual(4)
})

test('signed pushes, genuine and forged, and wakes that fail', async () => {
  const verification = { jwt: { jwksUrl: signer.jwksUrl, issuer: signer.origin } }
  await api.must('PUT', '/v1/agents/signer', { cardUrl: signer.cardUrl(), verification })
  const taskId = await (await callAgent(signer.cardUrl())).send('work')
  const secret = `whsec_${Buffer.alloc(32, 3).toString('base64')}`
  const made = await subscribe({
    agent: 'signer',
    client: 'me',
    taskId,
    targets: [{ url: webhook(), secret }],
  })
  await signer.release(taskId)
  // Past the window in which a task is looked at once.
  api.local.advance(2000)
  await api.local.drain()
  expect(parrot.requests.some(({ headers }) => headers['webhook-signature'] !== undefined)).toBe(true)
  const forged = `eyJhbGciOiJFUzI1NiIsImtpZCI6ImEifQ.${'e'.repeat(40)}.${'s'.repeat(86)}`
  for (const authorization of [`Bearer ${forged}`, `Bearer ${api.key}`, 'Basic cm91c2U6cGFzcw==', ''])
    await push(made, { authorization })
  const { wakes } = await api.must<{ wakes: { id: string }[] }>('GET', `/v1/wakes?task=${taskId}`)
  await api.must('GET', `/v1/wakes/${wakes[0]?.id}`)
})

test('pushes with handed out secrets, right and wrong', async () => {
  await api.must('PUT', '/v1/agents/demo', { cardUrl: api.agent.cardUrl() })
  const taskId = await (await callAgent(api.agent.cardUrl())).send('work')
  const made = await subscribe({ agent: 'demo', client: 'me', taskId })
  const { token = '', authentication } = made.pushNotificationConfig
  await push(made, { 'x-a2a-notification-token': token })
  await push(made, { 'x-a2a-notification-token': `${token}x` })
  await push(made, {
    authorization: `Bearer ${authentication?.credentials}`,
    'a2a-notification-token': 'wrong-token',
  })
  await api.agent.release(taskId)
  await api.local.drain()
  await api.ask('DELETE', `/v1/subscriptions/${made.id}`)
  await push(made, { 'x-a2a-notification-token': token })
})

test('secrets in wrong places', async () => {
  const { operatorKey } = api.local
  for (const path of [
    `/v1/agents/${api.key}`,
    `/v1/agents?key=${api.key}`,
    `/v1/wakes/${operatorKey}`,
    `/${api.key}`,
  ])
    await api.ask('GET', path)
  await api.ask('GET', '/v1/agents', { key: '', headers: { authorization: `Basic ${api.key}` } })
  await api.ask('GET', '/v1/agents', { key: `${api.key}x` })
  const broken = `{"cardUrl":"${parrot.origin}","credentials":{"type":"bearer","token":"${agentSecrets.bearer}"`
  await api.ask('PUT', '/v1/agents/broken', { body: broken })
  const named = { cardUrl: `https://rouse:${agentSecrets.basic}@agent.example/` }
  await api.ask('PUT', '/v1/agents/named', { body: named })
})

test('services that fail at every door', async () => {
  const taskId = await (await callAgent(api.agent.cardUrl())).send('work')
  const body = { agent: 'demo', client: 'me', taskId, targets: [{ url: webhook() }], credentials: kinds[0] }
  const statuses: number[] = []
  for (const door of ['api', 'look', 'deliver', 'receive']) {
    const made = await subscribe({ ...body, principal: door })
    plan = ({ who, operation }) => (who === door && operation !== 'ReceiveMessage' ? 'fail_after' : undefined)
    statuses.push((await api.ask('PUT', `/v1/subscriptions/fails-${door}`, { body })).status)
    await push(made, { 'x-a2a-notification-token': made.pushNotificationConfig.token ?? '' })
    plan = () => undefined
    await api.local.drain()
  }
  expect(statuses).toContain(503)
  expect(api.lines.filter(line => line.includes('"level":"error"'))).not.toEqual([])
})

test('no log line and no console holds a secret of all this', () => {
  expectDiscreet(api)
  const secrets = [...secretsIn(api.exchanges), ...Object.values(agentSecrets), ...hidden]
  expect(secrets.length).toBeGreaterThan(40)
  for (const texts of [api.lines, printed])
    expect(texts.filter(text => secrets.some(secret => text.includes(secret)))).toEqual([])
})

test('no queue message holds a secret or a hook', () => {
  const secrets = [...secretsIn(api.exchanges), ...Object.values(agentSecrets), ...hidden, 'eyJ', '/hooks/']
  expect(messages.length).toBeGreaterThan(10)
  expect(messages.filter(text => secrets.some(secret => text.includes(secret)))).toEqual([])
})

test('no answer holds a secret but those that hand it out', async () => {
  for (const path of ['agents', 'targets', 'subscriptions', 'keys', 'wakes?state=failed&'])
    await api.must('GET', `/v1/${path.replace(/^(\w+)$/, '$1?')}limit=100`)
  const handed = [...secretsIn(api.exchanges)]
  const leaks = api.exchanges
    .filter(one => !handsOut(one))
    .filter(({ answered }) => handed.some(secret => answered.includes(secret)))
  expect(leaks.map(({ method, path }) => `${method} ${path}`)).toEqual([])
  const own = [...Object.values(agentSecrets), ...hidden.slice(1)]
  expect(api.exchanges.filter(({ answered }) => own.some(secret => answered.includes(secret)))).toEqual([])
})

test('the table holds no secret in the clear but the hooks that it is asked for by', async () => {
  const items = JSON.stringify(await api.items())
  const hooks = new Set(
    api.exchanges.flatMap(({ answered }) => answered.match(/(?<=\/hooks\/)[\w-]{34}/g) ?? []),
  )
  const secrets = [...secretsIn(api.exchanges), ...Object.values(agentSecrets), api.local.operatorKey]
  expect(secrets.filter(secret => !hooks.has(secret) && items.includes(secret))).toEqual([])
})

/** Pushes that the task goes on, with these headers. */
async function push(
  { pushNotificationConfig: { url } }: Made,
  headers: Record<string, string>,
): Promise<void> {
  const body = JSON.stringify({
    statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } },
  })
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
  await answer.body?.cancel()
}
