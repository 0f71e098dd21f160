// The key set's item in a real table: one instance gets the fetch, late ones overwrite nothing, a lie of the network is seen through.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type KeyStore, keyStore, owedAlarm, type StoredKeys, toldAlarm } from '../../shared/store/keysets.ts'
import { startTable, type TestTable } from '../support/table.ts'

const url = 'https://agent.example/jwks.json'
const at = 1_767_225_600_000
const fetched = {
  ...{ keys: '{"keys":[]}', flags: [], settledAt: at + 100 },
  ...{ freshUntil: at + 600_000, nextFetch: at + 30_000 },
}

let ground: TestTable
let store: KeyStore
let agents = 0
let of = { tenant: 'acme', agent: '' }

beforeAll(async () => {
  ground = await startTable()
  store = keyStore(ground.table)
})

afterAll(() => ground.stop())

beforeEach(() => {
  of = { tenant: 'acme', agent: `a${++agents}` }
})

const lease = async (from: string, when = at): Promise<StoredKeys> => {
  const leased = await store.lease(of, from, when, when + 3_500)
  if (!leased.ok || leased.item === undefined) throw new Error('not leased')
  return leased.item
}

test('of 32 instances one gets the fetch, now and after the allowance', async () => {
  for (const when of [at, at + 30_000]) {
    const all = await Promise.all(Array.from({ length: 32 }, () => store.lease(of, url, when, when + 30_000)))
    expect(all.filter(({ ok }) => ok)).toHaveLength(1)
  }
})

test('a good fetch puts the next one off, and the one who comes too early is told what stands', async () => {
  await store.save(of, await lease(url), fetched)
  const late = await store.lease(of, url, at + 29_999, at + 60_000)
  expect(late).toMatchObject({
    ok: false,
    old: { url, keys: fetched.keys, settledAt: at + 100, failures: 0 },
  })
})

test('a failed fetch leaves the last good set and sets the time of the next', async () => {
  await store.save(of, await lease(url), fetched)
  const leased = await lease(url, at + 30_000)
  await store.fail(of, leased, {
    fault: 'timeout',
    failures: 1,
    settledAt: at + 32_500,
    nextFetch: at + 37_500,
  })
  expect(await store.load(of)).toMatchObject({ keys: fetched.keys, fault: 'timeout', failures: 1 })
  expect((await store.lease(of, url, at + 37_499, at + 90_000)).ok).toBe(false)
  const next = await lease(url, at + 37_500)
  await store.save(of, next, { ...fetched, settledAt: at + 38_000 })
  const good = await store.load(of)
  expect(good).toMatchObject({ failures: 0, settledAt: at + 38_000 })
  expect(good).not.toHaveProperty('fault')
})

test('a fetch that ends after another was leased records nothing', async () => {
  const slow = await lease(url)
  await store.save(of, await lease(url, at + 30_000), { ...fetched, keys: 'newer' })
  await store.save(of, slow, { ...fetched, keys: 'older' })
  await store.fail(of, slow, { fault: 'timeout', failures: 1, settledAt: at, nextFetch: at })
  expect(await store.load(of)).toMatchObject({ keys: 'newer', failures: 0 })
})

test('another URL replaces the item at once, keys and all', async () => {
  await store.save(of, await lease(url), fetched)
  const moved = await lease('https://agent.example/new.json', at + 1)
  const item = await store.load(of)
  expect(item).toMatchObject({ url: moved.url, failures: 0, settledAt: 0 })
  expect(item).not.toHaveProperty('keys')
})

test('a lease whose answer was lost on the way is still ours', async () => {
  await lease(url)
  ground.plan('UpdateItem', 'fail_after')
  expect((await store.lease(of, url, at + 30_000, at + 60_000)).ok).toBe(true)
})

test('a set that holds nothing but a private key is told once, and its timer stays until a good one is there', async () => {
  await store.save(of, await lease(url), { ...fetched, freshUntil: at + 60_000 })
  expect(await store.load(of)).not.toHaveProperty('due')
  const failed = {
    fault: 'no_usable_key',
    failures: 1,
    flags: ['private_key_published'],
    nextFetch: at + 40_000,
  }
  await store.fail(of, await lease(url, at + 30_000), { ...failed, settledAt: at + 31_000 })
  const owing = await lease(url, at + 40_000)
  expect(owing).toMatchObject({ due: at + 31_000 })
  expect(owedAlarm(owing)).toEqual({ flags: 'private_key_published', since: at + 31_000 })
  await toldAlarm(ground.table, of, owing, at + 31_000)
  const told = await lease(url, at + 50_000)
  expect(owedAlarm(told)).toBeUndefined()
  expect(told).toHaveProperty('due')
  await store.save(of, told, { ...fetched, settledAt: at + 51_000, freshUntil: at + 111_000 })
  expect(await store.load(of)).not.toHaveProperty('due')
})
