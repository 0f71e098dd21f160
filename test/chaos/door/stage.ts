// The relay with its real doors on the local ground, whose clock stands still, and one agent with one hook for each cell.
import { door as api } from '../../../functions/api/app.ts'
import { door as deliver } from '../../../functions/deliver.ts'
import { door as look } from '../../../functions/look.ts'
import { door as receive } from '../../../functions/receive.ts'
import { door as tick } from '../../../functions/tick.ts'
import type { Clock } from '../../../infra/local/clock.ts'
import { type Ground, startGround } from '../../../infra/local/ground.ts'
import type { HandedOut } from '../../../shared/a2a/configs.ts'
import { taskStates } from '../../../shared/a2a/task.ts'
import { sha256Hex } from '../../../shared/hash.ts'
import type { Sent } from '../../support/dialects.ts'
import { ear } from '../../support/ear.ts'
import { signJwt } from '../../support/keys.ts'
import { type Routes, routesOf } from '../../support/routes.ts'
import { stateOf } from './cells.ts'
import type { Fate, Play } from './fate.ts'
import { key, type Outside, startOutside } from './outside.ts'

export type Stage = {
  now: () => number
  outside: Outside
  /** Settings of an instance of receive. */
  env: Ground['env']
  api: Routes
  /** Moves the time and does all that is due then. */
  pass: (milliseconds: number) => Promise<void>
  /** Moves the time, and nothing more. */
  advance: (milliseconds: number) => void
  /** Messages that were received too often. */
  dead: Ground['dead']
  /** How many messages were received and neither handled nor given back: they are gone until their time is over. */
  held: () => Promise<number>
  stop: () => Promise<void>
}

const begin = Date.UTC(2026, 0, 1)

export async function startStage({ faults, onCall, keysOf }: Fate): Promise<Stage> {
  const clock = stillClock()
  const ground = await startGround(
    { receive, api, look, deliver, tick },
    { clock, tick: 'manual', env: { DUE_SHARDS: '2' }, faults, onCall, write: ear.line },
  )
  const outside = await startOutside(keysOf)
  return {
    ...{ outside, now: clock.now, env: ground.env, dead: ground.dead },
    api: await makeTenant(ground),
    advance: ground.advance,
    pass: async milliseconds => {
      ground.advance(milliseconds)
      await settle(ground)
    },
    held: async () => {
      const lying = await Promise.all([ground.messages('look'), ground.messages('deliver')])
      return lying.flat().filter(({ place }) => place === 'inflight').length
    },
    stop: async () => {
      await Promise.all([ground.stop(), outside.stop()])
    },
  }
}

async function makeTenant({ apiOrigin, secrets }: Ground): Promise<Routes> {
  const { call } = routesOf(apiOrigin, secrets.operatorKey)
  await call('PUT', '/v1/tenants/demo', {})
  const made = await call<{ key: string }>('POST', '/v1/keys', { tenant: 'demo', scopes: ['write'] })
  return routesOf(apiOrigin, made.key)
}

/**
 * Does all that is due. While the time stands still, looks that wait for the window's end come again each second and it
 * does not get quiet: then another second passes.
 */
async function settle(ground: Ground): Promise<void> {
  for (let tries = 0; tries < 5; tries++) {
    const quiet = await ground.drain(15_000).then(
      () => true,
      () => false,
    )
    if (quiet) return
    ground.advance(1000)
  }
  await ground.drain()
}

/** A clock that stands still until it is moved, so that what a round does takes no time, however slow the machine. */
function stillClock(): Clock {
  const offset = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT)
  const bend = new BigInt64Array(offset)
  let at = begin
  return {
    now: () => at,
    advance: milliseconds => {
      at += milliseconds
      Atomics.add(bend, 0, BigInt(milliseconds))
    },
    offset,
  }
}

const byToken = { token: true }
const issuer = 'https://agent.example'

/** How the agent's pushes prove themselves once the weather turns. */
const isSigned = ({ cell: { scene } }: Play): boolean => !['cold', 'flood', 'large'].includes(scene)

/** Calls the API until it succeeds: a slow machine may need more than one attempt. */
async function put<T>({ api }: Stage, path: string, body: unknown): Promise<T> {
  for (let tries = 0; ; tries++)
    try {
      return await api.call<T>('PUT', path, body)
    } catch (error) {
      if (tries === 4) throw error
    }
}

/** Registers the agent of a cell. @param newRule by the rule that holds in the end, where it changes */
export async function registerAgent(stage: Stage, play: Play, newRule: boolean): Promise<void> {
  const { origin } = stage.outside
  const jwt = { jwksUrl: `${origin}/keys/${play.id}`, issuer, algorithms: ['ES256'] }
  const byOld = play.cell.scene === 'new rule' && !newRule
  await put(stage, `/v1/agents/${play.id}`, {
    ...{ url: `${origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true },
    origins: [origin],
    verification: isSigned(play) && !byOld ? { jwt } : byToken,
  })
}

/** Subscribes to what the cell is about, in all states but the first. */
export async function subscribe(stage: Stage, play: Play): Promise<HandedOut> {
  const { subject } = play.cell
  const { outside } = stage
  const whole = subject === 'agent-wide' ? { scope: 'agent' } : {}
  const wish = subject === 'unbound' ? {} : { taskId: taskOf(play) }
  outside.tasks.set(taskOf(play), 'submitted')
  const made = await put<{ pushNotificationConfig: HandedOut }>(stage, `/v1/subscriptions/${play.id}`, {
    agent: play.id,
    ...(subject === 'agent-wide' ? whole : wish),
    states: taskStates.filter(state => state !== 'submitted'),
    targets: [{ url: `${outside.origin}/woken` }],
  })
  return made.pushNotificationConfig
}

export const taskOf = ({ id }: Play): string => `task-${id}`

/** A little more than is read. */
const tooLarge = ' '.repeat(4_400_001)

/**
 * An honest push by the rule that holds in the end, or one that proves itself in the same way: `empty` says nothing,
 * `before` says the same of the task in other words.
 */
export function pushOf(stage: Stage, play: Play, hook: HandedOut, kind?: 'empty' | 'before'): Sent {
  const contextId = kind === 'before' ? 'c-0' : 'c-1'
  const state = `TASK_STATE_${stateOf(play.cell).toUpperCase().replace('-', '_')}`
  const said = { statusUpdate: { taskId: taskOf(play), contextId, status: { state } } }
  const text = JSON.stringify(kind === 'empty' ? {} : said)
  const body = Buffer.from(play.cell.scene === 'large' ? text + tooLarge : text)
  const iat = stage.now() / 1000
  const claims = {
    ...{ iss: issuer, aud: hook.url, iat, exp: iat + 300, jti: `${play.id} ${kind}` },
    request_body_sha256: sha256Hex(body),
  }
  const proof: [string, string] =
    hook.token === undefined || (play.cell.scene === 'new rule' && kind === undefined)
      ? ['authorization', `Bearer ${signJwt(key, claims)}`]
      : ['x-a2a-notification-token', hook.token]
  return {
    ...{ method: 'POST', path: new URL(hook.url).pathname, query: '', source: '192.0.2.1' },
    headers: [['content-type', 'application/a2a+json'], proof],
    body,
  }
}
