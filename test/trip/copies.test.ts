// Copies, late-comers and strangers at the hook: what was seen wakes nobody twice, what is over stays over, what is forged leaves no trace.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '../../shared/hash.ts'
import { makeKey, type SigningKey, signJwt } from '../support/keys.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { type Begun, push, type Scene, startTrip, statusPush, type Trip, tokenOf } from '../support/trip.ts'

let trip: Trip
let scene: Scene

beforeAll(async () => {
  trip = await startTrip()
  scene = await trip.scene()
})

afterAll(() => trip.stop())

/** A task that was looked at more than a window ago and has gone on without a push since. */
async function begin(state: 'completed' | 'input-required' = 'completed'): Promise<Begun> {
  const begun = await trip.begin(scene)
  await scene.agent.setState(begun.taskId, state, { push: false })
  return begun
}

/** Keys of all items but what is kept of agents as a whole: their fetched keys, and counters flushed now and then. */
const itemKeys = async (): Promise<string[]> =>
  (await trip.local.items())
    .filter(({ sk }) => sk !== 'keys' && sk !== 'health')
    .map(({ pk, sk }) => `${pk} ${sk}`)
    .toSorted()

const looksAt = (taskId: string): number => trip.stepsOf('task.looked', taskId).length

test('the same words again, later, are a push of their own', async () => {
  const { hook, client, taskId } = await begin('input-required')
  const body = statusPush(taskId, 'input_required')
  expect(await push(hook, body)).toBe(202)
  await trip.pass(5000)
  expect(await push(hook, body)).toBe(200)
  await trip.pass(7000)
  expect(await push(hook, body)).toBe(202)
  await trip.pass(3000, 3)
  expect(client.states()).toEqual(['input-required'])
})

/** Twenty copies at once. On a machine so busy that the table was given up meanwhile, copies are not known as such: then others. */
async function pushCopies(tries = 3): Promise<Begun & { before: number; answers: number[] }> {
  const begun = await begin()
  const [from, before] = [trip.steps.length, looksAt(begun.taskId)]
  const body = statusPush(begun.taskId, 'completed')
  const answers = await Promise.all(Array.from({ length: 20 }, () => push(begun.hook, body)))
  await trip.pass(3000, 3)
  const gaveUp = trip.steps
    .slice(from)
    .some(({ step }) => step === 'notice.not_stored' || step === 'push.unavailable')
  return gaveUp && tries > 1 ? pushCopies(tries - 1) : { ...begun, before, answers }
}

test('twenty copies of a push at once are one notice, one look and one wake', async () => {
  const { client, taskId, before, answers } = await pushCopies()
  expect(answers.toSorted()).toEqual([...Array(19).fill(200), 202])
  expect(trip.stepsOf('notice.queued', taskId)).toHaveLength(1)
  expect(looksAt(taskId)).toBe(before + 1)
  expect(client.states()).toEqual(['completed'])
})

test('the end pushed before the beginning is told once and never taken back', async () => {
  const { hook, client, taskId } = await begin()
  await push(hook, statusPush(taskId, 'completed'))
  await push(hook, statusPush(taskId, 'working'))
  await push(hook, statusPush(taskId, 'submitted'))
  await trip.pass(3000, 3)
  expect(client.states()).toEqual(['completed'])
  expect(await trip.task(scene.id, taskId)).toMatchObject({ state: 'completed' })
})

test('a push that comes long after the end costs no look and wakes nobody', async () => {
  const { hook, client, taskId } = await begin()
  await push(hook, statusPush(taskId, 'completed'))
  await trip.pass(20_000)
  const looks = looksAt(taskId)
  for (const state of ['working', 'failed', 'input_required']) {
    expect(await push(hook, statusPush(taskId, state))).toBe(202)
    await trip.pass(2000)
  }
  expect(looksAt(taskId)).toBe(looks)
  expect(client.states()).toEqual(['completed'])
  expect(await trip.task(scene.id, taskId)).toMatchObject({ state: 'completed' })
})

test('a push about another task is accepted and causes nothing', async () => {
  const { hook, client, taskId } = await trip.begin(scene)
  const other = await scene.caller.send('done at once')
  const before = await itemKeys()
  expect(await push(hook, statusPush(other, 'completed'))).toBe(202)
  await trip.pass(3000, 3)
  expect(trip.stepsOf('push.unexpected', other)).toHaveLength(1)
  expect(trip.stepsOf('notice.queued', other)).toEqual([])
  expect(looksAt(other)).toBe(0)
  expect(await itemKeys()).toEqual(before)
  expect(client.told()).toEqual([])
  expect(await trip.task(scene.id, taskId)).toMatchObject({ state: 'working' })
})

describe('a forged push is refused, and nothing is written', () => {
  test.each<[why: string, headers: (of: Begun) => Record<string, string>]>([
    ['no proof', () => ({})],
    ['a wrong token', () => ({ 'x-a2a-notification-token': 'x'.repeat(43) })],
    ['a wrong Authorization', () => ({ authorization: `Bearer ${'x'.repeat(43)}` })],
    ['the token as Authorization', ({ hook }) => ({ authorization: `Bearer ${hook.token}` })],
    [
      'a right token and a wrong Authorization',
      ({ hook }) => ({ ...tokenOf(hook), authorization: 'Bearer x' }),
    ],
    ['two tokens, one of them wrong', ({ hook }) => ({ ...tokenOf(hook), 'a2a-notification-token': 'x' })],
  ])('%s', async (_why, headers) => {
    const begun = await trip.begin(scene)
    await expectNoTrace(begun, headers(begun))
  })

  test('the token of another hook', async () => {
    const [one, other] = [await trip.begin(scene), await trip.begin(scene)]
    await expectNoTrace(one, tokenOf(other.hook))
  })
})

async function expectNoTrace(
  { hook, client, taskId }: Begun,
  headers: Record<string, string>,
): Promise<void> {
  const [before, looks] = [await itemKeys(), looksAt(taskId)]
  expect(await push(hook, statusPush(taskId, 'completed'), headers)).toBe(401)
  await trip.settle()
  expect(await itemKeys()).toEqual(before)
  expect(looksAt(taskId)).toBe(looks)
  expect(client.told()).toEqual([])
}

describe('with signed pushes', () => {
  const key = makeKey('ES256', 'k1')
  let host: Receiver
  let signed: Scene

  beforeAll(async () => {
    host = await startReceiver()
    host.answer({ body: JSON.stringify({ keys: [key.jwk] }) })
    const jwt = { jwksUrl: `${host.origin}/jwks.json`, issuer: 'https://agent.example' }
    signed = await trip.register(scene.agent, { verification: { jwt } })
  })

  afterAll(() => host.stop())

  async function beginSigned(): Promise<Begun & { text: string }> {
    const taskId = await signed.caller.send('done at once')
    const subscribed = await trip.subscribe(signed.id, { taskId, states: ['canceled'] })
    await trip.settle()
    return { ...subscribed, taskId, text: JSON.stringify(statusPush(taskId, 'completed')) }
  }

  type Change = { claims?: Record<string, unknown>; by?: SigningKey; header?: Record<string, unknown> }

  function authorize({ hook, taskId, text }: Begun & { text: string }, { claims, by = key, header }: Change) {
    const iat = Math.floor(trip.local.now() / 1000)
    const honest = { iss: 'https://agent.example', aud: hook.url, iat, exp: iat + 60, jti: `j-${taskId}` }
    const bound = { taskId, request_body_sha256: sha256Hex(text) }
    return { authorization: `Bearer ${signJwt(by, { ...honest, ...bound, ...claims }, header)}` }
  }

  test('an honest one is accepted, and its copy is known', async () => {
    const begun = await beginSigned()
    const headers = authorize(begun, {})
    expect(await push(begun.hook, begun.text, headers)).toBe(202)
    expect(await push(begun.hook, begun.text, headers)).toBe(200)
    await trip.pass(100_000)
    expect(await push(begun.hook, begun.text, headers)).toBe(200)
  })

  const minute = 60
  const from = (seconds: number) => () => {
    const iat = Math.floor(trip.local.now() / 1000) + seconds
    return { claims: { iat, exp: iat + minute } }
  }

  test.each<[why: string, change: (other: Begun) => Change]>([
    ['a key of the same name that the agent does not publish', () => ({ by: makeKey('ES256', 'k1') })],
    ['a key that nobody publishes', () => ({ by: makeKey('ES256', 'k2') })],
    [
      'a key that names its own JWK',
      () => {
        const by = makeKey('ES256', 'k1')
        return { by, header: { jwk: by.jwk } }
      },
    ],
    ['an expired JWT', from(-600)],
    ['a JWT of the future', from(600)],
    ['a JWT for another hook', ({ hook }) => ({ claims: { aud: hook.url } })],
    ['a JWT of another issuer', () => ({ claims: { iss: 'https://other.example' } })],
    ['a JWT that names another task', ({ taskId }) => ({ claims: { taskId } })],
    ['a JWT over another body', () => ({ claims: { request_body_sha256: sha256Hex('{}') } })],
  ])('%s is refused, and nothing is written', async (_why, change) => {
    const [begun, other] = [await beginSigned(), await beginSigned()]
    expect(await push(begun.hook, begun.text, authorize(begun, {}))).toBe(202)
    await trip.pass(1000)
    const before = await itemKeys()
    const headers = authorize(begun, change(other))
    expect(await push(begun.hook, begun.text, headers)).toBe(401)
    await trip.settle()
    expect(await itemKeys()).toEqual(before)
  })

  test('no proof at all is refused, and nothing is written', async () => {
    const begun = await beginSigned()
    const before = await itemKeys()
    expect(await push(begun.hook, begun.text, {})).toBe(401)
    expect(await itemKeys()).toEqual(before)
  })
})

describe('a hook that is not there', () => {
  const readsOfReceive = (): number =>
    trip.calls.filter(({ who, operation }) => who === 'receive' && /^(GetItem|Query)$/.test(operation)).length

  test('is refused without a read when it was guessed', async () => {
    const { hook, taskId } = await trip.begin(scene)
    const before = readsOfReceive()
    const last = hook.url.endsWith('A') ? 'Q' : 'A'
    for (const url of [`${hook.url.slice(0, -4)}AAAA`, hook.url.slice(0, -1) + last, `${hook.url}AAAA`])
      expect(await push({ ...hook, url }, statusPush(taskId, 'completed'))).toBe(404)
    expect(readsOfReceive()).toBe(before)
  })

  test('is refused once its subscription was deleted, though its proofs are right', async () => {
    const { hook, made, taskId } = await trip.begin(scene)
    await trip.call('DELETE', `/v1/subscriptions/${made.id}`)
    await trip.pass(31_000)
    const body = statusPush(taskId, 'completed')
    expect(await push(hook, body)).toBe(404)
    const before = readsOfReceive()
    expect(await push(hook, body)).toBe(404)
    expect(readsOfReceive()).toBe(before)
  })
})
