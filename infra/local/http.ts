// Serves a handler at a port of 127.0.0.1 as a Lambda Function URL does (payload format 2.0); it reads no path.
import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { LambdaFunctionURLEvent } from 'aws-lambda'
import { type Handler, invoke } from './lambda.ts'
import { close, isRecord, listen } from './wire.ts'

export type FunctionUrl = {
  port: number
  /** Takes no new connection and waits for the requests under way. */
  stop: () => Promise<void>
  /** Drops all connections. */
  kill: () => Promise<void>
}

export type UrlOptions = {
  /** Name and time-out of the function. */
  limit: { name: string; timeoutSeconds: number }
  /** 0 chooses a free port. */
  port: number
  handler: Handler<LambdaFunctionURLEvent>
  now: () => number
  /** Told when a handler threw, ran out of time, or answered nonsense: the caller only sees 502. */
  onFailure: (error: unknown) => void
}

/** Largest event and largest answer in bytes (Lambda quotas, synchronous invocation). */
const largest = 6 * 1024 * 1024

/**
 * Opens a function URL.
 * @throws Error naming the port when it is taken
 */
export async function openUrl(options: UrlOptions): Promise<FunctionUrl> {
  // JDK clients ask for h2c together with the request; to take that as an upgrade would lose the request.
  const server = createServer({ shouldUpgradeCallback: () => false }, (request, response) => {
    request.on('error', () => {})
    response.on('error', () => {})
    serve(options, request, response).catch(() => request.socket.destroy())
  })
  server.keepAliveTimeout = 65_000
  const port = await listen(server, options.port).catch(error => {
    if (error.code === 'EADDRINUSE')
      throw new Error(`Port ${options.port} (${options.limit.name}) is taken by another program`, {
        cause: error,
      })
    throw error
  })
  return {
    port,
    stop: () =>
      new Promise(resolve => {
        // Who was answered last must not keep the server up by asking no more.
        server.keepAliveTimeout = 1
        server.close(() => resolve())
        server.closeIdleConnections()
      }),
    kill: () => close(server),
  }
}

async function serve(options: UrlOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await readBody(request)
  if (body === undefined) {
    response.writeHead(413, { 'content-type': 'application/json', connection: 'close' })
    response.end('{"Message":"Request must be smaller than 6291456 bytes for the InvokeFunction operation"}')
    return
  }
  try {
    const event = toEvent(request, body, options.now())
    fromResult(response, await invoke(options.limit, options.handler, event))
  } catch (error) {
    options.onFailure(error)
    for (const name of response.getHeaderNames()) response.removeHeader(name)
    response.writeHead(502, { 'content-type': 'text/plain' })
    response.end('Internal Server Error')
  }
}

const isTooLarge = (length: number): boolean => Math.ceil(length / 3) * 4 > largest

/** The body as base64, or undefined when the event would be too large. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  // Read to the end in any case: a caller that still sends does not hear the answer.
  for await (const chunk of request) {
    length += chunk.length
    if (isTooLarge(length)) chunks.length = 0
    else chunks.push(chunk)
  }
  return isTooLarge(length) ? undefined : Buffer.concat(chunks).toString('base64')
}

/** Path and query stay exactly as received: no dot segment is resolved, no escape undone. */
function toEvent(request: IncomingMessage, body: string, now: number): LambdaFunctionURLEvent {
  const url = request.url ?? '/'
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const query = mark < 0 ? '' : url.slice(mark + 1)
  const { cookie, ...received } = request.headersDistinct
  const headers = joined(Object.entries(received))
  const cookies = cookie?.flatMap(line => line.split(/; */)).filter(Boolean) ?? []
  const parameters = new URLSearchParams(query)
  const method = request.method ?? 'GET'
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: query,
    ...(cookies.length > 0 && { cookies }),
    headers: { 'x-amzn-trace-id': traceId(now), ...headers },
    ...(query !== '' && {
      queryStringParameters: joined(
        [...new Set(parameters.keys())].map(name => [name, parameters.getAll(name)]),
      ),
    }),
    requestContext: {
      accountId: 'anonymous',
      apiId: 'local',
      domainName: headers.host ?? '',
      domainPrefix: 'local',
      http: {
        method,
        path,
        protocol: `HTTP/${request.httpVersion}`,
        sourceIp: request.socket.remoteAddress ?? '',
        userAgent: headers['user-agent'] ?? '',
      },
      requestId: randomUUID(),
      routeKey: '$default',
      stage: '$default',
      time: new Date(now).toISOString(),
      timeEpoch: now,
    },
    ...(body !== '' && { body }),
    isBase64Encoded: body !== '',
  }
}

const joined = (entries: [string, string[] | undefined][]): Record<string, string> =>
  Object.fromEntries(entries.map(([name, values]) => [name, (values ?? []).join(',')]))

/** Trace header as AWS makes it (X-Ray, "Tracing header"). */
const traceId = (now: number): string =>
  `Root=1-${Math.floor(now / 1000).toString(16)}-${randomBytes(12).toString('hex')}`

function fromResult(response: ServerResponse, result: unknown): void {
  if (!isRecord(result) || !Number.isInteger(result.statusCode))
    throw new Error('The answer has no statusCode')
  const text = typeof result.body === 'string' ? result.body : ''
  if (text.length > largest) throw new Error('The answer is larger than Lambda lets through')
  const cookies = Array.isArray(result.cookies) ? result.cookies.map(String) : []
  response.statusCode = Number(result.statusCode)
  for (const [name, value] of Object.entries(isRecord(result.headers) ? result.headers : {}))
    response.setHeader(name, Array.isArray(value) ? value.map(String) : String(value))
  if (cookies.length > 0) response.setHeader('set-cookie', cookies)
  response.end(Buffer.from(text, result.isBase64Encoded === true ? 'base64' : 'utf8'))
}
