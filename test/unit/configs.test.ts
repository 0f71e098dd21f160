// What is handed out fits the agent's version exactly, and a registration counts only if the agent shows that it has it.
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { handOut, type PushConfig, registerConfig, removeConfig } from '../../shared/a2a/configs.ts'
import type { Endpoint } from '../../shared/a2a/endpoint.ts'
import { loopbackNet } from '../support/net.ts'
import { type Answer, type Receiver, startReceiver } from '../support/receiver.ts'

type Received = Receiver['requests'][number]

const agent = await startReceiver()
afterAll(agent.stop)
beforeEach(() => {
  agent.requests.length = 0
})

const config: PushConfig = {
  url: 'https://hooks.example/hooks/hook-1',
  id: 'cfg-1',
  token: 'tok-1',
  authentication: { scheme: 'Bearer', credentials: 'cred-1' },
}
const { token: _token, authentication: _authentication, ...bare } = config

const rpc: Endpoint = { url: `${agent.origin}/rpc`, binding: 'JSONRPC', version: '1.0' }
const rest: Endpoint = { url: `${agent.origin}/rest`, binding: 'HTTP+JSON', version: '1.0' }
const old = { version: '0.3' } as const

const json = (value: unknown, status = 200): Answer => ({ status, body: JSON.stringify(value) })

/** A JSON-RPC agent that answers each method by a result or an error. */
const agentOf =
  (methods: Record<string, { result: unknown } | { error: unknown }>) =>
  ({ body }: Received): Answer => {
    const { id, method } = JSON.parse(body)
    return json({
      jsonrpc: '2.0',
      id,
      ...(methods[method] ?? { error: { code: -32601, message: 'Unknown' } }),
    })
  }

const register = (endpoint: Endpoint, of = config) => registerConfig(loopbackNet, endpoint, 't-1', of)
const sent = (at = 0) => JSON.parse(agent.requests[at]?.body ?? '')

describe('a config that is handed out', () => {
  test('has one scheme in 1.0 and a list of schemes in 0.3', () => {
    expect(handOut(config, '1.0')).toEqual(config)
    expect(handOut(config, '0.3')).toEqual({
      ...config,
      authentication: { schemes: ['Bearer'], credentials: 'cred-1' },
    })
  })

  test('has no field that is not set, and none of our own', () => {
    for (const version of ['1.0', '0.3'] as const) {
      expect(Object.keys(handOut(bare, version))).toEqual(['url', 'id'])
      const more = { ...config, tenant: 'ours', secret: 'x' }
      expect(Object.keys(handOut(more, version)).sort()).toEqual(['authentication', 'id', 'token', 'url'])
    }
  })
})

describe('a registration', () => {
  const create = 'CreateTaskPushNotificationConfig'
  const list = 'ListTaskPushNotificationConfigs'
  const set = 'tasks/pushNotificationConfig/set'
  const oldList = 'tasks/pushNotificationConfig/list'
  const kept = { ...config, taskId: 't-1' }
  const nested = { taskId: 't-1', pushNotificationConfig: handOut(config, '0.3') }

  test('in 1.0 over JSON-RPC is flat, with task and tenant, and confirmed by the list', async () => {
    agent.answer(agentOf({ [create]: { result: kept }, [list]: { result: { configs: [kept] } } }))
    expect(await register({ ...rpc, agentTenant: 'kitchen' })).toEqual({ status: 'registered' })
    expect(sent().params).toEqual({ ...config, taskId: 't-1', tenant: 'kitchen' })
    expect(sent(1).params).toEqual({ taskId: 't-1', tenant: 'kitchen' })
  })

  test('in 0.3 over JSON-RPC is nested, and listed as an array', async () => {
    agent.answer(agentOf({ [set]: { result: nested }, [oldList]: { result: [nested] } }))
    expect(await register({ ...rpc, ...old })).toEqual({ status: 'registered' })
    expect(sent().params).toEqual(nested)
    expect(sent(1).params).toEqual({ id: 't-1' })
  })

  test('in 1.0 over HTTP+JSON posts the config to the task', async () => {
    agent.answer(({ method }) => (method === 'POST' ? json(kept, 201) : json({ configs: [kept] })))
    expect(await register(rest)).toEqual({ status: 'registered' })
    expect(agent.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'POST /rest/tasks/t-1/pushNotificationConfigs',
      'GET /rest/tasks/t-1/pushNotificationConfigs',
    ])
    expect(sent()).toEqual(kept)
  })

  test('in 0.3 over HTTP+JSON speaks either dialect', async () => {
    const name = 'tasks/t-1/pushNotificationConfigs/cfg-1'
    const inner = { name, pushNotificationConfig: handOut(config, '0.3') }
    agent.answer(({ method }) => (method === 'POST' ? json(inner) : json({ configs: [inner] })))
    expect(await register({ ...rest, ...old })).toEqual({ status: 'registered' })
    expect(agent.requests[0]?.url).toBe('/rest/v1/tasks/t-1/pushNotificationConfigs')
    expect(sent()).toEqual({ parent: 'tasks/t-1', configId: 'cfg-1', config: inner })
    agent.requests.length = 0
    agent.answer(({ method, body }) => {
      if (method === 'GET') return json({ configs: [inner] })
      return 'parent' in JSON.parse(body)
        ? json({ code: -32602, message: 'Unknown field' }, 400)
        : json(inner)
    })
    expect(await register({ ...rest, ...old })).toEqual({ status: 'registered' })
    expect(sent(1)).toEqual(inner)
  })

  test('is found on a later page of the list', async () => {
    const page = ({ url }: Received): Answer =>
      url.includes('pageToken=p2') ? json({ configs: [kept] }) : json({ configs: [], nextPageToken: 'p2' })
    agent.answer(request => (request.method === 'POST' ? json(kept, 201) : page(request)))
    expect(await register(rest)).toEqual({ status: 'registered' })
  })

  test('does not count if the agent drops it, changes its address or pages for ever', async () => {
    for (const configs of [
      [],
      [{ ...kept, url: 'https://other.example' }],
      [{ ...kept, id: 'cfg-2' }],
      'many',
    ]) {
      agent.answer(agentOf({ [create]: { result: kept }, [list]: { result: { configs } } }))
      expect(await register(rpc)).toEqual({
        status: 'failed',
        detail: expect.stringMatching(/does not list/),
      })
    }
    agent.answer(agentOf({ [create]: { result: kept }, [list]: { result: { nextPageToken: 'again' } } }))
    expect(await register(rpc)).toMatchObject({ status: 'failed' })
  })

  test('counts by the agent’s echo where it cannot list', async () => {
    agent.answer(agentOf({ [create]: { result: kept } }))
    expect(await register(rpc)).toEqual({ status: 'registered' })
    agent.answer(agentOf({ [create]: { result: {} } }))
    expect(await register(rpc)).toMatchObject({ status: 'failed' })
    const error = { code: -32603, message: 'Busy' }
    agent.answer(agentOf({ [create]: { result: kept }, [list]: { error } }))
    expect(await register(rpc)).toEqual({ status: 'failed', detail: 'Busy' })
  })

  test('is unsupported where the agent says so, in any binding', async () => {
    const message = 'No pushes here'
    agent.answer(agentOf({ [create]: { error: { code: -32003, message } } }))
    expect(await register(rpc)).toEqual({ status: 'unsupported', detail: message })
    const details = [{ reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED' }]
    agent.answer(json({ error: { code: 400, message, details } }, 400))
    expect(await register(rest)).toEqual({ status: 'unsupported', detail: message })
  })

  test('fails with the agent’s own words, but without hook, token and credentials', async () => {
    const message = 'Refused https://hooks.example/hooks/hook-1 with tok-1 and cred-1; path hooks/hook-1'
    agent.answer(agentOf({ [create]: { error: { code: -32602, message, data: 'no field "x"' } } }))
    expect(await register(rpc)).toEqual({
      status: 'failed',
      detail: 'Refused … with … and …; path hooks/… no field "x"',
    })
    expect(agent.requests).toHaveLength(1)
    expect(await register({ ...rpc, ...old })).toMatchObject({ ok: false, trouble: 'unsupported_version' })
    agent.answer(agentOf({ [set]: { error: { code: -32602, message } } }))
    await register({ ...rpc, ...old })
    expect(agent.requests).toHaveLength(3)
  })
})

describe('a removal', () => {
  const remove = (endpoint: Endpoint) => removeConfig(loopbackNet, endpoint, 't-1', 'cfg-1')

  test('asks in the words of each version and binding', async () => {
    agent.answer(
      agentOf({
        DeleteTaskPushNotificationConfig: { result: {} },
        'tasks/pushNotificationConfig/delete': { result: null },
      }),
    )
    expect(await remove(rpc)).toEqual({ ok: true })
    expect(sent().params).toEqual({ taskId: 't-1', id: 'cfg-1' })
    expect(await remove({ ...rpc, ...old })).toEqual({ ok: true })
    expect(sent(1).params).toEqual({ id: 't-1', pushNotificationConfigId: 'cfg-1' })
    agent.answer({ status: 204 })
    expect(await remove(rest)).toEqual({ ok: true })
    expect(await remove({ ...rest, ...old })).toEqual({ ok: true })
    expect(agent.requests.slice(2).map(({ method, url }) => `${method} ${url}`)).toEqual([
      'DELETE /rest/tasks/t-1/pushNotificationConfigs/cfg-1',
      'DELETE /rest/v1/tasks/t-1/pushNotificationConfigs/cfg-1',
    ])
  })

  test('of what is gone is done; other refusals are told', async () => {
    agent.answer({ status: 404 })
    expect(await remove(rest)).toEqual({ ok: true })
    agent.answer({ status: 403 })
    expect(await remove(rest)).toMatchObject({ ok: false, trouble: 'forbidden' })
  })
})
