// Several processes at one agent's slots, in a real table: what they keep and share, and that its limit holds whatever they do and whoever dies.
import { SQSClient } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { callMs, openMs, slotMs, takenSlots } from '../../shared/breaker.ts'
import { getCalls } from '../../shared/store/calls.ts'
import { enterAgent, leaveAgent, type Turn } from '../../shared/turns.ts'
import { local, startTable, type TestTable } from '../support/table.ts'

type World = Parameters<typeof enterAgent>[0]

/** Nobody is told here, so nothing is sent. */
const queues = {
  client: new SQSClient(local),
  urls: { look: '', deliver: '' },
  dead: { look: undefined, deliver: undefined },
}

let ground: TestTable
let agents = 0
let agent = { tenant: 'acme', agent: '', maxConcurrentCalls: 8 }
let at = Date.UTC(2026, 5, 15, 12)
let drawn = 0

beforeAll(async () => {
  ground = await startTable()
})

afterAll(() => ground.stop())

beforeEach(() => {
  agent = { ...agent, agent: `a-${++agents}` }
})

const chance = (): number => (drawn++ * 83) % 256

/** A process of its own: nothing but the table is shared. */
const processOf = (): World => ({
  table: ground.table,
  permits: new Map(),
  queues,
  now: () => at,
  random: length => Uint8Array.from({ length }, chance),
  log: () => {},
})

async function enter(world: World): Promise<Turn> {
  const entered = await enterAgent(world, agent)
  if (!entered.ok) throw new Error('It was not let in')
  return entered.turn
}

const ok = { ok: true } as const
const down = { ok: false, trouble: 'unreachable', detail: 'no answer' } as const
const taken = async (): Promise<number> => takenSlots(await getCalls(ground.table, agent), 8, at).length

/** How many writes some work costs. */
async function writesOf(work: () => Promise<void>): Promise<number> {
  const before = ground.calls.length
  await work()
  return ground.calls.slice(before).filter(call => call === 'UpdateItem').length
}

test('calls one after another share one slot for as long as it lasts for another', async () => {
  const world = processOf()
  const writes = await writesOf(async () => {
    for (let call = 0; call < 20; call++) {
      await leaveAgent(world, agent, await enter(world), ok)
      at += (slotMs - callMs) / 20
    }
  })
  expect(writes).toBe(1)
  // What is left of its time would not last for a whole call.
  at += 1
  expect(await writesOf(async () => void (await enter(world)))).toBe(1)
})

test('calls that begin together cost two writes, and one that gives back what is more than half of the slots', async () => {
  const world = processOf()
  const turns: Turn[] = []
  const entering = async () =>
    void turns.push(...(await Promise.all(Array.from({ length: 8 }, () => enter(world)))))
  expect(await writesOf(entering)).toBe(2)
  expect(await taken()).toBe(8)
  const leaving = async () => void (await Promise.all(turns.map(turn => leaveAgent(world, agent, turn, ok))))
  expect(await writesOf(leaving)).toBe(1)
  expect(await taken()).toBe(4)
})

test('who keeps slots while others wait gives them back after each call', async () => {
  const [one, other] = [processOf(), processOf()]
  const all = await Promise.all(Array.from({ length: 8 }, () => enter(one)))
  const refused = await enterAgent(other, agent)
  expect(refused).toMatchObject({ ok: false })
  for (const turn of all) await leaveAgent(one, agent, turn, ok)
  // Half of them were kept, by who could not know: the other gets its slot all the same, and is not waiting any more.
  const waited = refused.ok ? undefined : refused.waited
  at += 1000
  expect(await enterAgent(other, agent, waited)).toMatchObject({ ok: true })
  expect(await getCalls(ground.table, agent)).not.toHaveProperty('oldest')
})

test('slots that a process kept when it died are free again once their time is over', async () => {
  const dead = processOf()
  for (let call = 0; call < 4; call++) await enter(dead)
  at += slotMs + 1
  const world = processOf()
  for (let call = 0; call < 8; call++) await enter(world)
  expect(await enterAgent(world, agent)).toMatchObject({ ok: false })
})

test('a process that keeps a slot calls an agent that others left alone once at most', async () => {
  const [one, other] = [processOf(), processOf()]
  await leaveAgent(one, agent, await enter(one), ok)
  const asked = { ...down, trouble: 'rate_limited', retryAfterMs: openMs.most } as const
  await leaveAgent(other, agent, await enter(other), asked)
  await leaveAgent(one, agent, await enter(one), down)
  expect(await enterAgent(one, agent)).toMatchObject({ ok: false })
  at += openMs.most + 1
  const probe = await enter(one)
  expect(await enterAgent(other, agent)).toMatchObject({ ok: false })
  await leaveAgent(one, agent, probe, ok)
  at += 1000
  await enter(other)
})

test('whatever processes do, and though some die, no more calls are under way than the agent has slots', async () => {
  let worlds = [processOf(), processOf(), processOf(), processOf()]
  let under: { world: World; turn: Turn; ends: number }[] = []
  let [most, entered] = [0, 0]
  for (let step = 0; step < 24; step++) {
    const gone = worlds[chance() % worlds.length] ?? processOf()
    // It dies in the middle of its calls, which its agent goes on with.
    if (step % 8 === 7) worlds = [...worlds.filter(world => world !== gone), processOf()]
    const begins = worlds.flatMap(world => Array.from({ length: chance() % 4 }, () => world))
    await Promise.all(
      begins.map(async world => {
        const got = await enterAgent(world, agent)
        if (!got.ok) return
        entered += 1
        under.push({ world, turn: got.turn, ends: at + (chance() / 256) * (callMs - 1000) })
        most = Math.max(most, under.length)
      }),
    )
    at += 250 + chance() * 10
    const over = under.filter(({ ends }) => ends <= at)
    under = under.filter(({ ends }) => ends > at)
    for (const { world, turn } of over) if (worlds.includes(world)) await leaveAgent(world, agent, turn, ok)
  }
  expect(most).toBeLessThanOrEqual(8)
  expect(most).toBeGreaterThan(4)
  expect(entered).toBeGreaterThan(24)
})
