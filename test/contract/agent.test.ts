// The demo agent is a real A2A server to our client, in every version and binding, and lies only when it is told to.
import { createHash } from 'node:crypto'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { callAgent } from '../../infra/local/agent/caller.ts'
import { startAgent } from '../../infra/local/agent.ts'
import { chooseInterface, fetchCard } from '../../shared/a2a/card.ts'
import { getTask, listTasks } from '../../shared/a2a/client.ts'
import { registerConfig, removeConfig } from '../../shared/a2a/configs.ts'
import type { Endpoint } from '../../shared/a2a/endpoint.ts'
import { parseBody, readPush } from '../../shared/a2a/read.ts'
import type { NetRequest } from '../../shared/net.ts'
import { loopbackNet as net } from '../support/net.ts'
import { startReceiver } from '../support/receiver.ts'

const hook = await startReceiver()
const agent = await startAgent()
afterAll(async () => {
  await agent.stop()
  await hook.stop()
})
beforeEach(() => {
  hook.requests.length = 0
  hook.answer({})
  agent.lie(undefined)
  agent.require(undefined)
  agent.mute(false)
})

async function endpointOf(cardUrl: string, bearer?: string): Promise<Endpoint> {
  const fetched = await fetchCard(net, cardUrl)
  const chosen = fetched.ok ? chooseInterface(fetched.card) : fetched
  if (!chosen.ok) throw new Error(chosen.why)
  return { ...chosen.choice, ...(bearer !== undefined && { credentials: { type: 'bearer', token: bearer } }) }
}

const stateOf = async (endpoint: Endpoint, taskId: string): Promise<string> => {
  const looked = await getTask(net, endpoint, taskId, 0)
  return looked.ok ? looked.task.state : looked.trouble
}

/** What arrived at the hook since the last time, as our reader reads it. */
const pushed = (): unknown[] =>
  hook.requests.splice(0).map(({ body }) => {
    const parsed = parseBody(Buffer.from(body))
    const reading = parsed.ok ? readPush(parsed.value) : parsed
    return reading.ok ? [reading.push.taskId, reading.push.state] : reading.why
  })

const config = { url: `${hook.origin}/hooks/h-1`, id: 'cfg-1', token: 'tok-1' }

const pairs = (['1.0', '0.3'] as const).flatMap(version =>
  (['JSONRPC', 'HTTP+JSON'] as const).map(binding => ({ version, binding })),
)

describe.each(pairs)('A2A $version over $binding', ({ version, binding }) => {
  const cardUrl = agent.cardUrl({ version, binding })

  test('its card leads to it', async () => {
    expect(await endpointOf(cardUrl)).toEqual({
      url: agent.endpointUrl({ version, binding }),
      version,
      binding,
    })
  })

  test('a task can be looked at, and its states are pushed to a registered config until it is removed', async () => {
    const endpoint = await endpointOf(cardUrl)
    const { send } = await callAgent(cardUrl)
    const taskId = await send('work on it')
    expect(await stateOf(endpoint, taskId)).toBe('working')
    expect(await registerConfig(net, endpoint, taskId, config)).toEqual({ status: 'registered' })
    await agent.setState(taskId, 'input-required', { text: 'Which one?' })
    expect(hook.requests[0]?.headers['x-a2a-notification-token']).toBe('tok-1')
    expect(pushed()).toEqual([[taskId, 'input-required']])
    expect(await stateOf(endpoint, taskId)).toBe('input-required')
    expect(await removeConfig(net, endpoint, taskId, 'cfg-1')).toEqual({ ok: true })
    await agent.setState(taskId, 'completed')
    expect(pushed()).toEqual([])
    expect(await stateOf(endpoint, taskId)).toBe('completed')
  })

  test('credentials of the config travel in the Authorization header', async () => {
    const endpoint = await endpointOf(cardUrl)
    const { send } = await callAgent(cardUrl)
    const taskId = await send('work on it')
    const authentication = { scheme: 'Bearer', credentials: 'cred-1' }
    await registerConfig(net, endpoint, taskId, { ...config, authentication })
    await agent.release(taskId)
    expect(hook.requests.at(-1)?.headers.authorization).toBe('Bearer cred-1')
    expect(pushed().at(-1)).toEqual([taskId, 'completed'])
  })

  test('another principal sees nothing, and a wrong bearer token nothing at all', async () => {
    const { send } = await callAgent(cardUrl, 'alice.1')
    const taskId = await send('work on it')
    const ask = async (bearer?: string): Promise<string> => stateOf(await endpointOf(cardUrl, bearer), taskId)
    expect(await ask('alice.2')).toBe('working')
    expect(await ask('bob.1')).toBe('not_found')
    expect(await ask()).toBe('not_found')
    agent.require('alice.2')
    expect(await ask('alice.2')).toBe('working')
    expect(await ask('alice.1')).toBe('unauthorized')
  })

  test('a task that is not there and an agent that cannot push say so', async () => {
    const endpoint = await endpointOf(cardUrl)
    expect(await stateOf(endpoint, 'nowhere')).toBe('not_found')
    expect(await registerConfig(net, endpoint, 'nowhere', config)).toMatchObject({ status: 'failed' })
    const mute = await endpointOf(agent.cardUrl({ version, binding, pushes: false }))
    const { send } = await callAgent(agent.cardUrl({ version, binding, pushes: false }))
    const taskId = await send('work on it')
    expect(await registerConfig(net, mute, taskId, config)).toMatchObject({ status: 'unsupported' })
    await agent.release(taskId)
    expect(await stateOf(mute, taskId)).toBe('completed')
  })

  test.each([
    ['not_found', 'not_found'],
    ['another_task', 'wrong_task'],
    ['unauthorized', 'unauthorized'],
    ['forbidden', 'forbidden'],
    ['rate_limited', 'rate_limited'],
    ['unavailable', 'unreachable'],
    ['rubbish', 'unreadable'],
    ['hang_up', 'unreachable'],
    ['lagging', 'working'],
  ] as const)('told to lie by %s, it is read as %s', async (lie, read) => {
    const endpoint = await endpointOf(cardUrl)
    const { send } = await callAgent(cardUrl)
    const taskId = await send('work on it')
    await agent.release(taskId)
    agent.lie(lie)
    expect(await stateOf(endpoint, taskId)).toBe(read)
    agent.lie(undefined)
    expect(await stateOf(endpoint, taskId)).toBe('completed')
  })
})

describe('scripts', async () => {
  const endpoint = await endpointOf(agent.cardUrl())
  const { send } = await callAgent(agent.cardUrl())
  const tell = (text: string) => send(text, { config })

  test('the hybrid card leads to 1.0 over JSON-RPC', () => {
    expect(endpoint).toMatchObject({ version: '1.0', binding: 'JSONRPC' })
  })

  test('work pushes each step, the artifact included', async () => {
    const taskId = await tell('work')
    await agent.release(taskId)
    expect(pushed()).toEqual([
      [taskId, 'submitted'],
      [taskId, 'working'],
      [taskId, undefined],
      [taskId, 'completed'],
    ])
  })

  test('ask waits for an answer and completes with it', async () => {
    const taskId = await tell('ask me')
    await hook.arrived(3)
    expect(pushed().at(-1)).toEqual([taskId, 'input-required'])
    await send('yes', { taskId })
    await hook.arrived(3)
    expect(pushed().at(-1)).toEqual([taskId, 'completed'])
    const looked = await getTask(net, endpoint, taskId, 0)
    expect(JSON.stringify(looked)).toContain('You said: yes')
  })

  test('fail fails, anything else completes, slow tells how far it is', async () => {
    expect(await stateOf(endpoint, await send('fail'))).toBe('failed')
    expect(await stateOf(endpoint, await send('hello'))).toBe('completed')
    const taskId = await tell('slow')
    await hook.arrived(2)
    pushed()
    await agent.release(taskId)
    expect(pushed()).toHaveLength(4)
  })

  test('silent completes without a push, and so does whatever is muted', async () => {
    const taskId = await tell('silent')
    await hook.arrived(2)
    pushed()
    await agent.release(taskId)
    expect(pushed()).toEqual([])
    expect(await stateOf(endpoint, taskId)).toBe('completed')
    agent.mute(true)
    const muted = await tell('work')
    await agent.setState(muted, 'failed')
    expect(pushed()).toEqual([])
    agent.mute(false)
    const other = await tell('work')
    await hook.arrived(2)
    pushed()
    await agent.setState(other, 'rejected', { push: false })
    expect(pushed()).toEqual([])
    expect(await stateOf(endpoint, other)).toBe('rejected')
  })

  test('calls are counted by operation', async () => {
    const before = agent.calls('GetTask')
    await stateOf(endpoint, 'nowhere')
    expect(agent.calls('GetTask')).toBe(before + 1)
  })

  test('a fresh task is listed to the principal who made it', async () => {
    const { send: sendAs } = await callAgent(agent.cardUrl(), 'carol.1')
    const taskId = await sendAs('work')
    const mine = await endpointOf(agent.cardUrl(), 'carol.1')
    expect(await listTasks(net, mine, {}, 0)).toMatchObject({
      ok: true,
      tasks: [{ id: taskId, state: 'working' }],
    })
  })
})

test('told to be silent, it never answers', async () => {
  const hasty = { ...net, request: (ask: NetRequest) => net.request({ ...ask, timeoutMs: 300 }) }
  const endpoint = await endpointOf(agent.cardUrl())
  agent.lie('silence')
  expect(await getTask(hasty, endpoint, 't-1', 0)).toMatchObject({
    trouble: 'unreachable',
    detail: expect.stringContaining('longer than'),
  })
})

test('work ends by itself where that is asked for', async () => {
  const busy = await startAgent({ workMs: 1 })
  try {
    const { send } = await callAgent(busy.cardUrl())
    await send('work', { config })
    await hook.arrived(4)
    expect(pushed().at(-1)).toMatchObject([expect.any(String), 'completed'])
  } finally {
    await busy.stop()
  }
})

test.each(['ES256', 'RS256'] as const)(
  'signed by %s, a push proves agent, hook, task, body and time',
  async sign => {
    const now = Date.parse('2031-05-06T07:08:09Z')
    const signing = await startAgent({ sign, now: () => now })
    try {
      const { send } = await callAgent(signing.cardUrl())
      const taskId = await send('work', { config: { url: config.url, id: 'cfg-1' } })
      await signing.release(taskId)
      await signing.rotateKey()
      const reply = await net.request({ url: signing.jwksUrl, timeoutMs: 10_000, maxBytes: 100_000 })
      const jwks: JSONWebKeySet = JSON.parse(new TextDecoder().decode(reply.body))
      expect(jwks.keys.map(({ kid }) => kid)).toEqual(['demo-1', 'demo-2'])
      expect(JSON.stringify(jwks)).not.toContain('"d"')
      expect(signing.calls('jwks')).toBe(1)
      const ids = new Set<unknown>()
      for (const { headers, body } of hook.requests) {
        const { payload, protectedHeader } = await jwtVerify(
          headers.authorization?.replace('Bearer ', '') ?? '',
          createLocalJWKSet(jwks),
          { issuer: signing.origin, audience: config.url, currentDate: new Date(now) },
        )
        expect(protectedHeader).toMatchObject({ alg: sign, kid: 'demo-1' })
        expect(payload).toMatchObject({
          taskId,
          iat: now / 1000,
          exp: now / 1000 + 300,
          request_body_sha256: createHash('sha256').update(body).digest('hex'),
        })
        ids.add(payload.jti)
      }
      expect(ids.size).toBe(4)
    } finally {
      await signing.stop()
    }
  },
)

test('a port that is taken is named', async () => {
  const port = Number(new URL(agent.origin).port)
  await expect(startAgent({ port })).rejects.toThrow(String(port))
})
