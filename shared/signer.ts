// Signs calls to AWS (Signature Version 4) just as the SDK would, at a third of the cost; what is none of our plain calls it leaves to the SDK's own signer.
import { hmac, sha256Hex } from './hash.ts'

type Request = {
  method: string
  path: string
  query?: object | undefined
  headers: Record<string, string>
  body?: unknown
}
/** What the SDK says with each request; the date has the known offset of the clock in it. */
type Options = { signingDate?: unknown; signingRegion?: string; signingService?: string }
type Signer<Message, With> = { sign: (request: Message, options?: With) => Promise<Message> }
type Credentials = { accessKeyId: string; secretAccessKey: string; sessionToken?: string | undefined }

/** The parts of a client's configuration that signing is made of. */
type Config<Message, With, Scheme> = {
  signer: (scheme?: Scheme) => Promise<Signer<Message, With>>
  /** Asked at each call, so that renewed credentials are used at once. */
  credentials: () => Promise<Credentials>
  /** Where calls go unless their endpoint says otherwise. */
  region: () => Promise<string>
  defaultSigningName: string
}

/** Puts our signer in front of a client's own. */
export function signQuickly<Message extends Request, With extends Options, Scheme>(
  config: Config<Message, With, Scheme>,
): void {
  const { signer } = config
  const keyOf = rememberKey()
  config.signer = async scheme => ({
    sign: async (request, options) => {
      const call = scheme === undefined && readCall(request, options?.signingDate)
      const credentials = await config.credentials()
      if (!call || oddValue.test(credentials.sessionToken ?? ''))
        return (await signer(scheme)).sign(request, options)
      const region = options?.signingRegion ?? (await config.region())
      const place = { region, service: options?.signingService ?? config.defaultSigningName }
      sign(request.headers, { ...call, ...place }, credentials, keyOf)
      return request
    },
  })
}

/** A plain call: its body, which of its headers are signed, and when. */
type Call = { names: string[]; body: string | Uint8Array; date: Date }
type Place = { region: string; service: string }

/** Never signed, here as in the SDK: what others on the way may set or change. */
const unsigned = new Set([
  ...['cache-control', 'connection', 'expect', 'from', 'keep-alive', 'max-forwards', 'pragma', 'referer'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade', 'user-agent', 'x-amzn-trace-id'],
])
/** Made by signing; a second attempt finds those of the first. */
const made = { signature: 'authorization', date: 'x-amz-date' }
const tokenName = 'x-amz-security-token'
const digestName = 'x-amz-content-sha256'

/** Names and values that are not signed as they stand. */
const oddName = /[^a-z\d-]|^(?:date$|proxy-|sec-)/
const oddValue = /^ | $| {2}|[^ -~]/

/** Reads a plain call: a POST to `/` with its body in memory and nothing odd in its headers. */
function readCall({ method, path, query, headers, body }: Request, date: unknown): Call | undefined {
  if (method !== 'POST' || path !== '/' || Object.keys(query ?? {}).length > 0) return undefined
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return undefined
  if (!(date instanceof Date)) return undefined
  const names = []
  for (const [name, value] of Object.entries(headers)) {
    if (unsigned.has(name.toLowerCase()) || name === made.signature || name === made.date) continue
    if (oddName.test(name) || oddValue.test(value)) return undefined
    names.push(name)
  }
  return { names, body, date }
}

/** Adds the headers of a signature ("Create a signed AWS API request", IAM user guide). */
function sign(headers: Request['headers'], call: Call & Place, credentials: Credentials, keyOf: KeyOf): void {
  const { names, body, date, region, service } = call
  const { accessKeyId, secretAccessKey, sessionToken } = credentials
  // 20260102T030405Z
  const time = `${date.toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`
  const day = time.slice(0, 8)
  headers[made.date] = time
  if (sessionToken) headers[tokenName] = sessionToken
  headers[digestName] ??= sha256Hex(body)
  const signed = [...new Set([...names, made.date, digestName, ...(sessionToken ? [tokenName] : [])])].sort()
  const list = signed.join(';')
  const lines = signed.map(name => `${name}:${headers[name]}\n`).join('')
  const scope = `${day}/${region}/${service}/aws4_request`
  const digest = sha256Hex(`POST\n/\n\n${lines}\n${list}\n${headers[digestName]}`)
  const signature = hmac(
    keyOf(secretAccessKey, day, region, service),
    `AWS4-HMAC-SHA256\n${time}\n${scope}\n${digest}`,
  )
  headers[made.signature] =
    `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${list}, Signature=${Buffer.from(signature).toString('hex')}`
}

type KeyOf = (secret: string, ...scope: string[]) => Uint8Array

/** The signing key of a secret, day, region and service; a client uses one all day long. */
function rememberKey(): KeyOf {
  let last: { of: string; key: Uint8Array } | undefined
  return (secret, ...scope) => {
    const of = JSON.stringify([secret, scope])
    if (last?.of === of) return last.key
    let key: Uint8Array = Buffer.from(`AWS4${secret}`)
    for (const part of [...scope, 'aws4_request']) key = hmac(key, part)
    last = { of, key }
    return key
  }
}
