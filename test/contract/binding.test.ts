// Subscriptions that are bound by their first push, in a real table: to one task, whichever was first, once and for all.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Subscription } from '../../shared/model.ts'
import { bindSubscription, endSubscription, putSubscription } from '../../shared/store/subscriptions.ts'
import { startTable, type TestTable } from '../support/table.ts'

const noon = Date.UTC(2026, 5, 15, 12)
let ground: TestTable

beforeAll(async () => {
  ground = await startTable()
})

afterAll(() => ground.stop())

/** A subscription to whatever task is pushed first. */
async function unbound(ref: string): Promise<void> {
  const sub: Subscription = {
    ...{ ref, hook: `hook-${ref}`, id: ref, tenant: 'acme', agent: 'a', principal: 'agent', scope: 'task' },
    ...{ states: ['completed'], targets: [], generation: 1, status: 'active', asked: '' },
    registration: { status: 'handed_out' },
    ...{ createdAt: noon, expiresAt: noon + 3_600_000, bindBy: noon + 60_000 },
  }
  await putSubscription(ground.table, sub)
}

const bind = (ref: string, taskId: string) => bindSubscription(ground.table, ref, taskId)

test('of looks that bind one subscription to different tasks at once one does, and stays', async () => {
  await unbound('raced')
  const tasks = Array.from({ length: 8 }, (_, at) => `task-${at}`)
  const bound = (await Promise.all(tasks.map(taskId => bind('raced', taskId)))).filter(Boolean)
  expect(bound).toHaveLength(1)
  expect(await bind('raced', 'later')).toBeUndefined()
  expect(await bind('raced', bound[0]?.taskId ?? '')).toMatchObject({ taskId: bound[0]?.taskId })
})

test('a subscription that has ended is bound no more', async () => {
  await unbound('ended')
  await endSubscription(ground.table, 'ended', 'expired', noon)
  expect(await bind('ended', 'task-1')).toBeUndefined()
})
