// Clients that were away: each has a webhook address of its own, and believes only what the standardwebhooks library accepts.
import { Webhook } from 'standardwebhooks'
import { vi } from 'vitest'
import { type Answer, startReceiver } from './receiver.ts'

/** A webhook as it arrived, its signature and time found right. */
export type Told = {
  /** `webhook-id`. */
  id: string
  /** Relay's time at arrival, in ms. */
  at: number
  timestamp: string
  signature: string
  traceparent: string
  type: string
  data: {
    state: string
    taskId: string
    agent: string
    rev: number
    seq?: number
    target: string
    budget?: string
    pushedAt?: string
    about?: Record<string, string>
  }
}

export type Client = {
  /** Client id, and name of its inbox. */
  name: string
  url: string
  /** The `whsec_` secret, once the target was made. */
  secret: string
  /** How it answers from now on; 200 unless said. */
  answer: (next: Answer) => void
  /** Everything it was told, in order. @throws if one of the signatures is wrong */
  told: () => Told[]
  /** The last it was told, if that much is signed right. @throws if not */
  last: () => Told | undefined
  /** The states it was told, in order. */
  states: () => string[]
}

export type Clients = { make: () => Client; stop: () => Promise<void> }

type Arrived = { at: number; body: string; headers: Record<string, string> }

/**
 * Starts a receiver for any number of clients.
 * @param now the time by which signatures are judged, in ms
 * @param onArrival called after each webhook
 */
export async function startClients(now: () => number, onArrival: () => void): Promise<Clients> {
  const receiver = await startReceiver()
  const arrivals = new Map<string, Arrived[]>()
  const answers = new Map<string, Answer>()
  receiver.answer(({ url, body, headers }) => {
    const flat = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
    const before = arrivals.get(url) ?? []
    arrivals.set(url, [...before, { at: now(), body, headers: flat }])
    onArrival()
    return answers.get(url) ?? {}
  })
  let made = 0
  return {
    make: () => {
      const name = `client-${++made}`
      const path = `/woken/${name}`
      const told = () => (arrivals.get(path) ?? []).map(arrived => judge(client.secret, arrived))
      const client: Client = {
        name,
        url: receiver.origin + path,
        secret: '',
        answer: next => answers.set(path, next),
        told,
        last: () => (arrivals.get(path) ?? []).slice(-1).map(arrived => judge(client.secret, arrived))[0],
        states: () => told().map(({ data }) => data.state),
      }
      return client
    },
    stop: receiver.stop,
  }
}

/** The library knows the system's clock only, so that is set to the time of arrival while it judges. */
function judge(secret: string, { at, body, headers }: Arrived): Told {
  vi.useFakeTimers({ now: at, toFake: ['Date'] })
  try {
    new Webhook(secret).verify(body, headers)
  } finally {
    vi.useRealTimers()
  }
  const { type, data } = JSON.parse(body)
  const text = (name: string) => headers[name] ?? ''
  return {
    id: text('webhook-id'),
    at,
    timestamp: text('webhook-timestamp'),
    signature: text('webhook-signature'),
    traceparent: text('traceparent'),
    type,
    data,
  }
}
