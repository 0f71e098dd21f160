// Delivers one signed webhook and judges the answer. Calls the target through the net it is handed, and keeps nothing.

import { hopHeader } from '../names.ts'
import { type Net, NetError, type NetReply } from '../net.ts'
import { readRetryAfter } from '../retryafter.ts'
import { excerpt, longestWishMs, type Outcome, type Verdict } from './channel.ts'
import { sign } from './standard.ts'

/** Standard Webhooks 1.0.0 asks for 15 to 30 s; of the answer only the start is kept. */
const timeoutMs = 15_000
const maxBytes = 64 * 1024

type Webhook = {
  net: Net
  url: string
  /** `whsec_` secrets; each signs. */
  secrets: readonly string[]
  /** Public id of the wake, equal on every retry: it may have arrived although we think it did not. */
  id: string
  /** JSON text, sent and signed as it is. */
  body: string
  nowMs: number
  /** W3C `traceparent` of this attempt. */
  traceparent?: string
}

/** Sends a webhook once. Never throws for anything that the target or the network does. */
export async function sendWebhook(webhook: Webhook): Promise<Outcome> {
  const { net, url, secrets, id, body, nowMs, traceparent } = webhook
  const headers = {
    'content-type': 'application/json',
    [hopHeader]: '1',
    ...(traceparent !== undefined && { traceparent }),
    ...sign(secrets, { id, body, nowMs }),
  }
  try {
    return judge(await net.request({ url, method: 'POST', headers, body, timeoutMs, maxBytes }), nowMs)
  } catch (error) {
    if (error instanceof NetError) return judgeFault(error, nowMs)
    throw error
  }
}

function judge({ status, headers, body }: NetReply, nowMs: number): Outcome {
  const answer = excerpt(body)
  return { ...verdictOf(status, headers, nowMs), status, ...(answer !== undefined && { answer }) }
}

/** Whether the answer's status says that the target is only busy, and may say for how long. */
const isBusy = (status: number): boolean => [429, 502, 503, 504].includes(status)

function verdictOf(status: number, headers: Headers, nowMs: number): Verdict {
  if (status >= 200 && status < 300) return { kind: 'delivered' }
  if (status === 410) return { kind: 'disable', reason: 'The target answered 410 Gone.' }
  // Also 401, 403 and 404: a deploy can answer those for a minute. A redirect is not followed, and may be taken back.
  const reason = `The target answered ${status}.`
  const afterMs = isBusy(status)
    ? readRetryAfter(headers.get('retry-after'), nowMs, longestWishMs)
    : undefined
  return { kind: 'retry', reason, ...(afterMs !== undefined && { afterMs }) }
}

function judgeFault({ fault, status, message }: NetError, nowMs: number): Outcome {
  // Its head came: whatever became of its body, its status tells whether the message was taken.
  if (status !== undefined) return { ...verdictOf(status, new Headers(), nowMs), status }
  return { kind: fault === 'not_allowed' || fault === 'tls' ? 'config' : 'retry', reason: message }
}
