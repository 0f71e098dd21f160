// Judges what the door made of an input: only our own refusals, nothing written for them, nothing forged taken, nothing honest turned away.
import type { HttpHandler, HttpResult } from '../../functions/lambda.ts'
import { isRecord } from '../../shared/a2a/read.ts'
import { errorCodes, says, statusOf } from '../../shared/errors.ts'
import type { Called } from './aws.ts'
import type { Input, Signed } from './inputs.ts'
import type { Hook } from './scene.ts'

/** A door, and what can be seen of it from outside. */
export type Watched = { handler: HttpHandler; calls: () => Called[]; lines: () => string[] }

/** More calls than any push needs: subscription and agent twice, keys, the record, the message, the counters. */
const mostCalls = 10

const refusals = new Set([
  'bad_request',
  'unauthorized',
  'not_found',
  'method_not_allowed',
  'too_large',
  'unsupported_media_type',
  'unreadable_push',
  'rate_limited',
])

/**
 * Hands one input to the door.
 * @throws Error saying which promise was broken
 * @returns what became of it
 */
export async function judge(door: Watched, input: Input): Promise<string> {
  const result = await door.handler(input.event as Parameters<HttpHandler>[0])
  const calls = door.calls()
  const lines = door.lines()
  const records = calls.filter(({ operation }) => operation === 'PutItem').length
  const jobs = calls.filter(({ operation }) => operation === 'SendMessage')
  must(calls.length <= mostCalls, `It cost ${calls.length} calls`)
  for (const line of lines) must(!tells(line, input.hook), 'A log line gives a secret away')
  const { statusCode: status, body = '' } = result
  if (status === 200 || status === 202) {
    if (input.honest || jobs.length > 0) must(isProven(input), 'A push without proof was taken')
    for (const job of jobs) must(isAsked(job, input), 'The job is not about what was pushed')
    must(records <= 1 && jobs.length <= 1, `${records} records and ${jobs.length} jobs`)
    return JSON.parse(body.startsWith('{') ? body : '{"status":"echo"}').status
  }
  must(!input.honest || status === 429, `An honest push was answered ${status}: ${body}`)
  must(records === 0, `${status} left a record`)
  must(jobs.length === 0 || status === 413, `${status} left a job`)
  return codeOf(result)
}

function must(isSo: boolean, fault: string): void {
  if (!isSo) throw new Error(fault)
}

/** Secrets are never put into bodies by the fuzzer, so that no line may hold one. */
const tells = (line: string, hook: Hook): boolean =>
  line.includes(hook.hook) ||
  (hook.token !== undefined && line.includes(hook.token)) ||
  (hook.authorization !== undefined && line.includes(hook.authorization.replace(/^\w+ /, ''))) ||
  /eyJ[\w-]{8,}\./.test(line)

/** The code of a refusal, which must be one of the door's own, in its own words. */
function codeOf({ statusCode, headers = {}, body = '' }: HttpResult): string {
  const { title, status, code, detail } = JSON.parse(body)
  const known = errorCodes.find(one => one === code)
  if (known === undefined || !refusals.has(known)) throw new Error(`It answered ${statusCode}: ${body}`)
  must(
    title === says(known) && status === statusCode && statusCode === statusOf(known),
    `It answered ${body}`,
  )
  must(headers['content-type'] === 'application/problem+json', `It answered as ${headers['content-type']}`)
  must(code !== 'unauthorized' || detail === undefined, 'It told a stranger what was wrong')
  return known
}

/** Whether the input truly carried a proof of the hook that it was sent to: told from its text, not by the door's own rooms. */
function isProven({ hook, signed, event }: Input): boolean {
  const told = JSON.stringify(event)
  if (!hook.live || !told.includes(hook.hook)) return false
  if (!hook.signed)
    return [hook.token, hook.authorization?.replace(/^\w+ /, '')].some(
      secret => secret !== undefined && told.includes(secret),
    )
  return (
    signed !== undefined && isSigned(told, signed) && isMeant(hook, signed) && isBound(signed, bodyIn(event))
  )
}

/** The signed part stands there as it was signed, with a signature that says the same. */
function isSigned(told: string, { text }: Signed): boolean {
  const [head = '', claims = '', signature = ''] = text.split('.')
  const at = told.indexOf(`${head}.${claims}.`)
  const found = /^[\w-]+/.exec(told.slice(at + head.length + claims.length + 2))?.[0] ?? ''
  return at >= 0 && Buffer.from(found, 'base64url').equals(Buffer.from(signature, 'base64url'))
}

const isMeant = ({ url, legacy }: Hook, { claims: { aud } }: Signed): boolean =>
  [aud].flat().includes(url) || (legacy && aud === undefined)

/** The body says what was signed, in this or another spelling; or no digest bound it. */
const isBound = ({ claims, body: signedBody }: Signed, body: Uint8Array): boolean =>
  claims.request_body_sha256 === undefined ||
  Buffer.from(signedBody).equals(Buffer.from(body)) ||
  JSON.stringify(JSON.parse(textOf(signedBody))) === JSON.stringify(JSON.parse(textOf(body)))

/** The bytes that an event carries. */
const bodyIn = (event: unknown): Uint8Array =>
  isRecord(event) && typeof event.body === 'string'
    ? Buffer.from(event.body, event.isBase64Encoded === true ? 'base64' : 'utf8')
    : new Uint8Array()

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

/** The task of a job is named by the body, or by what was signed, and is one that the hook is for. */
function isAsked({ body: message }: Called, { hook, signed, event }: Input): boolean {
  const { taskId } = JSON.parse(String(message.MessageBody))
  if (hook.taskId !== undefined && taskId !== hook.taskId) return false
  if (hook.signed && signed?.claims.taskId === taskId) return true
  return stringsIn(JSON.parse(textOf(bodyIn(event)))).includes(taskId)
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : []
}
