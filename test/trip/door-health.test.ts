// An agent's health after good and bad pushes: what they came to, the last refusals in words, and the state of its published keys.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sha256Hex } from '../../shared/hash.ts'
import { refOf } from '../../shared/hooks.ts'
import { explain } from '../../shared/reasons.ts'
import { dialects } from '../support/dialects.ts'
import { type Door, type Push, recordsIn, signed, startDoor } from '../support/door.ts'
import { makeKey } from '../support/keys.ts'
import { body, k1 } from '../support/pushes.ts'
import type { Answer } from '../support/receiver.ts'
import type { Spot } from '../support/spots.ts'

let door: Door

beforeAll(async () => {
  door = await startDoor()
})

afterAll(() => door.stop())

type Health = {
  pushes: {
    approximate: boolean
    accepted: number
    duplicates: number
    unexpected: number
    bodyDigests: { asReceived: number; compact: number }
    lastAcceptedAt: number | null
    refused: Record<string, { count: number; says: string }>
    lastRefusals: { at: number; reason: string; says: string }[]
  }
  keys?: {
    ageSeconds: number | null
    freshUntil: number | null
    failures: number
    fault: string | null
    flags: string[]
  }
}

const healthOf = ({ agent }: Spot) => door.call<Health>('GET', `/v1/agents/${agent}/health`)

/** Every request after ten seconds tells of one agent what was counted. */
async function tell(): Promise<void> {
  for (let agents = 0; agents < 3; agents++) {
    door.ground.advance(10_000)
    await door.send({ path: () => '/nowhere' })
  }
}

const hookIn = ({ hook }: Spot): string => new URL(hook.url).pathname.replace('/hooks/', '')

const x = 'x-a2a-notification-token'
let hooks = 0
const fresh = (kind = {}, served?: Answer): Promise<Spot> => door.spot({ ...kind, n: ++hooks }, served)

test('an agent that never pushed has an empty record', async () => {
  const spot = await fresh({ token: true })
  expect((await healthOf(spot)).pushes).toEqual({
    ...{ approximate: true, accepted: 0, duplicates: 0, unexpected: 0, lastAcceptedAt: null },
    ...{ bodyDigests: { asReceived: 0, compact: 0 }, refused: {}, lastRefusals: [] },
  })
})

test('what pushes came to is counted, and when the last was accepted', async () => {
  const to = await fresh({ token: true, taskId: 'mine' })
  for (const task of ['mine', 'mine', 'other']) await door.send({ to, task })
  const acceptedAt = door.now()
  await tell()
  expect((await healthOf(to)).pushes).toMatchObject({
    ...{
      accepted: 1,
      duplicates: 1,
      unexpected: 1,
      lastAcceptedAt: acceptedAt,
      refused: {},
      lastRefusals: [],
    },
  })
})

test('which form of the body the signed digest covered is recorded with the push and counted', async () => {
  const to = await fresh()
  const compact = sha256Hex(Buffer.from(JSON.stringify(JSON.parse(body))))
  const spaced = JSON.stringify(JSON.parse(body), null, 2)
  const pushes: Push[] = [
    { task: 't-100' },
    { task: 't-100', body: spaced, jwt: signed({ request_body_sha256: compact }) },
    { task: 't-100', jwt: signed({ request_body_sha256: undefined }) },
  ]
  const { effects } = await door.during(async () => {
    for (const push of pushes) expect((await door.send({ ...push, to })).status).toBe(202)
  })
  expect(recordsIn(effects).map(({ body: { Item } }) => (Item as { digest?: unknown }).digest)).toEqual([
    ...[{ S: 'raw' }, { S: 'compact' }, undefined],
  ])
  await tell()
  expect((await healthOf(to)).pushes.bodyDigests).toEqual({ asReceived: 1, compact: 1 })
})

test('refusals are counted by reason, the last five with when and why', async () => {
  const to = await fresh()
  const wrong: Push[] = [
    { jwt: () => null },
    { jwt: signed({ iss: 'https://other.example' }) },
    { jwt: signed({ aud: 'https://other.example' }) },
    { jwt: signed({}, { kid: 'nope' }) },
    { jwt: signed({}, { kid: 'nope' }) },
    { jwt: signed({ request_body_sha256: 'no' }) },
    { jwt: signed({ taskId: 't-999' }) },
  ]
  const times: number[] = []
  for (const push of wrong) {
    door.ground.advance(1000)
    times.push(door.now())
    await door.send({ ...push, to })
  }
  await tell()
  const { refused, lastRefusals } = (await healthOf(to)).pushes
  expect(Object.fromEntries(Object.entries(refused).map(([reason, { count }]) => [reason, count]))).toEqual({
    ...{ jwt_missing: 1, issuer_wrong: 1, audience_wrong: 1, unknown_key: 2, digest_wrong: 1 },
    task_claim_differs: 1,
  })
  expect(lastRefusals.map(({ at, reason }) => [at, reason])).toEqual([
    [times[2], 'audience_wrong'],
    [times[3], 'unknown_key'],
    [times[4], 'unknown_key'],
    [times[5], 'digest_wrong'],
    [times[6], 'task_claim_differs'],
  ])
  for (const { reason, says } of lastRefusals) expect(says).toBe(explain(reason))
  for (const [reason, { says }] of Object.entries(refused)) expect(says).toBe(explain(reason))
})

test('the line of a refusal names step, tenant, agent, subscription and reason, and never the hook', async () => {
  const to = await fresh()
  const before = door.lines.length
  await door.send({ to, jwt: signed({ iss: 'https://other.example' }) })
  const refusals = door.lines.slice(before).filter(line => line.includes('"push.refused"'))
  expect(refusals.map(line => JSON.parse(line))).toEqual([
    {
      ...{ at: new Date(door.now()).toISOString(), level: 'info', door: 'receive', step: 'push.refused' },
      ...{ tenant: 'demo', agent: to.agent, subscription: expect.any(String), trace: expect.any(String) },
      ...{ sub: refOf(hookIn(to)), reason: 'issuer_wrong' },
    },
  ])
  expect(refusals.join()).not.toContain(hookIn(to))
})

test('genuine pushes that could not be read are told apart from forged ones', async () => {
  const to = await fresh({ token: true })
  const big = Buffer.alloc(4_400_001, ' ')
  await door.send({ to, body: '{' })
  await door.send({ to, body: '{}' })
  await door.send({ to, body: big, as: dialects['load balancer'] })
  await door.send({ to, headers: { [x]: 'no' }, body: '{' })
  await tell()
  expect((await healthOf(to)).pushes.refused).toEqual({
    body_unreadable: { count: 2, says: explain('body_unreadable') },
    body_too_large: { count: 1, says: explain('body_too_large') },
    wrong_token: { count: 1, says: explain('wrong_token') },
  })
})

test('a flood of refusals costs one write in ten seconds', async () => {
  const to = await fresh({ token: true })
  await door.send({ to })
  await tell()
  const writes = async (times: number, push: Push): Promise<number> => {
    const { effects } = await door.during(async () => {
      for (let n = 0; n < times; n++) {
        await door.send(push)
        door.ground.advance(200)
      }
    })
    return effects.filter(({ operation }) => operation === 'UpdateItem').length
  }
  expect(await writes(40, { to, headers: { [x]: 'no' } })).toBe(1)
  door.ground.advance(2000)
  expect(await writes(10, { path: () => '/nowhere' })).toBe(1)
  expect((await healthOf(to)).pushes.refused.wrong_token?.count).toBe(40)
})

test('counts that could not be told cost no push', async () => {
  const to = await fresh({ token: true })
  door.ground.advance(10_000)
  door.fail('UpdateItem', 2)
  expect(await door.push({ to })).toBe('ACK')
  door.heal()
})

test('cases 4 and 27: keys that everybody can sign with are flagged', async () => {
  const secret = makeKey('RS256', 'k2').privateKey.export({ format: 'jwk' })
  const to = await fresh({ published: [{ kty: 'oct', k: 'c2VjcmV0' }, { ...secret, kid: 'k2' }, k1.jwk] })
  expect(await door.push({ to })).toBe('ACK')
  door.ground.advance(30_000)
  const { keys } = await healthOf(to)
  expect(keys).toMatchObject({ ageSeconds: 30, failures: 0, fault: null })
  expect(keys?.flags.toSorted()).toEqual(['private_key_published', 'symmetric_key_published'])
  expect(keys?.freshUntil).toBe(door.now() + 570_000)
})

test('cases 4 and 27: a set of nothing but such keys is flagged too, until its owner mends it', async () => {
  const secret = makeKey('RS256', 'k2').privateKey.export({ format: 'jwk' })
  const to = await fresh({ published: [{ ...secret, kid: 'k2' }] })
  expect(await door.push({ to })).toBe('LATER')
  expect((await healthOf(to)).keys).toMatchObject({
    fault: 'no_usable_key',
    flags: ['private_key_published'],
  })
  door.serve(to, { body: JSON.stringify({ keys: [k1.jwk] }) })
  door.ground.advance(60_000)
  expect(await door.push({ to })).toBe('ACK')
  expect((await healthOf(to)).keys).toMatchObject({ fault: null, flags: [] })
})

test('a key host that fails is seen, and so is the age of the keys that serve meanwhile', async () => {
  const to = await fresh()
  expect(await door.push({ to })).toBe('ACK')
  door.serve(to, { status: 500 })
  door.ground.advance(11 * 60_000)
  expect(await door.push({ to })).toBe('ACK')
  expect((await healthOf(to)).keys).toMatchObject({
    ageSeconds: expect.any(Number),
    failures: 1,
    fault: 'status_500',
  })
})

test('keys that were never fetched have no age', async () => {
  const to = await fresh({}, { status: 404 })
  expect(await door.push({ to })).toBe('LATER')
  expect((await healthOf(to)).keys).toMatchObject({
    ageSeconds: null,
    freshUntil: null,
    failures: 1,
    fault: 'status_404',
  })
})

test('an agent whose pushes are not signed has no keys to tell of', async () => {
  expect(await healthOf(await fresh({ token: true }))).not.toHaveProperty('keys')
})

test('another tenant’s agent has no health to see', async () => {
  const { agent } = await fresh({ token: true })
  expect((await door.other.refused('GET', `/v1/agents/${agent}/health`)).status).toBe(404)
})
