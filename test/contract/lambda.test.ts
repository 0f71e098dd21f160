// How a request becomes a Function URL event and an answer becomes a response: what the doors see on a laptop is what they see on AWS.
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import type { LambdaFunctionURLEvent } from 'aws-lambda'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type FunctionUrl, openUrl } from '../../infra/local/http.ts'
import { type Context, invoke } from '../../infra/local/lambda.ts'

let url: FunctionUrl
let events: LambdaFunctionURLEvent[]
let failures: unknown[]
let handler: (event: LambdaFunctionURLEvent) => Promise<unknown>

beforeEach(async () => {
  events = []
  failures = []
  handler = async () => ({ statusCode: 202 })
  url = await openUrl({
    limit: { name: 'receive', timeoutSeconds: 5 },
    port: 0,
    now: Date.now,
    handler: event => {
      events.push(event)
      return handler(event)
    },
    onFailure: error => failures.push(error),
  })
})

afterEach(async () => {
  await url.kill()
})

/** One exchange on the wire: nothing is normalised on the way. */
async function exchange(
  path: string,
  options: { method?: string; headers?: string[]; body?: string | Uint8Array } = {},
): Promise<IncomingMessage> {
  const { method = 'POST', headers = [], body = '' } = options
  const request = httpRequest({
    host: '127.0.0.1',
    port: url.port,
    path,
    method,
    headers: ['Host', 'hook.example', 'Content-Length', String(Buffer.byteLength(body)), ...headers],
  })
  request.end(body)
  const [response] = await once(request, 'response')
  return response
}

const drop = async (path: string, options?: Parameters<typeof exchange>[1]) => {
  const response = await exchange(path, options)
  response.resume()
  return response
}

describe('the event', () => {
  test('keeps path and query exactly as they were sent', async () => {
    await drop('/hooks/a%2Fb/../%7Ec//d?x=1&x=%20&y=a+b')
    expect(events[0]).toMatchObject({
      rawPath: '/hooks/a%2Fb/../%7Ec//d',
      rawQueryString: 'x=1&x=%20&y=a+b',
      queryStringParameters: { x: '1, ', y: 'a b' },
      requestContext: { http: { method: 'POST', path: '/hooks/a%2Fb/../%7Ec//d', sourceIp: '127.0.0.1' } },
    })
  })

  test('carries every body as base64, byte for byte', async () => {
    const body = Uint8Array.from({ length: 256 }, (_, at) => at)
    await drop('/', { body })
    expect(events[0]?.isBase64Encoded).toBe(true)
    expect([...Buffer.from(events[0]?.body ?? '', 'base64')]).toEqual([...body])
  })

  test('has no body, no cookies and no query when there are none', async () => {
    await drop('/health', { method: 'GET' })
    expect(events[0]).toMatchObject({ rawQueryString: '', isBase64Encoded: false })
    expect(Object.keys(events[0] ?? {})).not.toEqual(
      expect.arrayContaining(['body', 'cookies', 'queryStringParameters']),
    )
  })

  test('joins repeated headers by a comma, even those of which one is expected', async () => {
    const headers = ['X-One', 'a', 'x-one', 'b', 'Authorization', 'Bearer a', 'authorization', 'Bearer b']
    await drop('/', { headers })
    expect(events[0]?.headers).toMatchObject({
      host: 'hook.example',
      'x-one': 'a,b',
      authorization: 'Bearer a,Bearer b',
    })
  })

  test('lists cookies apart from the headers', async () => {
    await drop('/', { headers: ['Cookie', 'a=1; b=2'] })
    expect(events[0]?.cookies).toEqual(['a=1', 'b=2'])
    expect(events[0]?.headers).not.toHaveProperty('cookie')
  })

  test('carries a trace id, and the one of the caller if it sent one', async () => {
    await drop('/')
    await drop('/', { headers: ['X-Amzn-Trace-Id', 'Root=1-0-0'] })
    expect(events.map(event => event.headers['x-amzn-trace-id'])).toEqual([
      expect.stringMatching(/^Root=1-[0-9a-f]{8}-[0-9a-f]{24}$/),
      'Root=1-0-0',
    ])
  })

  test('is made from a request that also asks for h2c, as JDK senders do', async () => {
    const headers = ['Connection', 'Upgrade, HTTP2-Settings', 'Upgrade', 'h2c', 'HTTP2-Settings', 'AAEAAA']
    const response = await drop('/hooks/x', { headers, body: '{"a":1}' })
    expect(response.statusCode).toBe(202)
    expect(Buffer.from(events[0]?.body ?? '', 'base64').toString()).toBe('{"a":1}')
  })

  test('is never larger than Lambda takes', async () => {
    const response = await drop('/', { body: Buffer.alloc(6 * 1024 * 1024) })
    expect(response.statusCode).toBe(413)
    expect(events).toEqual([])
    const fits = await drop('/', { body: Buffer.alloc(4 * 1024 * 1024) })
    expect(fits.statusCode).toBe(202)
  })
})

describe('the response', () => {
  test('has the status, headers, cookies and text of the answer', async () => {
    handler = async () => ({
      statusCode: 401,
      headers: { 'content-type': 'application/problem+json', 'retry-after': 3 },
      cookies: ['a=1', 'b=2'],
      body: '{"ü":1}',
    })
    const response = await exchange('/')
    expect(response.statusCode).toBe(401)
    expect(response.headers).toMatchObject({
      'content-type': 'application/problem+json',
      'retry-after': '3',
      'set-cookie': ['a=1', 'b=2'],
    })
    expect(await text(response)).toBe('{"ü":1}')
  })

  test('has the very bytes that the answer holds as base64', async () => {
    const bytes = Buffer.from([0, 255, 10, 13, 128])
    handler = async () => ({ statusCode: 200, body: bytes.toString('base64'), isBase64Encoded: true })
    expect(await buffer(await exchange('/'))).toEqual(bytes)
  })

  test.each<[string, () => Promise<unknown>]>([
    ['throws', () => Promise.reject(new Error('broken'))],
    ['answers without a status', async () => ({ body: 'x' })],
    ['answers nothing', async () => undefined],
    ['answers more than Lambda lets through', async () => ({ statusCode: 200, body: 'x'.repeat(7e6) })],
    ['names a header that cannot be', async () => ({ statusCode: 200, headers: { 'x-a': 'b', 'a b': 'c' } })],
  ])('is 502 and tells nothing when the function %s', async (_, answer) => {
    handler = answer
    const response = await exchange('/')
    expect([response.statusCode, await text(response)]).toEqual([502, 'Internal Server Error'])
    expect(response.headers).not.toHaveProperty('x-a')
    expect(failures).toHaveLength(1)
  })
})

test('a function that runs out of time is given up by name', async () => {
  const limit = { name: 'look', timeoutSeconds: 0.05 }
  await expect(invoke(limit, () => new Promise(() => {}), {})).rejects.toThrow('look timed out after 0.05 s')
})

test('a function is told how much time is left', async () => {
  const left = async (_: unknown, context: Context) => context.getRemainingTimeInMillis()
  const answer = Number(await invoke({ name: 'look', timeoutSeconds: 30 }, left, {}))
  expect(answer).toBeGreaterThan(0)
  expect(answer).toBeLessThanOrEqual(30_000)
})

test('an answer goes through JSON, so that only what Lambda carries arrives', async () => {
  const limit = { name: 'api', timeoutSeconds: 5 }
  expect(await invoke(limit, async () => ({ at: new Date(0), gone: undefined }), {})).toEqual({
    at: '1970-01-01T00:00:00.000Z',
  })
})

test('a sender that hangs up in the middle of its body harms nobody', async () => {
  const socket = connect(url.port, '127.0.0.1')
  const head = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"half'
  await new Promise<void>(resolve => socket.write(head, () => resolve()))
  socket.resetAndDestroy()
  expect((await drop('/')).statusCode).toBe(202)
  expect(events).toHaveLength(1)
})

test('a port that is taken is named, with what it was for', async () => {
  const again = openUrl({
    limit: { name: 'api', timeoutSeconds: 5 },
    port: url.port,
    now: Date.now,
    handler,
    onFailure: () => {},
  })
  await expect(again).rejects.toThrow(`Port ${url.port} (api) is taken`)
})

test('stopping lets the request under way finish and takes no other', async () => {
  const entered = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  handler = async () => {
    entered.resolve()
    await open.promise
    return { statusCode: 200, body: 'done' }
  }
  const under = exchange('/')
  await entered.promise
  const stopped = url.stop()
  await expect(exchange('/')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  open.resolve()
  expect(await text(await under)).toBe('done')
  await stopped
})
