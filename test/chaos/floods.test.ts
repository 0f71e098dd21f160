// Floods in small, by the ground's clock: of pushes for one task, of one agent's tasks that end at once, of wakes for a dead target. `npm run bench -- --only floods` plays them large.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { endCrowd } from '../bench/floods/crowd.ts'
import { wakeMany } from '../bench/floods/dead.ts'
import { calm, loud } from '../bench/floods/ends.ts'
import { floodTask } from '../bench/floods/task.ts'
import { type Stand, startStand } from '../bench/stand.ts'

let stand: Stand

beforeAll(async () => {
  stand = await startStand({ tenants: [loud, calm], batches: 6, env: { DUE_SHARDS: '2' } })
})

afterAll(async () => {
  const dead = await stand.local.dead()
  await stand.stop()
  expect(dead).toEqual([])
})

const second = 1000

test('a flood of pushes of one task costs one look a window, loses no end, and keeps nobody else waiting', async () => {
  const { refused, seconds, looked, late } = await floodTask(stand, { pushes: 240, seconds: 3 })
  expect(refused).toBe(0)
  expect(looked.length).toBeLessThanOrEqual(seconds + 2)
  expect(looked.filter((at, n) => at < (looked[n - 1] ?? 0) + second)).toEqual([])
  for (const [whose, ms] of Object.entries(late)) expect(ms, whose).toBeLessThanOrEqual(3 * second)
})

test('tasks of one agent that end at once take no more than its calls at a time, are all told, and keep no other tenant waiting', async () => {
  const flood = await endCrowd(stand, { tasks: 24, seconds: 1, strangers: 1, limit: 3 })
  expect(flood).toMatchObject({ told: 24, strangers: 1 })
  expect(flood.most).toBeLessThanOrEqual(3)
  // Somebody had to wait, and the agent's health said so.
  expect(flood.waitedSeconds).toBeGreaterThan(0)
  expect(flood.late.among).toBeLessThanOrEqual(3 * second)
})

test('wakes for a dead target take ten of its calls at a time, keep no other tenant’s waiting, and are one hint when it is back', async () => {
  const flood = await wakeMany(stand, new Map(), { name: 'dead', dead: 502, wakes: 24, every: 6 })
  expect(flood).toMatchObject({ kept: 24, others: 4, told: 4 })
  expect(flood.most).toBeLessThanOrEqual(10)
  // The probe, and the newest that waited.
  expect(flood.callsAfter).toBeLessThanOrEqual(2)
})
