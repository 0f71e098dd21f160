// Floods at the door: an authentic one is never refused and costs next to nothing, a forged one is bounded and harms nobody else.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeHook } from '../../shared/hooks.ts'
import { rates } from '../../shared/limits.ts'
import { stillClock } from '../support/clock.ts'
import { type Dialect, dialects } from '../support/dialects.ts'
import { type Door, type Push, startDoor } from '../support/door.ts'
import { body } from '../support/pushes.ts'
import type { Kind } from '../support/spots.ts'
import { push, startTrip, statusPush } from '../support/trip.ts'

let door: Door

beforeAll(async () => {
  door = await startDoor()
})

afterAll(() => door.stop())

const byToken: Kind = { token: true }
const as = dialects['Function URL']
const x = 'x-a2a-notification-token'
const state = (name: string, n: number): string => body.replace('COMPLETED', name).replace('c-1', `c-${n}`)

/** So many verdicts, counted. */
async function counted(times: number, make: (n: number) => Push): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (let n = 0; n < times; n++) {
    const verdict = await door.push(make(n))
    counts[verdict] = (counts[verdict] ?? 0) + 1
  }
  return counts
}

describe('an authentic flood of one task', () => {
  const { burst, perSecond } = rates.task
  const noise =
    (task: string) =>
    (n: number): Push => ({ to: byToken, as, task, body: state('WORKING', n) })
  const oneLook = '202, 1 jobs, 0 records: {"status":"accepted"}'

  test('is recorded up to its rate, and beyond it costs one delayed look and nothing else', async () => {
    const { result, effects } = await door.during(() => counted(burst + 30, noise('flood')))
    expect(result).toEqual({ ACK: burst, [oneLook]: 1, NOOP: 29 })
    const looks = effects.filter(({ operation }) => operation === 'SendMessage').map(({ body }) => body)
    expect(looks.filter(({ DelaySeconds }) => DelaySeconds !== 0)).toMatchObject([{ DelaySeconds: 2 }])
    // Late enough to see whatever came in its window, and dated so that no earlier look settles it.
    expect(JSON.parse(String(looks.at(-1)?.MessageBody))).toMatchObject({
      taskId: 'flood',
      state: 'working',
      at: door.now() + 1000,
    })
    expect(JSON.parse(String(looks.at(-1)?.MessageBody))).not.toHaveProperty('notice')
  })

  test('has a look in each window, for as long as it lasts', async () => {
    await counted(burst, noise('lasting'))
    for (let second = 0; second < 3; second++) {
      expect(await counted(perSecond + 5, noise('lasting'))).toMatchObject({ [oneLook]: 1 })
      door.ground.advance(1000)
    }
  })

  test('leaves its news a record each', async () => {
    await counted(burst + 5, noise('news'))
    expect(await door.push({ to: byToken, as, task: 'news', body: state('COMPLETED', 0) })).toBe('ACK')
  })

  test('leaves other tasks alone', async () => {
    await counted(burst + 5, noise('loud'))
    expect(await door.push({ to: byToken, as, task: 'quiet', body: state('WORKING', 0) })).toBe('ACK')
  })

  test('is put off when not even its look can be queued', async () => {
    await counted(burst, noise('stuck'))
    door.fail('SendMessage', 2)
    expect(await door.push(noise('stuck')(1000))).toBe('LATER')
    door.heal()
    expect(await door.push(noise('stuck')(1001))).toBe(oneLook)
  })
})

describe('pushes of a task that tell nothing new', () => {
  const task = 'bound'
  const toBound: Kind = { ...byToken, taskId: task }
  const noise = (n: number): Push => ({ to: toBound, as, task, body: state('WORKING', n) })
  const ride = '202, 0 jobs, 1 records: {"status":"accepted"}'

  test('ride for a second on the look that is queued two seconds ahead; news has a look of its own at once', async () => {
    const { result, effects } = await door.during(async () => [
      await door.push(noise(1)),
      await door.push(noise(2)),
      await door.push({ ...noise(3), body: state('INPUT_REQUIRED', 3) }),
      door.ground.advance(999),
      await door.push(noise(4)),
      door.ground.advance(1),
      await door.push(noise(5)),
    ])
    expect(result).toEqual(['ACK', ride, 'ACK', undefined, ride, undefined, 'ACK'])
    const sent = effects.filter(({ operation }) => operation === 'SendMessage').map(({ body }) => body)
    expect(sent.map(({ DelaySeconds }) => DelaySeconds)).toEqual([2, 0, 2])
    // Dated so that no look settles it which starts too early for those who ride.
    const dates = sent.map(({ MessageBody }) => JSON.parse(String(MessageBody)).at - door.now())
    expect(dates).toEqual([0, -1000, 1000])
  })

  test('ride on no look that could not be queued', async () => {
    door.ground.advance(2000)
    door.fail('SendMessage', 2)
    await door.push(noise(6))
    door.heal()
    expect(await door.push(noise(7))).toBe('ACK')
  })
})

test('case 151: of a flood and the end right behind it the end is told, by few looks', async () => {
  const trip = await startTrip({ clock: stillClock() })
  try {
    const { id, agent, caller } = await trip.scene()
    const taskId = await caller.send('work')
    const { client, hook } = await trip.subscribe(id, { taskId })
    await trip.pass(2000)
    const looks = agent.calls('GetTask')
    const flood = Array.from({ length: rates.task.burst + 60 }, (_, n) => ({
      ...statusPush(taskId, 'working'),
      metadata: { n },
    }))
    for (const part of flood) expect(await push(hook, part)).toBe(202)
    await agent.setState(taskId, 'completed')
    await trip.pass(4000, 4)
    expect(trip.stepsOf('notice.stored', taskId)).toHaveLength(rates.task.burst + 1)
    // One for all of the noise, one for the end.
    expect(trip.stepsOf('notice.queued', taskId)).toHaveLength(2)
    expect(agent.calls('GetTask') - looks).toBeLessThanOrEqual(5)
    expect(client.states()).toEqual(['completed'])
  } finally {
    await trip.stop()
  }
})

test('case 151: the end that comes without a push of its own, in the last moment of a flood, is told too', async () => {
  const trip = await startTrip({ clock: stillClock() })
  try {
    const { id, agent, caller } = await trip.scene()
    const taskId = await caller.send('work')
    const { client, hook } = await trip.subscribe(id, { taskId })
    await trip.pass(2000)
    for (let n = 0; n < rates.task.burst + 20; n++)
      await push(hook, { ...statusPush(taskId, 'working'), metadata: { n } })
    await trip.settle()
    await agent.setState(taskId, 'completed', { push: false })
    // Beyond the rate, so that only the delayed look of the flood can tell.
    for (let n = 0; n < 5; n++)
      expect(await push(hook, { ...statusPush(taskId, 'working'), metadata: { late: n } })).toBe(202)
    await trip.pass(4000, 4)
    expect(client.states()).toEqual(['completed'])
  } finally {
    await trip.stop()
  }
})

describe('a forged flood', () => {
  const { burst, perSecond } = rates.refused
  const forged = (more: Push = {}): Push => ({
    to: byToken,
    as,
    headers: { [x]: 'no' },
    source: '203.0.113.9',
    ...more,
  })

  test('of one address at one hook is answered unread beyond its rate', async () => {
    expect(await counted(burst + 20, () => forged())).toEqual({ DENY: burst, '429': 20 })
    const { effects } = await door.during(() => counted(20, () => forged()))
    expect(effects).toEqual([])
    door.ground.advance(1000)
    expect(await counted(20, () => forged())).toEqual({ DENY: perSecond, '429': 20 - perSecond })
  })

  test.each(Object.entries<Dialect>(dialects))(
    'leaves honest pushes of other addresses alone, by %s',
    async (name, shape) => {
      const to: Kind = { ...byToken, n: 1 + Object.keys(dialects).indexOf(name) }
      const by = (n: number): Push =>
        forged({ to, as: shape, headers: { [x]: 'no', 'x-forwarded-for': `192.0.2.${n}` } })
      expect(await counted(burst + 5, by)).toEqual({ DENY: burst, '429': 5 })
      expect(await door.push({ to, as: shape, source: '198.51.100.7' })).toBe('ACK')
      expect(await door.push({ to, as: shape, source: '203.0.113.9' })).toBe('429')
    },
  )

  test('leaves other hooks alone', async () => {
    const to = await door.spot({ ...byToken, n: 100 })
    await counted(burst + 5, () => forged({ to }))
    expect(await door.push({ to: { ...byToken, n: 101 }, as, source: '203.0.113.9' })).toBe('ACK')
  })

  test('is not begun by honest pushes, however many', async () => {
    const to = await door.spot({ ...byToken, n: 102 })
    expect(await counted(burst + 5, () => ({ to, as, source: '203.0.113.9', task: 'same', body }))).toEqual({
      ACK: 1,
      NOOP: burst + 4,
    })
  })

  test('costs no call while the subscription is fresh, and one reading of it when it is not', async () => {
    const to = await door.spot({ ...byToken, n: 103 })
    expect(await door.push({ to, as })).toBe('ACK')
    door.ground.advance(11_000)
    await door.send({ path: () => '/nowhere' })
    const { effects } = await door.during(() => counted(10, () => forged({ to })))
    expect(effects.map(({ operation }) => operation)).toEqual(['GetItem', 'GetItem'])
  })
})

describe('pushes to hooks that are not there', () => {
  test('cost no call when they were guessed', async () => {
    await door.spot(byToken)
    const guess = (): string => `/hooks/${randomBytes(25).toString('base64url')}`
    const { result, effects } = await door.during(() =>
      counted(100, () => ({ to: byToken, as, path: guess })),
    )
    expect(result).toEqual({ '404': 100 })
    expect(effects).toEqual([])
  })

  test('cost one reading each five seconds when the hook was once ours', async () => {
    await door.spot(byToken)
    const [version = '', key = ''] = door.ground.secrets.rootKeys.split(':')
    const hook = makeHook(new Map([[Number(version), Buffer.from(key, 'base64url')]]), randomBytes(16))
    const at: Push = { to: byToken, as, path: () => `/hooks/${hook}` }
    const { result, effects } = await door.during(async () => {
      const verdicts = [await counted(20, () => at)]
      door.ground.advance(5001)
      return [...verdicts, await counted(20, () => at)]
    })
    expect(result).toEqual([{ '404': 20 }, { '404': 20 }])
    expect(effects.map(({ operation }) => operation)).toEqual(['GetItem', 'GetItem'])
  })
})
