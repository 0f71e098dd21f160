// Reads an HTTP request out of whatever event Lambda was handed: Function URL, HTTP API, REST API, load balancer or VPC Lattice.
import { isRecord } from '../shared/a2a/read.ts'

/** An HTTP request as a door reads it. */
export type HttpRequest = {
  method: string
  /** As sent: nothing decoded, no dots resolved. */
  path: string
  query: URLSearchParams
  /** Names in lower case; repeated headers joined by commas (RFC 9110 section 5.3). */
  headers: Record<string, string | undefined>
  body: Uint8Array<ArrayBuffer>
  /** Address of the caller as the front door saw it; empty if it does not say. */
  source: string
}

type Fields = Record<string, unknown>

/**
 * Reads a request.
 * @returns undefined for an event that is no HTTP request, such as one of a queue
 */
export function readRequest(event: unknown): HttpRequest | undefined {
  if (!isRecord(event)) return undefined
  const context = fieldsOf(event.requestContext)
  const http = fieldsOf(context.http)
  const method = textOf(http.method) ?? textOf(event.httpMethod) ?? textOf(event.method)
  const path = textOf(event.rawPath) ?? textOf(event.path)
  if (method === undefined || path === undefined) return undefined
  const [bare = '', inPath = ''] = path.split('?', 2)
  const headers = headersOf(event)
  return {
    method,
    path: bare,
    query: new URLSearchParams(textOf(event.rawQueryString) ?? queryOf(event, inPath)),
    headers,
    body: bodyOf(event),
    source: textOf(http.sourceIp) ?? textOf(fieldsOf(context.identity).sourceIp) ?? forwardedFor(headers),
  }
}

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {})

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const textsOf = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).filter(one => typeof one === 'string')

/** REST APIs and load balancers list repeated headers apart; the others join them or hand over lists. */
function headersOf(event: Fields): HttpRequest['headers'] {
  const headers: HttpRequest['headers'] = {}
  for (const [name, value] of Object.entries(fieldsOf(event.headers)))
    headers[name.toLowerCase()] = textsOf(value).join(', ')
  for (const [name, value] of Object.entries(fieldsOf(event.multiValueHeaders)))
    headers[name.toLowerCase()] = textsOf(value).join(', ')
  return headers
}

/** Load balancers and VPC Lattice append the address of the caller to whatever the caller wrote there itself. */
const forwardedFor = (headers: HttpRequest['headers']): string =>
  headers['x-forwarded-for']?.split(',').at(-1)?.trim() ?? ''

function queryOf(event: Fields, inPath: string): string {
  if (inPath !== '') return inPath
  const query = new URLSearchParams()
  const several = fieldsOf(event.multiValueQueryStringParameters)
  const from = Object.keys(several).length > 0 ? several : fieldsOf(event.queryStringParameters)
  for (const [name, value] of Object.entries(from)) for (const one of textsOf(value)) query.append(name, one)
  return query.toString()
}

const bodyOf = ({ body, isBase64Encoded }: Fields): Uint8Array<ArrayBuffer> =>
  Buffer.from(textOf(body) ?? '', isBase64Encoded === true ? 'base64' : 'utf8')
