// Pushes to the real receive door on the local ground, whose clock stands still, and names what each push came to, so that a further case costs a line.
import * as http from 'node:http'
import { describe, expect, test } from 'vitest'
import { door as api } from '../../functions/api/app.ts'
import type { HttpHandler } from '../../functions/lambda.ts'
import { door as receive } from '../../functions/receive.ts'
import type { Clock } from '../../infra/local/clock.ts'
import { type Ground, startGround } from '../../infra/local/ground.ts'
import type { Fault } from '../../infra/local/wire.ts'
import { says } from '../../shared/errors.ts'
import { sha256Hex } from '../../shared/hash.ts'
import type { Relay } from '../../shared/relay.ts'
import { stillClock } from './clock.ts'
import type { Dialect, Sent } from './dialects.ts'
import { ear, hear } from './ear.ts'
import { type SigningKey, signJwt } from './keys.ts'
import { k1, rule, body as usualBody } from './pushes.ts'
import type { Receiver, Answer as Served } from './receiver.ts'
import type { Routes } from './routes.ts'
import { type Kind, makeTenants, type Spot, spotsOf, startKeyHost } from './spots.ts'

type Fields = Record<string, unknown>

/** Makes the Bearer token out of honest claims, at a time in seconds; null for none. */
export type Signer = (honest: Fields, now: number) => string | null

/** A push, honest but for what it says. `t-100` in a text body stands for a task of its own. */
export type Push = {
  to?: Kind | Spot
  method?: string
  /** Where instead of the hook's path. */
  path?: (path: string) => string
  query?: string
  jwt?: Signer
  /** More headers; undefined removes one, a list comes as so many lines. */
  headers?: Record<string, string | string[] | undefined> | undefined
  body?: string | Uint8Array
  task?: string
  source?: string
  /** Hands the door this event instead of going over the wire. */
  as?: Dialect
  /** Another instance of the door, for pushes by `as`. */
  at?: HttpHandler
}

export type Answer = { status: number; headers: Record<string, string>; text: string }

/** What receive did in AWS that had its effect. */
export type Effect = { operation: string; body: Fields; ok: boolean }

/**
 * What a push came to: `ACK` 2xx, one record and one job; `NOOP` 2xx and neither; `DENY` the one 401, `BAD` 400 or 422,
 * `LATER` 503 and when to come again, and the others by their status: all without record and job.
 */
export type Verdict =
  | 'ACK'
  | 'NOOP'
  | 'DENY'
  | 'BAD'
  | 'LATER'
  | '404'
  | '405'
  | '413'
  | '413 and a look'
  | '415'
  | '429'

type Play = Push | readonly Push[] | ((door: Door) => Promise<unknown>)

/** Number in the project's list of failure cases (0 for a rule of our own), guarantee, what is pushed, what it comes to. */
export type Row = readonly [number: number, says: string, play: Play, right: Verdict | readonly unknown[]]

export type Door = Routes & {
  ground: Ground
  /** Milliseconds since 1970; moved by `ground.advance` only. */
  now: () => number
  /** Key host of all agents. */
  host: Receiver
  /** What agents publish, by path. */
  serve: (spot: Spot, served: Served) => void
  /** How often a key set was fetched. */
  fetches: (spot: Spot) => number
  lines: string[]
  /** API key of the tenant. */
  key: string
  /** The API as another tenant sees it. */
  other: Routes
  /** A hook of this kind; `served` is what its agent's key host answers from the start, if it is no set. */
  spot: (kind?: Kind, served?: Served) => Promise<Spot>
  push: (push?: Push) => Promise<string>
  send: (push?: Push) => Promise<Answer>
  /** Another instance over the same table. */
  instance: () => HttpHandler
  /** What receive did since the work began. */
  during: <T>(work: () => Promise<T>) => Promise<{ result: T; effects: Effect[] }>
  /** Lets the next calls of receive for an operation go wrong. */
  fail: (operation: string, times: number, fault?: Fault) => void
  /** Ends what `fail` left. */
  heal: () => void
  stop: () => Promise<void>
}

const tokenHeader = 'x-a2a-notification-token'

/** Starts the doors that agents push to and that hooks are made at; messages stay in the queue. */
export async function startDoor(): Promise<Door> {
  const clock = stillClock()
  const { ground, relay, handler, calls, planned, lines } = await startDoors(clock)
  const [host, tenants] = await Promise.all([startKeyHost(), makeTenants(ground)])
  const spots = spotsOf(host, tenants)
  let tasks = 0
  const send = async (push: Push = {}): Promise<Answer> => {
    const spot = await spots.find(push.to ?? {})
    const sent = sentBy(push, spot, { now: clock.now(), task: push.task ?? `task-${++tasks}` })
    hear({ url: sent.path, headers: Object.fromEntries(sent.headers) })
    if (push.as === undefined) return overWire(ground.hookOrigin, sent)
    return handOver(push.at ?? handler, push.as(sent))
  }
  const during: Door['during'] = async work => {
    const start = calls.length
    const result = await work()
    return { result, effects: calls.slice(start).filter(({ who }) => who === 'receive') }
  }
  return {
    ...tenants.demo,
    ...{ ground, host: host.receiver, lines, during, send, other: tenants.other },
    now: clock.now,
    serve: ({ jwksPath }, served) => host.serve(jwksPath, served),
    fetches: ({ jwksPath }) => host.receiver.requests.filter(({ url }) => url === jwksPath).length,
    spot: (kind = {}, served?) => spots.find(kind, served),
    push: async push => {
      // Whatever has to be made for it is no effect of the push.
      const to = await spots.find(push?.to ?? {})
      const { result, effects } = await during(() => send({ ...push, to }))
      return verdictOf(result, effects)
    },
    instance: () => receive(relay),
    fail: (operation, times, fault = 'throttle') => {
      for (let time = 0; time < times; time++) planned.push({ operation, fault })
    },
    heal: () => {
      planned.length = 0
    },
    stop: async () => {
      await Promise.all([ground.stop(), host.receiver.stop()])
    },
  }
}

/** The ground with two doors, what was called and logged on it, and the faults that are planned for receive. */
async function startDoors(clock: Clock) {
  const calls: (Effect & { who: string })[] = []
  const planned: { operation: string; fault: Fault }[] = []
  const lines: string[] = []
  const made: { relay: Relay; handler: HttpHandler }[] = []
  const open = (relay: Relay): HttpHandler => {
    const handler = receive(relay)
    made.push({ relay, handler })
    return handler
  }
  const ground = await startGround(
    { receive: open, api },
    {
      ...{ clock, tick: 'manual' },
      write: line => {
        ear.line(line)
        lines.push(line)
      },
      onCall: ({ who, operation, body }, { status }) =>
        calls.push({ who, operation, body, ok: status === 200 }),
      faults: ({ who, operation }) => {
        const at = who === 'receive' ? planned.findIndex(plan => plan.operation === operation) : -1
        return at < 0 ? undefined : planned.splice(at, 1)[0]?.fault
      },
    },
  )
  const [door] = made
  if (door === undefined) throw new Error('The door is not open')
  return { ground, ...door, calls, planned, lines }
}

/** One test a row. A second passes before each, so that the refusals of one row do not count against the next. */
export function played(title: string, door: () => Door, rows: readonly Row[]): void {
  const named = rows.map(([number, ...row]) => [number === 0 ? 'rule' : `case ${number}`, ...row] as const)
  describe(title, () => {
    test.each(named)('%s: %s', async (_number, _says, play, right) => {
      door().ground.advance(1000)
      expect(await perform(door(), play)).toEqual(right)
    })
  })
}

let rounds = 0

async function perform(door: Door, play: Play): Promise<unknown> {
  if (typeof play === 'function') return play(door)
  const task = `row-${++rounds}`
  if (!isList(play)) return door.push({ task, ...play })
  const verdicts: string[] = []
  for (const push of play) verdicts.push(await door.push({ task, ...push }))
  return verdicts
}

const isList = (play: Push | readonly Push[]): play is readonly Push[] => Array.isArray(play)

/** The refusal of whatever is not genuine, byte for byte. */
const denied = JSON.stringify({ title: says('unauthorized'), status: 401, code: 'unauthorized' })

/** @returns a {@link Verdict}, or in words what else it was */
function verdictOf({ status, headers, text }: Answer, effects: readonly Effect[]): string {
  const done = effects.filter(({ ok }) => ok)
  const jobs = done.filter(({ operation }) => operation === 'SendMessage').length
  const records = recordsIn(done).length
  const clean = jobs === 0 && records === 0
  const odd = `${status}, ${jobs} jobs, ${records} records: ${text}`
  if (status === 200 || status === 202) return clean ? 'NOOP' : jobs === 1 && records === 1 ? 'ACK' : odd
  if (status === 413 && jobs === 1 && records === 0) return '413 and a look'
  if (!clean) return odd
  if (status === 401) return text === denied ? 'DENY' : odd
  if (status === 400 || status === 422) return 'BAD'
  if (status === 503 || status === 429)
    return headers['retry-after'] === undefined ? odd : status === 503 ? 'LATER' : '429'
  if (status === 405) return headers.allow === 'POST' ? '405' : odd
  return [404, 413, 415].includes(status) ? String(status) : odd
}

/** The notices that were put. */
export const recordsIn = (effects: readonly Effect[]): Effect[] =>
  effects.filter(
    ({ operation, body }) => operation === 'PutItem' && JSON.stringify(body).includes('"pk":{"S":"N#'),
  )

/** Signs honest claims with changes to them, by the published key unless another is given. */
export const signed =
  (
    changes: Fields | ((honest: Fields, now: number) => Fields) = {},
    header: Fields = {},
    by: SigningKey = k1,
  ): Signer =>
  (honest, now) =>
    signJwt(by, { ...honest, ...(typeof changes === 'function' ? changes(honest, now) : changes) }, header)

function sentBy(
  push: Push,
  { hook, signed: isSigned }: Spot,
  { now, task }: { now: number; task: string },
): Sent {
  const { path, body = usualBody } = push
  const { pathname } = new URL(hook.url)
  const bytes = typeof body === 'string' ? Buffer.from(body.replaceAll('t-100', task)) : body
  const seconds = now / 1000
  const honest = {
    ...{
      iss: rule.issuer,
      aud: hook.url,
      iat: seconds - 2,
      exp: seconds + 60,
      jti: `${task} ${Math.random()}`,
    },
    taskId: task,
    request_body_sha256: sha256Hex(bytes),
  }
  const bearer = isSigned || push.jwt !== undefined ? (push.jwt ?? signed())(honest, seconds) : null
  const headers: Push['headers'] = {
    'content-type': 'application/a2a+json',
    ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
    ...(hook.token !== undefined && { [tokenHeader]: hook.token }),
    ...(hook.token === undefined &&
      hook.authentication !== undefined &&
      'scheme' in hook.authentication && {
        authorization: `${hook.authentication.scheme} ${hook.authentication.credentials}`,
      }),
    ...push.headers,
  }
  return {
    method: push.method ?? 'POST',
    path: path?.(pathname) ?? pathname,
    query: push.query ?? '',
    headers: Object.entries(headers).flatMap(([name, values = []]) =>
      [values].flat().map((value): [string, string] => [name, value]),
    ),
    body: bytes,
    source: push.source ?? '192.0.2.1',
  }
}

/** One request on a connection of its own; path and headers go out as they are written. */
export function overWire(origin: string, { method, path, query, headers, body }: Sent): Promise<Answer> {
  const { host, hostname, port } = new URL(origin)
  const length: [string, string][] = body.length === 0 ? [] : [['content-length', String(body.length)]]
  const given = headers.some(([name]) => name === 'host')
  const lines: [string, string][] = [
    ...(given ? [] : [['host', host] as [string, string]]),
    ['connection', 'close'],
    ...length,
  ]
  return new Promise((resolve, reject) => {
    const options = { hostname, port, method, path: query === '' ? path : `${path}?${query}` }
    const asked = http.request({ ...options, headers: [...lines, ...headers].flat() }, async reply => {
      const chunks: Buffer[] = []
      for await (const chunk of reply) chunks.push(chunk)
      const told = Object.entries(reply.headers).map(([name, value]) => [name, String(value)])
      resolve({
        status: reply.statusCode ?? 0,
        headers: Object.fromEntries(told),
        text: Buffer.concat(chunks).toString(),
      })
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

/** Calls a handler with an event, whatever it is. */
export async function handOver(handler: HttpHandler, event: unknown): Promise<Answer> {
  const { statusCode, headers = {}, body = '' } = await handler(event as Parameters<HttpHandler>[0])
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)])
  return { status: statusCode, headers: Object.fromEntries(lower), text: body }
}
