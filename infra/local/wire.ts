// Serves the AWS JSON protocol on the loopback address and injects faults on demand; it knows no operation of its own.
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

/** One call of an AWS operation. */
export type Call = {
  service: 'dynamodb' | 'sqs'
  operation: string
  /** Access key id of the caller; every door uses its own name. */
  who: string
  /** The SDK's id of the call, the same for each of its attempts. */
  id: string
  body: Record<string, unknown>
}

/** `throttle` refuses before the effect; `fail_after` lets the effect happen, then drops the connection. */
export type Fault = 'throttle' | 'fail_after'

/**
 * Decides before each call whether it goes wrong; may take its time, which makes the service slow. The calls of the
 * ground itself (making table and queues, carrying messages) come as `ground`.
 */
export type Faults = (call: Call) => Fault | undefined | Promise<Fault | undefined>

/** What a call came to. */
export type Outcome = {
  status: number
  /** Read or write units that AWS would bill; DynamoDB only. */
  units?: number
  /** Name of the exception, when it is one. */
  error?: string
}

export type Answer = { status: number; body: Record<string, unknown>; units?: number }

export type WireOptions = {
  faults?: Faults | undefined
  /** Told of every call after its effect. */
  onCall?: ((call: Call, outcome: Outcome) => void) | undefined
}

export type Wire = { endpoint: string; stop: () => Promise<void> }

type Service = {
  name: Call['service']
  /** Exception that the service gives when it throttles. */
  throttled: string
  answer: (call: Call) => Promise<Answer>
}

/** An exception of an AWS service. */
export const exception = (type: string, message: string, more: Record<string, unknown> = {}): Answer => ({
  status: 400,
  body: { __type: type, message, ...more },
})

/** Starts a server for one service on a free port of 127.0.0.1. */
export async function serveWire(service: Service, options: WireOptions): Promise<Wire> {
  const server = createServer((request, response) => {
    // A caller that hangs up is no fault of ours.
    request.on('error', () => {})
    response.on('error', () => {})
    serve(service, options, request, response).catch(() => request.socket.destroy())
  })
  server.keepAliveTimeout = 120_000
  const port = await listen(server, 0)
  return {
    endpoint: `http://127.0.0.1:${port}`,
    stop: () => close(server),
  }
}

/** Listens on 127.0.0.1 and gives back the port. */
export async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve())
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no port.')
  return address.port
}

/** Ends a server with all its connections. */
export const close = (server: Server): Promise<void> =>
  new Promise(resolve => {
    server.close(() => resolve())
    server.closeAllConnections()
  })

async function serve(
  service: Service,
  { faults, onCall }: WireOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const call = await readCall(service.name, request)
  if (call === undefined) return reply(response, exception('SerializationException', 'Not a signed call'))
  const fault = await faults?.(call)
  if (fault === 'throttle') {
    onCall?.(call, { status: 400, error: service.throttled })
    return reply(response, exception(service.throttled, 'Throttled on demand'))
  }
  const answer = await service.answer(call).catch(broken)
  onCall?.(call, outcomeOf(answer))
  if (fault === 'fail_after') request.socket.destroy()
  else reply(response, answer)
}

async function readCall(service: Call['service'], request: IncomingMessage): Promise<Call | undefined> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const operation = /\.(\w+)$/.exec(String(request.headers['x-amz-target']))?.[1]
  const who = /Credential=([^/]+)\//.exec(request.headers.authorization ?? '')?.[1]
  const body: unknown = JSON.parse(Buffer.concat(chunks).toString() || '{}')
  if (operation === undefined || who === undefined || !isRecord(body)) return undefined
  const id = String(request.headers['amz-sdk-invocation-id'])
  return { service, operation, who, id, body }
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const broken = (error: unknown): Answer => ({
  status: 500,
  body: { __type: 'InternalServerError', message: error instanceof Error ? error.message : String(error) },
})

function outcomeOf({ status, body, units }: Answer): Outcome {
  return {
    status,
    ...(units !== undefined && { units }),
    ...(typeof body.__type === 'string' && { error: body.__type.replace(/^.*#/, '') }),
  }
}

function reply(response: ServerResponse, { status, body }: Answer): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': 'application/x-amz-json-1.0',
    'content-length': Buffer.byteLength(text),
    'x-amzn-requestid': randomUUID(),
  })
  response.end(text)
}
