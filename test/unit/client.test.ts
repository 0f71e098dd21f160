// What an agent answers to GetTask and ListTasks becomes a task or one trouble, in each version and binding.
import { gzipSync } from 'node:zlib'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { cancelTask, getTask, listTasks } from '../../shared/a2a/client.ts'
import type { Endpoint } from '../../shared/a2a/endpoint.ts'
import type { NetRequest } from '../../shared/net.ts'
import { loopbackNet } from '../support/net.ts'
import { type Answer, type Receiver, startReceiver } from '../support/receiver.ts'

type Received = Receiver['requests'][number]

const agent = await startReceiver()
afterAll(agent.stop)
beforeEach(() => {
  agent.requests.length = 0
})

const now = Date.parse('2026-03-09T14:05:00Z')
const task = { id: 't-1', contextId: 'c-1', status: { state: 'TASK_STATE_COMPLETED' } }
const rpc: Endpoint = { url: `${agent.origin}/rpc`, binding: 'JSONRPC', version: '1.0' }
const rest: Endpoint = { url: `${agent.origin}/rest/`, binding: 'HTTP+JSON', version: '1.0' }
const old = { version: '0.3' } as const

const look = (endpoint: Endpoint, taskId = 't-1') => getTask(loopbackNet, endpoint, taskId, now)

/** Answers like a JSON-RPC server: with the id of the request. */
const reply =
  (result: unknown) =>
  ({ body }: Received): Answer => ({
    body: JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id, result }),
  })

const fail =
  (error: unknown, status = 200) =>
  ({ body }: Received): Answer => ({
    status,
    body: JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id, error }),
  })

const json = (value: unknown, status = 200): Answer => ({ status, body: JSON.stringify(value) })

/** A task that carries lists within lists. */
const nested = (depth: number): string =>
  JSON.stringify(task).replace('{', `{"artifacts":${'['.repeat(depth)}${']'.repeat(depth)},`)

describe('what is asked', () => {
  const asked = async (endpoint: Endpoint, taskId = 't-1') => {
    await look(endpoint, taskId)
    return agent.requests[0]
  }

  test('1.0 over JSON-RPC: GetTask without history, in the tenant’s name', async () => {
    const request = await asked({ ...rpc, agentTenant: 'kitchen' })
    expect(request).toMatchObject({ method: 'POST', url: '/rpc', headers: { 'a2a-version': '1.0' } })
    expect(request?.headers['content-type']).toBe('application/json')
    expect(JSON.parse(request?.body ?? '')).toMatchObject({
      jsonrpc: '2.0',
      method: 'GetTask',
      params: { id: 't-1', historyLength: 0, tenant: 'kitchen' },
    })
  })

  test('0.3 over JSON-RPC: tasks/get, where a history of 0 would mean all of it', async () => {
    const request = await asked({ ...rpc, ...old, agentTenant: 'kitchen' })
    expect(request?.headers['a2a-version']).toBe('0.3')
    expect(JSON.parse(request?.body ?? '')).toMatchObject({ method: 'tasks/get', params: { id: 't-1' } })
    expect(JSON.parse(request?.body ?? '').params).toEqual({ id: 't-1' })
  })

  test('1.0 over HTTP+JSON: the task’s path below tenant and URL', async () => {
    expect(await asked(rest)).toMatchObject({
      method: 'GET',
      url: '/rest/tasks/t-1?historyLength=0',
      body: '',
    })
    agent.requests.length = 0
    expect(await asked({ ...rest, agentTenant: 'kit/chen' })).toMatchObject({
      url: '/rest/kit%2Fchen/tasks/t-1?historyLength=0',
    })
  })

  test('0.3 over HTTP+JSON: the path with its version', async () => {
    expect(await asked({ ...rest, ...old })).toMatchObject({ url: '/rest/v1/tasks/t-1' })
  })

  test('a task id cannot reach another path or parameter', async () => {
    expect(await asked(rest, 'a/../b?c=d#e')).toMatchObject({
      url: '/rest/tasks/a%2F..%2Fb%3Fc%3Dd%23e?historyLength=0',
    })
    agent.requests.length = 0
    for (const id of ['.', '..']) expect(await look(rest, id)).toMatchObject({ ok: false, trouble: 'failed' })
    expect(agent.requests).toEqual([])
  })

  test('credentials go where their kind belongs', async () => {
    const token = await asked({ ...rpc, credentials: { type: 'bearer', token: 'b-1' } })
    expect(token?.headers.authorization).toBe('Bearer b-1')
    agent.requests.length = 0
    const basic = await asked({ ...rest, credentials: { type: 'basic', username: 'ü', password: 'p:1' } })
    expect(basic?.headers.authorization).toBe(`Basic ${Buffer.from('ü:p:1').toString('base64')}`)
    agent.requests.length = 0
    const key = { type: 'apiKey', name: 'X-Key', value: 'k 1' } as const
    expect((await asked({ ...rpc, credentials: { ...key, in: 'header' } }))?.headers['x-key']).toBe('k 1')
    agent.requests.length = 0
    const query = await asked({ ...rest, credentials: { ...key, in: 'query' } })
    expect(query?.url).toBe('/rest/tasks/t-1?historyLength=0&X-Key=k+1')
  })

  test('cases 141 and 142: the exchange is bounded as a whole, in time and in bytes', async () => {
    const limits: unknown[] = []
    const request = (ask: NetRequest) => {
      limits.push([ask.timeoutMs, ask.maxBytes])
      return loopbackNet.request(ask)
    }
    await getTask({ ...loopbackNet, request }, rpc, 't-1', now)
    expect(limits).toEqual([[10_000, 8 * 2 ** 20]])
  })
})

describe('what is answered', () => {
  const oldTask = { kind: 'task', id: 't-1', contextId: 'c-1', status: { state: 'completed' } }

  test.each<[name: string, endpoint: Endpoint, answer: Parameters<typeof agent.answer>[0], raw: unknown]>([
    ['1.0 over JSON-RPC', rpc, reply(task), task],
    ['1.0 over JSON-RPC, wrapped as if it were sent', rpc, reply({ task }), task],
    ['0.3 over JSON-RPC', { ...rpc, ...old }, reply(oldTask), oldTask],
    ['1.0 over HTTP+JSON', rest, json(task), task],
    ['0.3 over HTTP+JSON', { ...rest, ...old }, json(task), task],
    ['an id of null', rpc, json({ jsonrpc: '2.0', id: null, result: task }), task],
    [
      'one with names of an error',
      rest,
      json({ ...task, code: 7, message: 'Hm' }),
      { ...task, code: 7, message: 'Hm' },
    ],
    ['an error that is null', rpc, json({ jsonrpc: '2.0', error: null, result: task }), task],
  ])('%s is the task', async (_name, endpoint, answer, raw) => {
    agent.answer(answer)
    expect(await look(endpoint)).toEqual({
      ok: true,
      task: { id: 't-1', contextId: 'c-1', state: 'completed', raw },
      bytes: expect.any(Number),
    })
  })

  test('its size is told, inflated', async () => {
    const body = JSON.stringify({ ...task, padding: 'x'.repeat(10_000) })
    agent.answer({ headers: { 'content-encoding': 'gzip' }, body: gzipSync(body) })
    expect(await look(rest)).toMatchObject({ ok: true, bytes: body.length })
  })

  const notFound = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'TASK_NOT_FOUND' }

  test.each<[name: string, endpoint: Endpoint, answer: Parameters<typeof agent.answer>[0], trouble: unknown]>(
    [
      ['case 135: 401', rpc, { status: 401 }, { trouble: 'unauthorized', detail: 'HTTP 401' }],
      ['case 136: 403', rest, { status: 403 }, { trouble: 'forbidden' }],
      ['case 136: 404', rest, { status: 404 }, { trouble: 'not_found' }],
      ['case 136: 410', rest, { status: 410 }, { trouble: 'not_found' }],
      [
        'case 136: 404 with a JSON-RPC body',
        rpc,
        fail({ code: -32001, message: 'Gone' }, 404),
        { trouble: 'not_found' },
      ],
      [
        'case 137: -32001 in a 200',
        rpc,
        fail({ code: -32001, message: 'Gone' }),
        { trouble: 'not_found', detail: 'Gone' },
      ],
      ['case 137: the code as text', rpc, fail({ code: '-32001' }), { trouble: 'not_found' }],
      ['case 137: the reason as code', rpc, fail({ code: 'TASK_NOT_FOUND' }), { trouble: 'not_found' }],
      [
        'case 137: the reason alone',
        rpc,
        fail({ code: -32000, data: [notFound] }),
        { trouble: 'not_found', code: -32001 },
      ],
      ['case 137: -32603', rpc, fail({ code: -32603, message: 'Oops' }), { trouble: 'failed', code: -32603 }],
      [
        'case 137: -32700',
        rpc,
        json({ jsonrpc: '2.0', id: null, error: { code: -32700 } }),
        { trouble: 'failed' },
      ],
      [
        'not found over HTTP+JSON 1.0',
        rest,
        json({ error: { code: 404, status: 'NOT_FOUND', message: 'No t-1', details: [notFound] } }, 404),
        { trouble: 'not_found', detail: 'No t-1', code: -32001 },
      ],
      [
        'the same inside a 200',
        rest,
        json({ error: { code: 404, message: 'No t-1' } }),
        { trouble: 'not_found' },
      ],
      [
        'not found over HTTP+JSON 0.3',
        { ...rest, ...old },
        json({ code: -32001, message: 'No' }, 404),
        { trouble: 'not_found' },
      ],
      [
        'the same 0.3 error inside a 200',
        { ...rest, ...old },
        json({ code: -32001, message: 'No' }),
        { trouble: 'not_found' },
      ],
      [
        'a problem document',
        rest,
        json({ title: 'Busy', detail: 'Come back later' }, 503),
        { trouble: 'unreachable', detail: 'Come back later' },
      ],
      [
        'an OAuth error',
        rest,
        json({ error: 'invalid_token', error_description: 'Expired' }, 401),
        { trouble: 'unauthorized', detail: 'Expired' },
      ],
      ['case 140: 500', rpc, { status: 500 }, { trouble: 'unreachable' }],
      [
        'case 140: 502 with a page',
        rpc,
        { status: 502, body: '<html>' },
        { trouble: 'unreachable', detail: 'HTTP 502' },
      ],
      ['case 140: a reset', rpc, { fault: 'reset' }, { trouble: 'unreachable' }],
      ['case 140: cut off', rpc, { fault: 'cut' }, { trouble: 'unreachable' }],
      ['case 144: moved', rpc, { status: 307, headers: { location: '/new' } }, { trouble: 'unreadable' }],
      [
        'case 145: -32009',
        rpc,
        fail({ code: -32009, message: 'Not 1.0' }),
        { trouble: 'unsupported_version' },
      ],
      ['case 145: -32601', rpc, fail({ code: -32601 }), { trouble: 'unsupported_version' }],
      ['case 146: another task', rpc, reply({ ...task, id: 't-2' }), { trouble: 'wrong_task' }],
      [
        'case 146: another task over HTTP+JSON',
        rest,
        json({ ...task, id: 'T-1' }),
        { trouble: 'wrong_task' },
      ],
      [
        'case 146: the answer to another request',
        rpc,
        json({ jsonrpc: '2.0', id: 'other', result: task }),
        { trouble: 'wrong_task' },
      ],
      ['a page in a 200', rpc, { body: '<html>' }, { trouble: 'unreadable' }],
      ['nothing in a 200', rest, {}, { trouble: 'unreadable' }],
      ['204', rpc, { status: 204 }, { trouble: 'unreadable' }],
      ['JSON that is no JSON-RPC', rpc, json(task), { trouble: 'unreadable' }],
      [
        'a message instead of a task',
        rpc,
        reply({ kind: 'message', messageId: 'm-1' }),
        { trouble: 'unreadable' },
      ],
      ['a result of null', rpc, reply(null), { trouble: 'unreadable' }],
      ['a body nested without end', rest, { body: nested(1000) }, { trouble: 'unreadable' }],
      ['another 4xx', rest, json({ message: 'Tea only' }, 418), { trouble: 'failed', detail: 'Tea only' }],
    ],
  )('%s is told apart', async (_name, endpoint, answer, trouble) => {
    agent.answer(answer)
    const looked = await look(endpoint)
    expect(looked).toMatchObject({ ok: false, ...(trouble as object) })
  })

  test('an artifact may be a deep tree', async () => {
    agent.answer({ body: nested(400) })
    expect(await look(rest)).toMatchObject({ ok: true })
  })

  test('case 142: an answer that inflates without end stops at the limit', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 2 ** 20))
    agent.answer({ headers: { 'content-encoding': 'gzip' }, body: bomb })
    expect(await look(rest)).toMatchObject({ ok: false, trouble: 'too_large' })
  })

  const large = 'x'.repeat(9 * 2 ** 20)
  const head = JSON.stringify(task).slice(0, -1)
  const early = `${head},"artifacts":[{"parts":[{"text":"${large}"}]}]}`
  const late = `{"artifacts":[{"parts":[{"text":"${large}"}]}],${head.slice(1)}}`

  test.each<[way: string, send: (text: string) => Answer]>([
    ['in one piece', body => ({ headers: { 'content-length': String(body.length) }, body })],
    ['in pieces', text => ({ body: [text.slice(0, 1000), text.slice(1000)].map(one => Buffer.from(one)) })],
    ['gzipped', text => ({ headers: { 'content-encoding': 'gzip' }, body: gzipSync(text) })],
  ])('case 142: of an answer of 9 MB %s its start is believed, and nothing else', async (_way, send) => {
    agent.answer(send(early))
    expect(await look(rest)).toMatchObject({
      ok: true,
      bytes: 8 * 2 ** 20,
      task: { id: 't-1', contextId: 'c-1', state: 'completed', tooLarge: true },
    })
    agent.answer(send(late))
    expect(await look(rest)).toMatchObject({ ok: false, trouble: 'too_large' })
    agent.answer(send(early.replace('t-1', 't-2')))
    expect(await look(rest)).toMatchObject({ ok: false, trouble: 'wrong_task' })
  })

  test('case 142: an answer of JSON-RPC that is too large is still one to this request, or an error', async () => {
    const answer = (text: string) => agent.answer({ body: text })
    answer(`{"id":"t-1","result":${early}}`)
    expect(await look(rpc)).toMatchObject({ ok: true, task: { state: 'completed', tooLarge: true } })
    answer(`{"result":${early},"id":"t-1"}`)
    expect(await look(rpc)).toMatchObject({ ok: true, task: { state: 'completed', tooLarge: true } })
    answer(`{"id":"t-2","result":${early}}`)
    expect(await look(rpc)).toMatchObject({ ok: false, trouble: 'wrong_task' })
    answer(`{"id":"t-1","error":{"code":-32001,"message":"Gone","data":"${large}"}}`)
    expect(await look(rpc)).toMatchObject({ ok: false, trouble: 'not_found', detail: 'Gone' })
    answer(`{"id":"t-1","extra":"${large}"}`)
    expect(await look(rpc)).toMatchObject({ ok: false, trouble: 'too_large' })
    agent.answer({ status: 503, body: large })
    expect(await look(rpc)).toMatchObject({ ok: false, trouble: 'unreachable' })
  })

  test.each<[value: string, ms: number | undefined]>([
    ['7', 7000],
    ['0', 0],
    ['Mon, 09 Mar 2026 14:06:30 GMT', 90_000],
    ['Mon, 09 Mar 2026 14:00:00 GMT', 0],
    ['99999999999999999999', 86_400_000],
    ['soon', undefined],
  ])('429 with Retry-After %s is a wait of %s ms', async (value, ms) => {
    agent.answer({ status: 429, headers: { 'retry-after': value } })
    const looked = await look(rpc)
    expect(looked).toMatchObject({ ok: false, trouble: 'rate_limited' })
    expect('retryAfterMs' in looked ? looked.retryAfterMs : undefined).toBe(ms)
  })

  test('a redirect is never followed: credentials stay at their address', async () => {
    agent.answer({ status: 301, headers: { location: `${agent.origin}/elsewhere` } })
    await look({ ...rpc, credentials: { type: 'bearer', token: 'b-1' } })
    expect(agent.requests.map(({ url }) => url)).toEqual(['/rpc'])
  })
})

describe('case 143: an agent that refuses a history of 0', () => {
  test('is asked once more without it, over JSON-RPC', async () => {
    agent.answer(request =>
      'historyLength' in JSON.parse(request.body).params
        ? fail({ code: -32602, message: 'historyLength must be positive' })(request)
        : reply(task)(request),
    )
    expect(await look(rpc)).toMatchObject({ ok: true })
    expect(agent.requests).toHaveLength(2)
  })

  test('is asked once more without it, over HTTP+JSON', async () => {
    agent.answer(({ url }) => (url.includes('historyLength') ? { status: 400 } : json(task)))
    expect(await look(rest)).toMatchObject({ ok: true })
  })

  test('is not asked a third time, and other faults not a second time', async () => {
    agent.answer(fail({ code: -32602, message: 'No' }))
    expect(await look(rpc)).toMatchObject({ ok: false, trouble: 'failed' })
    expect(agent.requests).toHaveLength(2)
    agent.answer(fail({ code: -32001 }))
    await look(rpc)
    agent.answer(fail({ code: -32602 }))
    await look({ ...rpc, ...old })
    expect(agent.requests).toHaveLength(4)
  })
})

describe('the agent’s own words', () => {
  const detailOf = async (endpoint: Endpoint, message: string): Promise<string> => {
    agent.answer(fail({ code: -32603, message }))
    const looked = await look(endpoint)
    return looked.ok ? '' : looked.detail
  }

  test('are one line of at most 300 characters, whatever they held', async () => {
    expect(await detailOf(rpc, 'a\r\nb\u001b[31m\u202ec\u2028d')).toBe('a b [31m c d')
    expect(await detailOf(rpc, `${'x'.repeat(299)}😀`)).toBe(`${'x'.repeat(299)}\ufffd`)
  })

  test.each<[Endpoint['credentials'], string]>([
    [{ type: 'bearer', token: 'secret-1' }, 'secret-1'],
    [{ type: 'basic', username: 'u', password: 'secret-1' }, 'secret-1'],
    [{ type: 'basic', username: 'u', password: 'secret-1' }, Buffer.from('u:secret-1').toString('base64')],
    [{ type: 'apiKey', in: 'query', name: 'k', value: 'secret-1' }, 'secret-1'],
    [{ type: 'bearer', token: 's/1+2=' }, 's%2F1%2B2%3D'],
    [{ type: 'bearer', token: 's/1+2=' }, 's%2f1%2b2%3d'],
    [{ type: 'basic', username: 'u', password: 'a b(c)"' }, 'a+b%28c%29%22'],
    [{ type: 'basic', username: 'u', password: 'a b"c' }, 'a b\\"c'],
  ])('do not repeat what we showed the agent', async (credentials, secret) => {
    const endpoint = { ...rpc, ...(credentials && { credentials }) }
    expect(await detailOf(endpoint, `Wrong: ${secret}!`)).toBe('Wrong: …!')
  })
})

describe('listing', () => {
  const page = {
    tasks: [task, { id: 7 }, { id: 't-2', status: { state: 'TASK_STATE_WORKING' } }],
    nextPageToken: 'p2',
  }
  const listed = {
    ok: true,
    tasks: [
      { id: 't-1', contextId: 'c-1', state: 'completed' },
      { id: 't-2', state: 'working' },
    ],
    next: 'p2',
  }

  test('1.0 over JSON-RPC goes on where it was and leaves out what is no task', async () => {
    agent.answer(reply(page))
    const since = { pageToken: 'p1', statusTimestampAfter: '2026-03-09T14:00:00.000Z' }
    expect(await listTasks(loopbackNet, { ...rpc, agentTenant: 'kitchen' }, since, now)).toEqual(listed)
    expect(JSON.parse(agent.requests[0]?.body ?? '')).toMatchObject({
      method: 'ListTasks',
      params: { tenant: 'kitchen', ...since, historyLength: 0, pageSize: 100 },
    })
  })

  test('1.0 over HTTP+JSON is the same', async () => {
    agent.answer(json(page))
    expect(await listTasks(loopbackNet, rest, { pageToken: 'p1' }, now)).toEqual(listed)
    expect(agent.requests[0]?.url).toBe('/rest/tasks?pageToken=p1&pageSize=100&historyLength=0')
  })

  test('the last page names no next one, and an empty list may be left out', async () => {
    agent.answer(json({ nextPageToken: '' }))
    expect(await listTasks(loopbackNet, rest, {}, now)).toEqual({ ok: true, tasks: [] })
  })

  test('a list that is none is unreadable, and errors are what they are for GetTask', async () => {
    agent.answer(json({ tasks: 'many' }))
    expect(await listTasks(loopbackNet, rest, {}, now)).toMatchObject({ trouble: 'unreadable' })
    agent.answer({ status: 429, headers: { 'retry-after': '7' } })
    expect(await listTasks(loopbackNet, rest, {}, now)).toMatchObject({
      trouble: 'rate_limited',
      retryAfterMs: 7000,
    })
  })

  test('0.3 cannot list, and is not asked', async () => {
    expect(await listTasks(loopbackNet, { ...rpc, ...old }, {}, now)).toMatchObject({
      trouble: 'unsupported_version',
    })
    expect(agent.requests).toEqual([])
  })
})

describe('a task is canceled', () => {
  const cancel = (endpoint: Endpoint, taskId = 't-1') => cancelTask(loopbackNet, endpoint, taskId, now)

  test.each<[string, Endpoint, string, Record<string, unknown>]>([
    [
      '1.0 over JSON-RPC',
      { ...rpc, agentTenant: 'kitchen' },
      '/rpc',
      { method: 'CancelTask', params: { id: 't/1', tenant: 'kitchen' } },
    ],
    ['0.3 over JSON-RPC', { ...rpc, ...old }, '/rpc', { method: 'tasks/cancel', params: { id: 't/1' } }],
    ['1.0 over HTTP+JSON', { ...rest, agentTenant: 'kitchen' }, '/rest/kitchen/tasks/t%2F1:cancel', {}],
    ['0.3 over HTTP+JSON', { ...rest, ...old }, '/rest/v1/tasks/t%2F1:cancel', {}],
  ])('%s', async (_what, endpoint, url, body) => {
    agent.answer(json(task))
    await cancel(endpoint, 't/1')
    expect(agent.requests).toMatchObject([{ method: 'POST', url }])
    const asked = JSON.parse(agent.requests[0]?.body ?? '')
    expect(endpoint.binding === 'JSONRPC' ? asked : { body: asked }).toMatchObject(
      endpoint.binding === 'JSONRPC' ? body : { body },
    )
  })

  test('the answer is the task as it is then, and never another one', async () => {
    agent.answer(reply({ ...task, status: { state: 'TASK_STATE_WORKING' } }))
    expect(await cancel(rpc)).toMatchObject({ ok: true, task: { id: 't-1', state: 'working' } })
    expect(await cancel(rpc, 't-2')).toMatchObject({ ok: false, trouble: 'wrong_task' })
    agent.answer(fail({ code: -32002, message: 'Task cannot be canceled' }))
    expect(await cancel(rpc)).toMatchObject({ ok: false, trouble: 'failed', code: -32002 })
  })
})
