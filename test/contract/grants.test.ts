// Access tokens in a real table: one worker renews, a rotated refresh token is never used twice, and what is no good any more is not asked for again.
import { SQSClient } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Endpoint } from '../../shared/a2a/endpoint.ts'
import { callAs, sealCredentials } from '../../shared/calling.ts'
import { type Held, tokenFor } from '../../shared/granting.ts'
import type { Agent, Subscription } from '../../shared/model.ts'
import { putAgent } from '../../shared/store/agents.ts'
import { getGrant } from '../../shared/store/grants.ts'
import { loopbackNet } from '../support/net.ts'
import { type Answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { startTable, type TestTable } from '../support/table.ts'

/** Nothing is told here. */
const queues = {
  client: new SQSClient({}),
  urls: { look: '', deliver: '' },
  dead: { look: undefined, deliver: undefined },
}

let ground: TestTable
let host: Receiver
let held: Held
let named = 0
let at = Date.UTC(2026, 5, 15, 12)
const logged: unknown[] = []

beforeAll(async () => {
  ground = await startTable()
  host = await startReceiver()
})

afterAll(() => Promise.all([ground.stop(), host.stop()]))

beforeEach(() => {
  host.requests.length = 0
  host.answer(rotate)
  logged.length = 0
  const oauth = { type: 'oauth2', tokenUrl: host.origin, clientId: 'c', auth: 'basic' } as const
  held = {
    owner: { ref: `s-${++named}` },
    of: 'first',
    formerly: [],
    stands: async () => true,
    oauth: { ...oauth, grant: 'refresh_token', clientSecret: 'secret', refreshToken: 'refresh-0' },
  }
})

/** A worker with a memory of its own. */
const worker = () => ({
  table: { ...ground.table },
  now: () => at,
  net: loopbackNet,
  log: (step: unknown) => void logged.push(step),
  queues,
  config: { rootKeys: new Map([[1, new Uint8Array(32)]]) },
  random: (length: number) => new Uint8Array(length),
})

/** A server that rotates: token n and refresh token n for refresh token n-1. */
const rotate = ({ body }: { body: string }): Answer => {
  const used = Number(new URLSearchParams(body).get('refresh_token')?.split('-')[1])
  const fresh = { access_token: `access-${used + 1}`, refresh_token: `refresh-${used + 1}` }
  return { body: JSON.stringify({ ...fresh, token_type: 'Bearer', expires_in: 600 }) }
}

const refuse = (error: string): Answer => ({ status: 400, body: JSON.stringify({ error }) })
const used = () => host.requests.map(({ body }) => new URLSearchParams(body).get('refresh_token'))

test('of many workers that need a token at once one asks for it, and all get it', async () => {
  const tokens = await Promise.all(Array.from({ length: 4 }, () => tokenFor(worker(), held)))
  expect(tokens).toEqual(Array.from({ length: 4 }, () => ({ ok: true, token: 'access-1' })))
  expect(used()).toEqual(['refresh-0'])
})

test('a token is used until shortly before its end, from memory too; then the rotated refresh token is used', async () => {
  const one = worker()
  await tokenFor(one, held)
  at += 500_000
  const calls = ground.calls.length
  expect(await tokenFor(one, held)).toEqual({ ok: true, token: 'access-1' })
  expect(ground.calls.length).toBe(calls)
  at += 50_000
  expect(await tokenFor(worker(), held)).toEqual({ ok: true, token: 'access-2' })
  expect(used()).toEqual(['refresh-0', 'refresh-1'])
})

test('tokens are sealed in the table and named in no log', async () => {
  await tokenFor(worker(), held)
  const { access, refresh } = (await getGrant(ground.table, held.owner)) ?? {}
  expect([access, refresh].join()).not.toMatch(/access-|refresh-/)
  expect(JSON.stringify(logged)).not.toMatch(/access-|refresh-|secret/)
})

test('while one renews, others use the token that still holds; when it does not, they are told to come again', async () => {
  await tokenFor(worker(), held)
  at += 560_000
  const gate = Promise.withResolvers<void>()
  const slow = {
    ...worker(),
    net: {
      ...loopbackNet,
      request: async (ask: Parameters<typeof loopbackNet.request>[0]) => {
        await gate.promise
        return loopbackNet.request(ask)
      },
    },
  }
  const renewing = tokenFor(slow, held)
  // Another's lease is seen from the table once it stands.
  while (((await getGrant(ground.table, held.owner))?.lease ?? 0) === 0);
  expect(await tokenFor(worker(), held)).toEqual({ ok: true, token: 'access-1' })
  expect(await tokenFor(worker(), held, 'access-1')).toMatchObject({ ok: false, busy: true })
  gate.resolve()
  expect(await renewing).toEqual({ ok: true, token: 'access-2' })
  expect(used()).toEqual(['refresh-0', 'refresh-1'])
})

test('who died while renewing holds it up no longer than the lease, and the refusal says what may have been lost', async () => {
  await tokenFor(worker(), held)
  at += 590_000
  host.answer({ fault: 'hang' })
  const dead = { ...worker(), net: { ...loopbackNet, request: () => new Promise<never>(() => {}) } }
  void tokenFor(dead, held)
  while (((await getGrant(ground.table, held.owner))?.lease ?? 0) === 0);
  at += 21_000
  host.answer(refuse('invalid_grant'))
  expect(await tokenFor(worker(), held)).toMatchObject({
    ok: false,
    trouble: 'credentials_expired',
    detail: expect.stringMatching(/invalid_grant .*cut off/),
  })
})

test('a refresh token that was refused is never sent again; new credentials begin anew', async () => {
  host.answer(refuse('invalid_grant'))
  const expired = { ok: false, elsewhere: true, trouble: 'credentials_expired' }
  expect(await tokenFor(worker(), held)).toMatchObject(expired)
  at += 30 * 24 * 3_600_000
  expect(await tokenFor(worker(), held)).toMatchObject(expired)
  expect(used()).toHaveLength(1)
  host.answer(rotate)
  expect(await tokenFor(worker(), { ...held, of: 'second' })).toEqual({ ok: true, token: 'access-1' })
})

test('a worker that still holds replaced credentials neither overwrites what was granted since, nor uses it', async () => {
  await tokenFor(worker(), held)
  const newer = { ...held, of: 'second' }
  expect(await tokenFor(worker(), newer)).toEqual({ ok: true, token: 'access-1' })
  const older = { ...held, stands: async () => false }
  expect(await tokenFor(worker(), older)).toMatchObject({ ok: false, busy: true })
  at += 600_000
  expect(await tokenFor(worker(), newer)).toEqual({ ok: true, token: 'access-2' })
  expect(used()).toEqual(['refresh-0', 'refresh-0', 'refresh-1'])
})

test('a worker that still holds credentials which ended leaves nothing behind', async () => {
  expect(await tokenFor(worker(), { ...held, stands: async () => false })).toMatchObject({ busy: true })
  expect(await getGrant(ground.table, held.owner)).toBeUndefined()
  expect(used()).toEqual([])
})

test('of two workers that replace one grant at once one asks', async () => {
  await tokenFor(worker(), held)
  const newer = { ...held, of: 'second' }
  const both = await Promise.all([tokenFor(worker(), newer), tokenFor(worker(), newer)])
  expect(both).toEqual([
    { ok: true, token: 'access-1' },
    { ok: true, token: 'access-1' },
  ])
  expect(used()).toEqual(['refresh-0', 'refresh-0'])
})

test('credentials that are sealed anew under another root key keep what was granted', async () => {
  await tokenFor(worker(), held)
  at += 600_000
  const anew = { ...held, of: 'by-root-2', formerly: ['first'] }
  expect(await tokenFor(worker(), anew)).toEqual({ ok: true, token: 'access-2' })
  at += 600_000
  expect(await tokenFor(worker(), { ...anew, formerly: [] })).toEqual({ ok: true, token: 'access-3' })
  expect(used()).toEqual(['refresh-0', 'refresh-1', 'refresh-2'])
})

test('a token endpoint that asks to be asked again at once is not', async () => {
  host.answer({ status: 503, headers: { 'retry-after': '0' } })
  await tokenFor(worker(), held)
  await tokenFor(worker(), held)
  expect(used()).toHaveLength(1)
})

test('a token endpoint that is down is asked again later each time, and is no fault of the agent', async () => {
  host.answer({ status: 503 })
  const down = { ok: false, elsewhere: true, trouble: 'unreachable' }
  expect(await tokenFor(worker(), held)).toMatchObject(down)
  expect(await tokenFor(worker(), held)).toMatchObject(down)
  expect(used()).toHaveLength(1)
  at += 2001
  expect(await tokenFor(worker(), held)).toMatchObject(down)
  at += 2001
  await tokenFor(worker(), held)
  expect(used()).toHaveLength(2)
})

test('a grant that was renewed is saved though the table is throttled for a moment', async () => {
  await tokenFor(worker(), held)
  at += 590_000
  ground.plan('UpdateItem', 'fail_after')
  expect(await tokenFor(worker(), held)).toEqual({ ok: true, token: 'access-2' })
  expect(await tokenFor(worker(), held)).toEqual({ ok: true, token: 'access-2' })
})

test('case 148: credentials are opened when a call is made, so what was replaced meanwhile is used', async () => {
  const world = worker()
  const sub = { ref: 'r-1', credentialsAt: 1 }
  const asked: (Endpoint | undefined)[] = []
  const call = async (token: string): Promise<void> => {
    const credentials = await sealCredentials(world, { subscription: sub }, { type: 'bearer', token })
    await callAs(world, agent, [{ ...subscription, ...sub, credentials }], async endpoint => {
      asked.push(endpoint)
      return { ok: true }
    })
  }
  await call('old')
  await call('new')
  expect(asked.map(endpoint => endpoint?.credentials)).toEqual([
    { type: 'bearer', token: 'old' },
    { type: 'bearer', token: 'new' },
  ])
})

test('case 135: a token that the agent refuses is renewed once, and the call made once more; then it stops', async () => {
  const world = worker()
  const owner = { tenant: 'acme', agent: `a-${++named}` }
  const credentials = await sealCredentials(world, { agent: owner }, held.oauth)
  const seen: unknown[] = []
  const stands = { ...agent, ...owner, credentials }
  await putAgent(ground.table, stands, undefined)
  const call = (good: string) =>
    callAs(world, stands, [], async ({ credentials: shown }) => {
      seen.push(shown)
      const ok = shown?.type === 'bearer' && shown.token === good
      return ok ? { ok: true } : { ok: false, trouble: 'unauthorized', detail: 'HTTP 401' }
    })
  expect(await call('access-2')).toMatchObject({ ok: true })
  expect(seen.splice(0)).toMatchObject([{ token: 'access-1' }, { token: 'access-2' }])
  at += 30_000
  expect(await call('none')).toMatchObject({ ok: false, trouble: 'unauthorized' })
  expect(seen).toMatchObject([{ token: 'access-2' }, { token: 'access-3' }])
  expect(JSON.stringify(logged)).not.toMatch(/access-|refresh-|secret/)
})

/** Looks with the agent's own credentials, each by a process of its own. @param takes whether the agent takes a token */
async function looking(takes: (token: string) => boolean) {
  const owner = { tenant: 'acme', agent: `a-${++named}` }
  const credentials = await sealCredentials(worker(), { agent: owner }, held.oauth)
  const stands = { ...agent, ...owner, credentials }
  await putAgent(ground.table, stands, undefined)
  return () =>
    callAs(worker(), stands, [], async ({ credentials: shown }) =>
      shown?.type === 'bearer' && takes(shown.token)
        ? { ok: true }
        : { ok: false, trouble: 'unauthorized', detail: 'HTTP 401' },
    )
}

test('tokens that an agent refuses at once are renewed later each time, though looks go on', async () => {
  let mended = false
  const look = await looking(() => mended)
  for (let seconds = 0; seconds < 3600; seconds += 10) {
    expect(await look()).toMatchObject({ ok: false, trouble: 'unauthorized' })
    at += 10_000
  }
  // The first, and after 0, 30, 90, 210, 450, 930 and 1830 seconds or so, and not many that ran out meanwhile.
  expect(used().length).toBeLessThanOrEqual(14)
  mended = true
  expect(await look()).toMatchObject({ ok: true })
})

test('tokens that an agent takes for a minute only are renewed each minute', async () => {
  const first = new Map<string, number>()
  const look = await looking(token => {
    first.set(token, first.get(token) ?? at)
    return at - (first.get(token) ?? at) < 60_000
  })
  for (let seconds = 0; seconds < 3600; seconds += 10) {
    expect(await look()).toMatchObject({ ok: true })
    at += 10_000
  }
})

const agent: Agent = {
  tenant: 'acme',
  agent: 'a',
  etag: '1',
  createdAt: 0,
  updatedAt: 0,
  url: 'http://127.0.0.1:1',
  binding: 'JSONRPC',
  version: '1.0',
  origins: [],
  pushes: true,
  streams: false,
  road: 'push',
  verification: {},
}

const subscription: Subscription = {
  ref: '',
  hook: '',
  tenant: 'acme',
  id: 's',
  agent: 'a',
  principal: 'agent',
  scope: 'task',
  states: [],
  targets: [],
  generation: 1,
  status: 'active',
  registration: { status: 'handed_out' },
  asked: '',
  createdAt: 0,
  expiresAt: 0,
}
