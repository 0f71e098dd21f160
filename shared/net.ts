// The only way out to the network: judges where a request may go, pins the judged address, and bounds time and bytes.
import { lookup as systemLookup } from 'node:dns/promises'
import * as http from 'node:http'
import * as https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { type Duplex, PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { isIn, isLocalName, isName, isPublic, parseAddress, type Range, readRanges } from './address.ts'

/** What may be called. The default, on AWS, is https on port 443 of public addresses. */
export type NetRules = {
  allowHttp: boolean
  /** CIDRs that may be called although they are private, e.g. `127.0.0.0/8` on a laptop. */
  allowAddresses: string[]
  allowPorts: number[] | '*'
  /** Our own origins: whoever could make us call ourselves could make us do it for ever. */
  ownOrigins?: readonly string[]
}

export type NetRequest = {
  url: string
  method?: 'GET' | 'POST' | 'DELETE'
  headers?: Record<string, string>
  body?: string | Uint8Array
  /** Limit of the whole exchange, answer's body included. */
  timeoutMs: number
  /** Limit of the answer's body, counted after inflation. */
  maxBytes: number
  /** Gives back the start of a larger body instead of failing. */
  cut?: boolean
  /** Ends the exchange before its time, as a `timeout`. */
  signal?: AbortSignal
}

/** `cut`: the body went on beyond its limit, and was left there. */
export type NetReply = { status: number; headers: Headers; body: Uint8Array; cut?: true }

/**
 * `too_large`: the answer's body or head passed its limit. `tls`: the certificate or the handshake is wrong.
 * `unreachable`: everything else that kept an answer from being read, an encoding that is not taken included.
 */
export type NetFault = 'not_allowed' | 'unreachable' | 'timeout' | 'too_large' | 'tls'

/** An exchange that gave no usable answer. Its message names the host at most: no path, query or credentials. */
export class NetError extends Error {
  override readonly name = 'NetError'
  readonly fault: NetFault
  /** Status of the answer, if its head had arrived before the exchange failed. */
  readonly status: number | undefined
  constructor(fault: NetFault, message: string, cause?: unknown, status?: number) {
    super(message, { cause })
    this.fault = fault
    this.status = status
  }
}

export type Net = {
  /** One exchange; follows no redirect, so a 3xx is an answer like any other. @throws NetError */
  request: (request: NetRequest) => Promise<NetReply>
  /** Judges an address without calling it: gives back its normal form. @throws NetError `not_allowed` */
  check: (url: string) => URL
}

/** All addresses of a name, as the system resolves it. */
export type Lookup = (name: string) => Promise<{ address: string; family: number }[]>

const resolveAll: Lookup = name => systemLookup(name, { all: true, order: 'verbatim' })

/** Limit of the answer's head, in bytes. */
const maxHeadBytes = 16 * 1024

/** Headers that frame a message or route it; only this file may set them. */
const framing =
  /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive|proxy-.*)$/

/** How OpenSSL and Node name faults of certificates and handshakes. */
const tlsFault =
  /^(?:ERR_TLS|ERR_SSL|EPROTO|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_|INVALID_|PATH_LENGTH)/

/**
 * Builds the way out. Every exchange has a connection of its own (no pool), so that each is judged afresh;
 * proxies named by the environment are not used, because they would move the resolving elsewhere.
 * @param options `lookup` replaces the system's resolver
 * @throws Error if `allowAddresses` holds something that is no CIDR
 */
export function createNet(rules: NetRules, { lookup = resolveAll }: { lookup?: Lookup } = {}): Net {
  const allowed = readRanges(rules.allowAddresses)
  const check = (text: string): URL => judgeUrl(text, rules, allowed)
  return { check, request: async request => exchange(check(request.url), request, allowed, lookup) }
}

/**
 * The same way out for one piece of work: no exchange of it begins once it took so long, in ms.
 * @param now tells the time, in ms
 */
export function hurried({ check, request }: Net, milliseconds: number, now: () => number): Net {
  const began = now()
  const ask = async (asked: NetRequest): Promise<NetReply> => {
    if (now() - began > milliseconds) throw new NetError('timeout', 'No time was left for one more exchange.')
    return request(asked)
  }
  return { check, request: ask }
}

/** Judges what can be told without DNS. A local name passes where private addresses are allowed; its addresses decide. */
function judgeUrl(text: string, rules: NetRules, allowed: readonly Range[]): URL {
  // The URL parser removes tabs and newlines and trims blanks: the text judged must be the text used.
  if (/[\p{Cc} ]/u.test(text)) throw refused('The URL holds blanks or control characters')
  if (!URL.canParse(text)) throw refused('The URL cannot be read')
  const url = new URL(text)
  url.hash = ''
  if (url.protocol !== 'https:' && !(rules.allowHttp && url.protocol === 'http:'))
    throw refused(rules.allowHttp ? 'The URL is neither https nor http' : 'The URL is not https')
  if (rules.ownOrigins?.includes(url.origin)) throw refused('The URL is one of our own')
  // An empty one is lost on the way, but whoever writes it means something else than he says.
  if (url.username !== '' || url.password !== '' || /^[a-z+.-]+:[\\/]*[^\\/?#]*@/i.test(text.trim()))
    throw refused('The URL holds credentials')
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  if (port === 0 || !(rules.allowPorts === '*' || rules.allowPorts.includes(port)))
    throw refused(`Port ${port} may not be called`)
  const host = hostOf(url)
  if (isIP(host) !== 0) {
    if (!mayCall(host, allowed)) throw refused(`${host} is not a public address`)
  } else if (!isName(host)) throw refused('The host is no DNS name without a dot at its end')
  else if (isLocalName(host) && allowed.length === 0) throw refused(`${host} is a local name`)
  return url
}

const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '')

const refused = (message: string): NetError => new NetError('not_allowed', `${message}.`)

/** A local name is trusted with allowed private addresses only: that is the one reason to let it through. */
function mayCall(text: string, allowed: readonly Range[], name = ''): boolean {
  const address = parseAddress(text)
  if (address === undefined) return false
  return isIn(address, allowed) || (isPublic(address) && !(name !== '' && isLocalName(name)))
}

async function exchange(
  url: URL,
  request: NetRequest,
  allowed: readonly Range[],
  lookup: Lookup,
): Promise<NetReply> {
  const ending = new AbortController()
  const end = (): void => ending.abort()
  const timer = setTimeout(end, request.timeoutMs)
  request.signal?.addEventListener('abort', end)
  if (request.signal?.aborted) end()
  const seen: { status?: number } = {}
  try {
    const headers = headersOf(request)
    const pinned = await pin(hostOf(url), allowed, lookup, ending.signal)
    return await call({ url, request, headers, pinned, seen }, ending.signal)
  } catch (error) {
    if (ending.signal.aborted)
      throw new NetError(
        'timeout',
        request.signal?.aborted
          ? `${url.host} had not answered when the time was up.`
          : `${url.host} took longer than ${request.timeoutMs} ms.`,
        undefined,
        seen.status,
      )
    throw faultOf(error, url.host, seen.status)
  } finally {
    clearTimeout(timer)
    request.signal?.removeEventListener('abort', end)
    // Destroys the connection whatever the outcome, so that nothing runs on behind a settled promise.
    ending.abort()
  }
}

function headersOf({ headers: given = {} }: NetRequest): Record<string, string> {
  try {
    const headers = new Headers({ 'accept-encoding': 'gzip, br', 'user-agent': 'rouse' })
    for (const [name, value] of Object.entries(given)) headers.set(name, value)
    const names = [...headers.keys()]
    if (!names.some(name => framing.test(name))) return Object.fromEntries(headers)
  } catch {
    // Headers' own message would repeat the value, which may be a secret.
    throw refused('A header holds a character that headers cannot carry')
  }
  throw refused('A header is set that only the transport may set')
}

/**
 * Resolves a name once and judges every answer: one bad address among them refuses all, because which of them
 * would be used is the resolver's choice. The result feeds the socket, so a second answer (DNS rebinding) is never asked for.
 */
async function pin(
  host: string,
  allowed: readonly Range[],
  lookup: Lookup,
  signal: AbortSignal,
): Promise<LookupFunction> {
  const family = isIP(host)
  const found = family === 0 ? await unlessAborted(lookup(host), signal) : [{ address: host, family }]
  const [first] = found
  if (first === undefined) throw new NetError('unreachable', `${host} has no address.`)
  // The address is not told: names that only resolve inside our network are none of the caller's business.
  const name = family === 0 ? host : undefined
  if (!found.every(({ address }) => mayCall(address, allowed, name)))
    throw refused(`${host} resolves to an address that may not be called`)
  return (_name, { all }, done) => (all ? done(null, found) : done(null, first.address, first.family))
}

/** getaddrinfo cannot be cancelled: when the time is up, its late answer is left alone. */
const unlessAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    work.then(resolve, reject)
  })

type Call = {
  url: URL
  request: NetRequest
  headers: Record<string, string>
  pinned: LookupFunction
  /** Filled once the answer's head is there. */
  seen: { status?: number }
}

function call({ url, request, headers, pinned, seen }: Call, signal: AbortSignal): Promise<NetReply> {
  const host = hostOf(url)
  const options: https.RequestOptions & { autoSelectFamilyAttemptTimeout: number } = {
    method: request.method ?? 'GET',
    host,
    port: url.port,
    path: url.pathname + url.search,
    headers,
    lookup: pinned,
    // A far host must not lose its first address after Node's 250 ms when the next one leads nowhere.
    autoSelectFamilyAttemptTimeout: 1000,
    agent: false,
    maxHeaderSize: maxHeadBytes,
    // Said aloud, so that no environment variable switches them off.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    servername: isIP(host) === 0 ? host : '',
    signal,
  }
  return new Promise((resolve, reject) => {
    const asked = url.protocol === 'https:' ? https.request(options) : http.request(options)
    asked.on('response', answer => {
      seen.status = answer.statusCode ?? 0
      read(answer, request).then(resolve, reject)
    })
    asked.on('error', reject)
    // Without this, a 101 would end the connection without an answer or an error.
    asked.on('upgrade', (_answer, socket) => {
      socket.destroy()
      reject(new NetError('unreachable', `${url.host} switched protocols.`))
    })
    asked.end(request.body)
  })
}

/** Reads the body as it comes, inflates it, and stops at the limit: what is not read yet is never inflated. */
async function read(answer: http.IncomingMessage, { maxBytes, cut = false }: NetRequest): Promise<NetReply> {
  const chunks: Uint8Array[] = []
  const tooLarge = new NetError('too_large', `The answer is larger than ${maxBytes} bytes.`)
  let packed = 0
  let size = 0
  const count = async function* (source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of source) {
      packed += chunk.length
      yield chunk
    }
  }
  const collect = async (source: AsyncIterable<Uint8Array>): Promise<void> => {
    for await (const chunk of source) {
      size += chunk.length
      // What is beyond the limit is dropped at once: a piece that an inflater gives may be large.
      chunks.push(size > maxBytes ? chunk.subarray(0, chunk.length - (size - maxBytes)) : chunk)
      if (size > maxBytes) throw tooLarge
    }
  }
  await pipeline(answer, count, inflater(answer), collect).catch((error: unknown) => {
    if (error === tooLarge && cut) return
    // An empty body is empty in every encoding, although inflaters call it cut short.
    if (!answer.complete || packed > 0) throw error
  })
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(answer.headersDistinct))
    for (const value of values) headers.append(name, value)
  const reply = { status: answer.statusCode ?? 0, headers, body: Buffer.concat(chunks) }
  return size > maxBytes ? { ...reply, cut: true } : reply
}

/** One layer of a known encoding at most: layers multiply what a small body can become (RFC 9110 section 8.4). */
function inflater(answer: http.IncomingMessage): Duplex {
  const layers = (answer.headers['content-encoding'] ?? '').toLowerCase().split(/[\s,]+/)
  const [layer, more] = layers.filter(name => name !== '' && name !== 'identity')
  if (layer === undefined) return new PassThrough()
  if (more === undefined) {
    if (layer === 'gzip' || layer === 'x-gzip') return createGunzip()
    if (layer === 'deflate') return createInflate()
    if (layer === 'br') return createBrotliDecompress()
  }
  throw new NetError('unreachable', 'The answer is in an encoding that is not taken.')
}

/** Gives every failure one of the five names. Causes are not kept: the parser's would hold the answer's bytes. */
function faultOf(error: unknown, host: string, status: number | undefined): NetError {
  if (error instanceof NetError) return new NetError(error.fault, error.message, undefined, status)
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  if (code === 'HPE_HEADER_OVERFLOW')
    return new NetError('too_large', `${host} answered with too large a head.`)
  if (tlsFault.test(code)) return new NetError('tls', `${host} has a TLS fault (${code}).`)
  return new NetError('unreachable', `${host} cannot be reached (${code}).`, undefined, status)
}
