// A tenant's counts in a real table: nobody gets past a limit, however many try at once, and a new day begins at none.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Counted, tenantLimits } from '../../shared/limits.ts'
import { removeAgent } from '../../shared/store/agents.ts'
import { point, unpoint } from '../../shared/store/directory.ts'
import { agentKey, quotaKey } from '../../shared/store/keys.ts'
import { giveBack, takeOne } from '../../shared/store/quota.ts'
import { get, put } from '../../shared/store/table.ts'
import { startTable, type TestTable } from '../support/table.ts'

const noon = Date.UTC(2026, 5, 15, 12)
const day = 24 * 60 * 60 * 1000

let ground: TestTable
let tenants = 0
let tenant = ''

beforeAll(async () => {
  ground = await startTable()
})

afterAll(() => ground.stop())

beforeEach(() => {
  tenant = `t${++tenants}`
})

const take = (counted: Counted, now = noon): Promise<boolean> => takeOne(ground.table, tenant, counted, now)

test.each(['agents', 'targets'] as const)(
  'of many who ask for the last of the %s one gets it',
  async counted => {
    await put(ground.table, { ...quotaKey(tenant, counted), count: tenantLimits[counted] - 1 })
    const all = await Promise.all(Array.from({ length: 16 }, () => take(counted)))
    expect(all.filter(Boolean)).toHaveLength(1)
    await giveBack(ground.table, tenant, counted, noon)
    expect([await take(counted), await take(counted, noon + day)]).toEqual([true, false])
  },
)

test('subscriptions are counted by day', async () => {
  const today = quotaKey(tenant, 'subscriptions', Math.floor(noon / day))
  await put(ground.table, { ...today, count: tenantLimits.subscriptions })
  expect([await take('subscriptions'), await take('subscriptions', noon + day)]).toEqual([false, true])
})

test('of two who delete the same target or agent one is told that it did, and counts it', async () => {
  const agent = 'x'
  const listing = { kind: 'targets' } as const
  await point(ground.table, tenant, listing, 'x', 'x')
  await put(ground.table, agentKey(tenant, agent))
  const both = (deleting: () => Promise<boolean>) => Promise.all([deleting(), deleting()])
  expect((await both(() => unpoint(ground.table, tenant, listing, 'x', 'x'))).toSorted()).toEqual([
    false,
    true,
  ])
  expect((await both(() => removeAgent(ground.table, tenant, agent))).toSorted()).toEqual([false, true])
})

test('nothing counts below none', async () => {
  await giveBack(ground.table, tenant, 'agents', noon)
  await take('agents')
  await giveBack(ground.table, tenant, 'agents', noon)
  await giveBack(ground.table, tenant, 'agents', noon)
  expect(await get(ground.table, quotaKey(tenant, 'agents'))).toMatchObject({ count: 0 })
})
