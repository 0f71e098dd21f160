// Turns at an agent in a real table: never more calls than its slots, one probe of an agent that was left alone, and nothing held for ever.

import { SQSClient } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openAfter, openMs, probeMs, slotMs, stateOf, unreachableMs } from '../../shared/breaker.ts'
import type { Step } from '../../shared/log.ts'
import { getCalls } from '../../shared/store/calls.ts'
import { type Entered, enterAgent, leaveAgent, type Turn } from '../../shared/turns.ts'
import { local, startTable, type TestTable } from '../support/table.ts'

let ground: TestTable
let world: Parameters<typeof enterAgent>[0]
let agents = 0
let agent = { tenant: 'acme', agent: '', maxConcurrentCalls: 4 }
const steps: Step[] = []
/** Nobody is told here, so nothing is sent. */
const queues = {
  client: new SQSClient(local),
  urls: { look: '', deliver: '' },
  dead: { look: undefined, deliver: undefined },
}
let at = Date.UTC(2026, 5, 15, 12)

beforeAll(async () => {
  ground = await startTable()
  let drawn = 0
  world = {
    table: ground.table,
    permits: new Map(),
    now: () => at,
    random: () => Uint8Array.of((drawn++ * 83) % 256),
    queues,
    log: step => void steps.push(step),
  }
})

afterAll(() => ground.stop())

beforeEach(() => {
  agent = { ...agent, agent: `a-${++agents}` }
})

const down = { ok: false, trouble: 'unreachable', detail: 'no answer' } as const

const turnOf = (entered: Entered): Turn => {
  if (!entered.ok) throw new Error('It was not let in')
  return entered.turn
}

const enter = async (): Promise<Turn> => turnOf(await enterAgent(world, agent))
const stateNow = async () => stateOf(await getCalls(ground.table, agent), at)

/** Calls that are not answered, until the agent is left alone. */
async function fail(): Promise<void> {
  while ((await stateNow()) === 'closed') {
    await leaveAgent(world, agent, await enter(), down)
    at += openAfter.milliseconds / 2
  }
}

test('of many calls at once no more get in than there are slots, and who is refused waits', async () => {
  const all = await Promise.all(Array.from({ length: 8 }, () => enterAgent(world, agent)))
  const refused = all.filter(entered => !entered.ok)
  expect(all.length - refused.length).toBeLessThanOrEqual(4)
  expect(all.length - refused.length).toBeGreaterThan(0)
  for (const entered of refused) expect(entered).toMatchObject({ waited: { since: at, turns: 1 } })
})

test('one slot after another is found, however they are taken', async () => {
  for (let calls = 0; calls < 4; calls++) await enter()
  expect(await enterAgent(world, agent)).toMatchObject({ ok: false })
})

test('slots of calls that died are free again after the longest exchange', async () => {
  for (let calls = 0; calls < 4; calls++) await enter()
  at += slotMs
  expect(await enterAgent(world, agent)).toMatchObject({ ok: false })
  at += 1
  await enter()
})

test('a lonely call costs one write; slots are given back when they get few', async () => {
  const before = ground.calls.length
  const turns = [await enter()]
  await leaveAgent(world, agent, turns[0] ?? (await enter()), { ok: true })
  expect(ground.calls.slice(before)).toEqual(['UpdateItem'])
  for (let calls = 0; calls < 10; calls++) await leaveAgent(world, agent, await enter(), { ok: true })
})

test('an agent that fails is left alone, one call at a time tries it again, and an answer lets all in', async () => {
  await fail()
  expect(await stateNow()).toBe('open')
  const refused = await enterAgent(world, agent)
  expect(refused).toMatchObject({ ok: false })
  at += 2 * openMs.first
  const all = await Promise.all(Array.from({ length: 8 }, () => enterAgent(world, agent)))
  const [probe, second] = all.filter(entered => entered.ok)
  expect(second).toBeUndefined()
  await leaveAgent(world, agent, turnOf(probe ?? refused), { ok: true })
  expect(await getCalls(ground.table, agent)).not.toHaveProperty('failures')
  await enter()
})

test('a probe that fails leaves it alone for longer; one that dies is made again', async () => {
  await fail()
  at += 2 * openMs.first
  await leaveAgent(world, agent, await enter(), down)
  at += openMs.first
  expect(await stateNow()).toBe('open')
  at += 2 * openMs.first
  await enter()
  expect(await enterAgent(world, agent)).toMatchObject({ ok: false })
  at += probeMs + 1
  await enter()
})

test('a probe that took too long has no say when another is under way', async () => {
  await fail()
  at += 2 * openMs.first
  const late = await enter()
  at += probeMs + 1
  await enter()
  const before = await getCalls(ground.table, agent)
  await leaveAgent(world, agent, late, { ok: true })
  await leaveAgent(world, agent, late, down)
  expect(await getCalls(ground.table, agent)).toEqual(before)
})

test('a probe that was not made after all leaves the next one to be made', async () => {
  await fail()
  at += 2 * openMs.first
  await leaveAgent(world, agent, await enter())
  await enter()
})

test('an answer to a call that began before takes nothing back of an agent that is left alone now', async () => {
  await leaveAgent(world, agent, await enter(), down)
  const early = await enter()
  await fail()
  await leaveAgent(world, agent, early, { ok: true })
  expect(await getCalls(ground.table, agent)).toMatchObject({
    failures: openAfter.failures,
    fault: down.detail,
  })
})

test('an answer between failures takes them back', async () => {
  for (let calls = 0; calls < 3 * openAfter.failures; calls++) {
    await leaveAgent(world, agent, await enter(), calls % 3 === 2 ? { ok: true } : down)
    at += openAfter.milliseconds
  }
  expect(await stateNow()).toBe('closed')
})

test('Retry-After leaves the agent alone for so long, whatever other calls under way come to', async () => {
  const other = await enter()
  await leaveAgent(world, agent, await enter(), { ...down, trouble: 'rate_limited', retryAfterMs: 90_000 })
  await leaveAgent(world, agent, other, { ok: true })
  at += 89_999
  expect(await enterAgent(world, agent)).toMatchObject({ ok: false })
  at += 1
  await enter()
})

test('while its own credentials are to wait an agent is called with others, within its slots, and asked no sooner for that', async () => {
  const asked = { ...down, trouble: 'rate_limited', retryAfterMs: 600_000 } as const
  await leaveAgent(world, agent, await enter(), asked)
  const until = at + 600_000
  // The slot of that call is kept for a while.
  at += slotMs + 1
  const enterOwn = () => enterAgent(world, agent, undefined, () => true)
  const all = await Promise.all(Array.from({ length: 8 }, enterOwn))
  expect(all.filter(({ ok }) => ok)).toHaveLength(agent.maxConcurrentCalls)
  const refused = all.find(({ ok }) => !ok)
  expect(refused).toMatchObject({ why: 'full', afterMs: expect.any(Number) })
  // It does not wait for the time that is over for others only then.
  expect(refused?.ok === false && refused.afterMs).toBeLessThan(60_000)
  const answers = [{ ok: true } as const, down, { ...asked, own: true }, undefined]
  for (const [n, entered] of all.filter(({ ok }) => ok).entries())
    await leaveAgent(world, agent, turnOf(entered), answers[n])
  expect(await getCalls(ground.table, agent)).toMatchObject({ openUntil: until, asked: true })
  expect(await enterAgent(world, agent, undefined, () => false)).toMatchObject({ why: 'left_alone' })
  at = until
  await leaveAgent(world, agent, await enter(), { ok: true })
  expect(await stateNow()).toBe('closed')
})

test('an agent that is down is called by nobody, whatever credentials he has', async () => {
  await fail()
  expect(await enterAgent(world, agent, undefined, () => true)).toMatchObject({ ok: false })
})

test('an agent that has the credentials of several subscriptions wait is left alone like one that fails, and is no news', async () => {
  const asked = { ...down, trouble: 'rate_limited', retryAfterMs: 600_000, own: true } as const
  for (let calls = 1; calls < openAfter.failures; calls++)
    await leaveAgent(world, agent, await enter(), asked)
  at += openAfter.milliseconds
  await leaveAgent(world, agent, await enter(), asked)
  expect(await enterAgent(world, agent)).toMatchObject({ ok: false })
  for (let probes = 0; probes < 8; probes++) {
    at += 2 * openMs.most
    await leaveAgent(world, agent, await enter(), asked)
  }
  expect(toldOf()).toEqual([])
})

/** What the tenant's operational targets would have been told, each time with its name. */
const toldOf = () =>
  steps
    .filter(({ step, agent: of }) => step === 'operations.told' && of === agent.agent)
    .map(({ type, since }) => `${type} ${since}`)

/** One probe after another that fails, for so long. */
async function failFor(milliseconds: number): Promise<void> {
  for (const end = at + milliseconds; at < end; at += openMs.first) {
    const entered = await enterAgent(world, agent)
    if (entered.ok) await leaveAgent(world, agent, entered.turn, down)
  }
}

test('an agent that fails for long is told as unreachable once, and as recovered when it answers a probe', async () => {
  const since = at
  await fail()
  await failFor(unreachableMs / 2)
  expect(toldOf()).toEqual([])
  await failFor(3 * unreachableMs)
  expect(toldOf()).toEqual([`agent.unreachable ${since}`])
  at += 2 * openMs.most
  await leaveAgent(world, agent, await enter(), { ok: true })
  expect(toldOf()).toEqual([`agent.unreachable ${since}`, `agent.recovered ${since}`])
  const again = at
  await fail()
  await failFor(4 * unreachableMs)
  expect(toldOf().slice(2)).toEqual([`agent.unreachable ${again}`])
})

test('whoever dies while telling it tells it again under the same name', async () => {
  const since = at
  await fail()
  at += unreachableMs
  const dies = await enter()
  ground.plan('UpdateItem', 'throttle', 'throttle')
  await expect(leaveAgent(world, agent, dies, down)).rejects.toThrow()
  at += probeMs + 1
  await leaveAgent(world, agent, await enter(), down)
  expect(toldOf()).toEqual(Array(2).fill(`agent.unreachable ${since}`))
  at += 2 * openMs.most
  const answered = await enter()
  ground.plan('UpdateItem', 'throttle', 'throttle')
  await expect(leaveAgent(world, agent, answered, { ok: true })).rejects.toThrow()
  at += probeMs + 1
  await leaveAgent(world, agent, await enter(), { ok: true })
  expect(toldOf().slice(2)).toEqual(Array(2).fill(`agent.recovered ${since}`))
})

test('a probe without a say, an agent that asks for a while, and a short outage tell nothing', async () => {
  await leaveAgent(world, agent, await enter(), { ...down, trouble: 'rate_limited', retryAfterMs: 90_000 })
  for (let asked = 0; asked < 5; asked++) {
    at += unreachableMs
    await leaveAgent(world, agent, await enter(), { ...down, trouble: 'rate_limited', retryAfterMs: 90_000 })
  }
  at += unreachableMs
  const late = await enter()
  at += probeMs + 1
  await leaveAgent(world, agent, await enter(), down)
  const before = toldOf()
  await leaveAgent(world, agent, late, { ok: true })
  expect(toldOf()).toEqual(before)
  expect(before).toHaveLength(1)
})

test('a lost answer of the table counts a failure once', async () => {
  const turn = await enter()
  ground.plan('UpdateItem', 'fail_after')
  await leaveAgent(world, agent, turn, down)
  expect(await getCalls(ground.table, agent)).toMatchObject({ failures: 1 })
})

test('the look that waits longest is known until it is let in', async () => {
  const one = { ...agent, maxConcurrentCalls: 1 }
  await enterAgent(world, one)
  const first = await enterAgent(world, one)
  at += 2000
  await enterAgent(world, one)
  expect(await getCalls(ground.table, one)).toMatchObject({ oldest: at - 2000 })
  at += slotMs
  const again = await enterAgent(world, one, first.ok ? undefined : first.waited)
  expect(again.ok).toBe(true)
  expect(await getCalls(ground.table, one)).not.toHaveProperty('oldest')
})
