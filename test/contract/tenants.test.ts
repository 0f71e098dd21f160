// Tenants in a real table: who has a name, and that a deleted tenant's name comes free only when all that it left is gone.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buryTenant, getTenant, putTenant } from '../../shared/store/access.ts'
import { startTable, type TestTable } from '../support/table.ts'

const noon = Date.UTC(2026, 5, 15, 12)
const day = 24 * 60 * 60 * 1000

let ground: TestTable

beforeAll(async () => {
  ground = await startTable()
})

afterAll(() => ground.stop())

test('a name comes free when a watch of its last day has gone, even if the deletion was repeated', async () => {
  const { table } = ground
  const first = await putTenant(table, { tenant: 'a', label: 'First', createdAt: noon })
  await buryTenant(table, first, noon)
  await buryTenant(table, first, noon + 300 * day)
  expect(await getTenant(table, 'a')).toBeUndefined()
  const again = (days: number) => putTenant(table, { tenant: 'a', createdAt: noon + days * day })
  expect((await again(400)).takenUntil).toBeGreaterThan(noon + 400 * day)
  expect(await again(410)).toEqual({ tenant: 'a', createdAt: noon + 410 * day })
  expect(await getTenant(table, 'a')).toMatchObject({ createdAt: noon + 410 * day })
})

test('of a deletion and a repeat at the same time none brings the tenant back with its past', async () => {
  const { table } = ground
  const tenant = { tenant: 'b', createdAt: noon }
  await putTenant(table, tenant)
  await Promise.all([
    putTenant(table, { ...tenant, label: 'Again' }),
    buryTenant(table, tenant, noon + day),
    putTenant(table, { ...tenant, label: 'And again' }),
  ])
  expect(await getTenant(table, 'b')).toBeUndefined()
})
