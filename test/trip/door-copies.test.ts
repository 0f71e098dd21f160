// Copies, lookalikes and failures of our own at the door: what is one push, what are two, and what is kept while AWS is away. One row a case.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dialects } from '../support/dialects.ts'
import { type Door, type Push, played, recordsIn, signed, startDoor } from '../support/door.ts'
import { body } from '../support/pushes.ts'
import type { Kind } from '../support/spots.ts'

let door: Door

beforeAll(async () => {
  door = await startDoor()
})

afterAll(() => door.stop())

const byToken: Kind = { token: true }
const asUrl = dialects['Function URL']
const jti = (id: string): Push => ({ jwt: signed({ jti: id }) })
const state = (name: string, more = ''): string =>
  body.replace('TASK_STATE_COMPLETED"', `TASK_STATE_${name}"${more}`)
const saying = (name: string, words: string): Push => ({
  body: state(name, `,"message":{"messageId":"${words}","role":"ROLE_AGENT","parts":[{"text":"${words}"}]}`),
})
const chunk = (last: boolean): string =>
  JSON.stringify({
    artifactUpdate: {
      ...{ taskId: 't-100', contextId: 'c-1', append: true, lastChunk: last },
      artifact: { artifactId: 'a-1', parts: [{ text: 'the same words' }] },
    },
  })

played('one push or two', () => door, [
  [74, 'a copy of a signed push', [jti('j'), jti('j')], ['ACK', 'NOOP']],
  [74, 'a copy of an unsigned push', [{ to: byToken }, { to: byToken }], ['ACK', 'NOOP']],
  [
    74,
    'an unsigned push after ten seconds, whose words may be meant again',
    async ({ push, ground }) => {
      const again = { to: byToken, task: 'again' }
      const [one, two] = [await push(again), await push(again)]
      ground.advance(11_000)
      return [one, two, await push(again)]
    },
    ['ACK', 'NOOP', 'ACK'],
  ],
  [
    74,
    'a signed push as long as it would be accepted, and no longer',
    async ({ push, ground }) => {
      const now = ground.now() / 1000
      const copy = { task: 'copy', jwt: signed({ iat: now, exp: now + 60, jti: 'j' }) }
      const verdicts = [await push(copy)]
      for (const seconds of [60, 60, 1]) {
        ground.advance(seconds * 1000)
        verdicts.push(await push(copy))
      }
      return verdicts
    },
    ['ACK', 'NOOP', 'NOOP', 'DENY'],
  ],
  [
    80,
    'the end before the beginning',
    [{ body: state('COMPLETED') }, { body: state('WORKING') }],
    ['ACK', 'ACK'],
  ],
  [
    81,
    'another end after the end',
    [saying('COMPLETED', 'one'), saying('FAILED', 'two'), saying('COMPLETED', 'three')],
    ['ACK', 'ACK', 'ACK'],
  ],
  [
    82,
    'one state twice with other words, unsigned',
    ['1', '2'].map(words => ({ to: byToken, ...saying('WORKING', words) })),
    ['ACK', 'ACK'],
  ],
  [
    83,
    'the same chunk twice under two ids, then the last',
    [{ body: chunk(false) }, { body: chunk(false) }, { body: chunk(true) }],
    ['ACK', 'ACK', 'ACK'],
  ],
  [
    83,
    'the last chunk after the same one unsigned',
    [false, false, true].map(last => ({ to: byToken, body: chunk(last) })),
    ['ACK', 'NOOP', 'ACK'],
  ],
  [84, 'the same event signed anew', [{}, {}], ['ACK', 'ACK']],
  [
    84,
    'the same event with another stamp in its metadata',
    ['1', '2'].map(at => ({ body: body.replace('"contextId"', `"metadata":{"at":"${at}"},"contextId"`) })),
    ['ACK', 'ACK'],
  ],
  [
    85,
    'one event at two hooks',
    [
      { ...jti('j'), to: { n: 1 } },
      { ...jti('j'), to: { n: 2 } },
    ],
    ['ACK', 'ACK'],
  ],
  [
    85,
    'one unsigned event at two hooks',
    [{ to: { ...byToken, n: 1 } }, { to: { ...byToken, n: 2 } }],
    ['ACK', 'ACK'],
  ],
  [86, 'one jti of two tenants', [jti('1'), { ...jti('1'), to: { tenant: 'other' } }], ['ACK', 'ACK']],
  [
    87,
    'an agent that never changes its jti',
    ['WORKING', 'INPUT_REQUIRED', 'COMPLETED'].map(name => ({ ...jti('task-100'), body: state(name) })),
    ['ACK', 'ACK', 'ACK'],
  ],
  [
    90,
    'one token and its body in another spelling',
    async ({ push, now }) => {
      const seconds = now() / 1000
      const to: Kind = { jwt: { issuer: undefined, digest: 'required' } }
      const jwt = signed({ iss: undefined, jti: undefined, exp: undefined, iat: seconds })
      const compact = JSON.stringify(JSON.parse(body))
      const wide = Buffer.from(JSON.stringify(JSON.parse(body.replace('t-100', 'spelt')), null, 1))
      let token: string | null = null
      const keep: Push['jwt'] = (honest, at) => {
        token ??= jwt(honest, at)
        return token
      }
      return [
        await push({ to, task: 'spelt', body: compact, jwt: keep }),
        await push({ to, body: wide, jwt: keep }),
      ]
    },
    ['ACK', 'NOOP'],
  ],
])

test('case 74: of twenty copies at once, at three instances, one is taken', async () => {
  const doors = [door.instance(), door.instance(), door.instance()]
  const to = await door.spot(byToken)
  const { result, effects } = await door.during(() =>
    Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        const at = doors[n % doors.length]
        return door.send({ to, task: 'twenty', as: asUrl, ...(at && { at }) })
      }),
    ),
  )
  expect(result.map(({ status }) => status).toSorted()).toEqual([...Array(19).fill(200), 202])
  expect(effects.filter(({ operation, ok }) => operation === 'SendMessage' && ok)).toHaveLength(1)
})

describe('while AWS is away', () => {
  const noticeOf = async (task: string) =>
    (await door.ground.items()).find(({ taskId, seenUntil }) => taskId === task && seenUntil !== undefined)

  test.each(['COMPLETED', 'WORKING'])(
    'case 77: a push of %s that could not be queued is recorded with a timer',
    async name => {
      const task = `unsent ${name}`
      const to = await door.spot({ ...byToken, taskId: task })
      door.fail('SendMessage', 2)
      expect((await door.send({ to, task, body: state(name) })).status).toBe(202)
      expect(await noticeOf(task)).toMatchObject({ due: door.now() + 60_000, slot: expect.any(String) })
      door.heal()
    },
  )

  test('case 77: with the table away the queue alone does', async () => {
    door.fail('PutItem', 2)
    const { result, effects } = await door.during(() => door.send({ task: 'unrecorded' }))
    expect(result.status).toBe(202)
    expect(effects.filter(({ operation, ok }) => operation === 'SendMessage' && ok)).toHaveLength(1)
    door.heal()
  })

  test('case 78: nothing runs on after the answer', async () => {
    const { effects } = await door.during(async () => {
      const { result, effects } = await door.during(() => door.send({ as: asUrl, body: state('WORKING') }))
      expect(result.status).toBe(202)
      expect(recordsIn(effects)).toHaveLength(1)
      expect(effects.filter(({ operation }) => operation === 'SendMessage')).toHaveLength(1)
      // Two requests over the wire give whatever was left every chance.
      for (let n = 0; n < 2; n++) await door.send({ path: () => '/nowhere' })
      return effects.length
    })
    expect(effects).toHaveLength(2)
  })

  test('case 79: after our own 503 the same push is taken, and its copy is known', async () => {
    const push: Push = { ...jti('after'), task: 'after' }
    door.fail('PutItem', 2)
    door.fail('SendMessage', 2)
    expect(await door.push(push)).toBe('LATER')
    door.heal()
    door.ground.advance(10_000)
    const again = { ...push, jwt: signed((_honest, now) => ({ jti: 'after', iat: now - 12, exp: now + 50 })) }
    expect([await door.push(again), await door.push(again)]).toEqual(['ACK', 'NOOP'])
  })

  test('a hook that cannot be looked up is put off, and one that is remembered is not', async () => {
    const to = await door.spot({ ...byToken, n: 9 })
    door.fail('GetItem', 2)
    expect(await door.push({ to })).toBe('LATER')
    expect(await door.push({ to })).toBe('ACK')
    door.ground.advance(31_000)
    door.fail('GetItem', 2)
    expect(await door.push({ to })).toBe('ACK')
    door.heal()
  })

  test('an answer that was lost on the way makes no copy of the SDK’s own retry', async () => {
    door.fail('PutItem', 1, 'fail_after')
    expect((await door.send({ task: 'lost answer' })).status).toBe(202)
    door.heal()
    expect(await noticeOf('lost answer')).toBeDefined()
  })
})

test('what is queued is a pointer: ids, the state that was named, the time', async () => {
  const to = await door.spot(byToken)
  const { effects } = await door.during(() => door.send({ to, task: 'pointer' }))
  const sent = effects.find(({ operation }) => operation === 'SendMessage')
  expect(JSON.parse(String(sent?.body.MessageBody))).toEqual({
    ...{
      v: 1,
      kind: 'notice',
      sub: expect.any(String),
      taskId: 'pointer',
      at: door.now(),
      state: 'completed',
    },
    ...{ notice: expect.any(String), timer: true, trace: expect.any(String) },
  })
  const kept = JSON.stringify([await door.ground.messages('look'), await door.ground.items()])
  for (const secret of [to.hook.token, 'the same words']) expect(kept).not.toContain(secret)
})
