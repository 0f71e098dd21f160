// Whoever waits for all tasks of an agent hears of those that no push told of, whatever the agent's list is like.
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Answer } from '../support/receiver.ts'
import { type Scripted, status } from '../support/scripted.ts'
import { push, type Subscribed, statusPush } from '../support/trip.ts'
import { hour, minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

type Asked = { id: string; method: string; params: { id: string; pageToken?: string } }
type Wide = Subscribed & { agent: Scripted; id: string; asked: (string | undefined)[] }

/** What a sweep may not record, if anything. */
let refuses: (sweep: string) => boolean
waitsOfFile({
  faults: ({ who, operation, body }) => {
    const text = who === 'look' && operation === 'UpdateItem' ? JSON.stringify(body) : ''
    return text.includes('sweepAt') && refuses(text) ? 'throttle' : undefined
  },
})
beforeEach(() => {
  refuses = () => false
})
/** Whoever subscribed in a test: swept on, they would cost the others their time. */
const subscribed: Subscribed[] = []
afterEach(async () => {
  for (const { made } of subscribed.splice(0)) await trip.call('DELETE', `/v1/subscriptions/${made.id}`)
})

const say = (asked: Asked, result: object): Answer => ({
  body: JSON.stringify({ jsonrpc: '2.0', id: asked.id, result }),
})
const gone = (asked: Asked): Answer => ({
  body: JSON.stringify({ jsonrpc: '2.0', id: asked.id, error: { code: -32001, message: 'gone' } }),
})

/** Somebody waits for all tasks of an agent whose pages the test writes; each token that it is asked for is kept. */
async function wideOf(
  page: (token: string | undefined, asked: Asked) => object | Answer,
  more: Record<string, unknown> = {},
): Promise<Wide> {
  const { agent, id } = await world.agentOf()
  const wide = await trip.subscribe(id, { scope: 'agent', ...more })
  subscribed.push(wide)
  await trip.pass(2000)
  const asked: Wide['asked'] = []
  agent.instead(((call: Asked) => {
    if (call.method !== 'ListTasks') return undefined
    asked.push(call.params.pageToken)
    const said = page(call.params.pageToken, call)
    return 'status' in said || 'body' in said ? said : say(call, said)
  }) as Parameters<Scripted['instead']>[0])
  return { ...wide, agent, id, asked }
}

const soon = (state = 'completed') =>
  status(state, { timestamp: new Date(trip.local.now() + 1000).toISOString() })

/** A task that is over, as GetTask and lists show it. */
function ended({ agent }: { agent: Scripted }, id: string): { id: string } {
  const done = soon()
  agent.put(id, done)
  return { id, ...done }
}

const heard = ({ client }: Subscribed) => new Set(client.told().map(({ data }) => data.taskId))

test('a list that is longer than one sweep is gone through by the next ones', async () => {
  const names = Array.from({ length: 45 }, (_, page) => `page-${page}`)
  const pages: object[] = []
  const wide = await wideOf((token = '0') => ({
    tasks: pages.slice(Number(token), Number(token) + 1),
    nextPageToken: Number(token) + 1 < pages.length ? String(Number(token) + 1) : '',
  }))
  for (const name of names) pages.push(ended(wide, name))
  await trip.pass(hour, 60)
  expect(heard(wide)).toEqual(new Set(names))
})

test('what comes first in a list is told while the rest of it is gone through', async () => {
  const listed: object[] = []
  const wide = await wideOf((token = '0') => ({
    tasks: token === '0' ? listed : [{ id: `old-${token}`, ...soon('working') }],
    nextPageToken: String(Number(token) + 1),
  }))
  await trip.pass(6 * minute, 6)
  listed.push(ended(wide, 'new'))
  await trip.pass(6 * minute, 6)
  expect(heard(wide)).toContain('new')
})

test('a page token that the agent knows no more is given up for a list that begins anew', async () => {
  const listed: object[] = []
  let down = false
  let epoch = 1
  const wide = await wideOf(token => {
    if (token === undefined) return { tasks: [], nextPageToken: `e${epoch}` }
    return down || token !== `e${epoch}` ? { status: 500 } : { tasks: listed, nextPageToken: '' }
  })
  await trip.pass(11 * minute, 11)
  down = true
  await trip.pass(5 * minute, 5)
  down = false
  epoch = 2
  listed.push(ended(wide, 'new'))
  await trip.pass(20 * minute, 20)
  expect(heard(wide)).toEqual(new Set(['new']))
})

test('a list that is refused after some pages each time is gone through', async () => {
  const pages: object[] = []
  let left = 0
  const wide = await wideOf((token = '0') => {
    left = token === '0' ? 7 : left - 1
    if (left === 0) return { status: 429 }
    return {
      tasks: pages.slice(Number(token), Number(token) + 1),
      nextPageToken: Number(token) + 1 < pages.length ? String(Number(token) + 1) : '',
    }
  })
  const names = Array.from({ length: 25 }, (_, page) => `rated-${page}`)
  for (const name of names) pages.push(ended(wide, name))
  await trip.pass(hour, 30)
  expect(heard(wide)).toEqual(new Set(names))
})

const endless: [string, (token: string, first: object[]) => object][] = [
  [
    'new tokens for pages that are empty',
    (token, first) => ({ tasks: token === '0' ? first : [], nextPageToken: String(Number(token) + 50) }),
  ],
  [
    'one token for one page',
    (token, first) => ({
      tasks: token === '0' ? first : [{ id: 'same', ...status('working') }],
      nextPageToken: '1',
    }),
  ],
  [
    'pages in a circle',
    (token, first) => ({
      tasks: token === '0' ? first : [{ id: `circle-${token}`, ...status('working') }],
      nextPageToken: String((Number(token) % 30) + 1),
    }),
  ],
]
test.each(endless)('a list that never ends, of %s, hides nothing and costs little', async (_, page) => {
  const listed: object[] = []
  const wide = await wideOf((token = '0') => page(token, listed))
  for (const id of ['same', ...Array.from({ length: 31 }, (_, n) => `circle-${n}`)])
    wide.agent.put(id, status('working'))
  await trip.pass(2 * hour, 24)
  const before = wide.asked.length
  listed.push(ended(wide, 'new'))
  await trip.pass(6 * minute, 6)
  expect(heard(wide)).toEqual(new Set(['new']))
  await trip.pass(54 * minute, 18)
  const firsts = wide.asked.slice(before).filter(token => token === undefined).length
  expect(firsts).toBeGreaterThanOrEqual(9)
  expect(wide.asked.length - before).toBeLessThan(500)
})

test('pages that are empty hide no task behind them', async () => {
  const listed: object[] = []
  const wide = await wideOf((token = '0') => ({
    tasks: token === '57' ? listed : [],
    nextPageToken: token === '57' ? '' : String(Number(token) + 1),
  }))
  listed.push(ended(wide, 'behind'))
  await trip.pass(hour, 30)
  expect(heard(wide)).toEqual(new Set(['behind']))
})

test('a token that is too long to be kept does not end the sweeps', async () => {
  const listed: object[] = []
  const wide = await wideOf((token = '0') => ({
    tasks: token === '0' ? listed : [{ id: `page-${token.length}`, ...soon('working') }],
    nextPageToken: `${token}${'x'.repeat(25_000)}`,
  }))
  await trip.pass(20 * minute, 4)
  listed.push(ended(wide, 'new'))
  await trip.pass(10 * minute, 20)
  expect(heard(wide)).toContain('new')
})

test('a list whose pages take long is gone through by sweeps that end in time', async () => {
  const pages: object[] = []
  let began = 0
  let previous = 0
  // The function is ended after 30 s: then nothing is recorded.
  refuses = () => trip.local.now() - began > 30_000
  const wide = await wideOf((token = '0') => {
    if (token === '0') began = trip.local.now()
    previous = trip.local.now()
    trip.local.advance(1600)
    return {
      tasks: pages.slice(Number(token), Number(token) + 1),
      nextPageToken: Number(token) + 1 < pages.length ? String(Number(token) + 1) : '',
    }
  })
  const names = Array.from({ length: 30 }, (_, page) => `slow-${page}`)
  for (const name of names) pages.push(ended(wide, name))
  await trip.pass(30 * minute, 15)
  expect(heard(wide)).toEqual(new Set(names))
  expect(previous - began).toBeLessThan(15_000)
})

test('a task that is listed but never to be had is told as such once, and by its state when it is', async () => {
  let shows = false
  let calls = 0
  const wide = await wideOf(() => ({ tasks: [{ id: 'listed', ...status('working') }] }))
  const lists = { tasks: [{ id: 'listed', ...status('working') }] }
  wide.agent.instead(((asked: Asked) => {
    if (asked.method === 'ListTasks') return say(asked, lists)
    calls += 1
    return shows ? undefined : gone(asked)
  }) as Parameters<Scripted['instead']>[0])
  await trip.pass(8 * hour, 32)
  const before = calls
  await trip.pass(22 * hour, 44)
  expect(typesTold(wide.client)).toEqual(['task.lost_access'])
  expect(calls - before).toBeLessThan(8)
  wide.agent.put('listed', status('completed'))
  shows = true
  await trip.pass(7 * hour, 14)
  expect(typesTold(wide.client)).toEqual(['task.lost_access', 'task.completed'])
})

test('credentials that only sweeps meet as refused are told once, and others that are refused anew', async () => {
  const ops = trip.clients.make()
  ops.secret = (await trip.call<{ secret: string }>('PUT', '/v1/targets/ops', { url: ops.url })).secret
  await trip.call('PUT', '/v1/operations', { targets: ['ops'] })
  const own = (token: string) => ({ type: 'bearer', token })
  const wide = await wideOf(() => ({ status: 401 }), { credentials: own('one') })
  const agents = await wideOf(() => ({ status: 401 }))
  await trip.call('PUT', `/v1/agents/${agents.id}`, {
    ...{ url: `${agents.agent.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true },
    credentials: own('agents'),
  })
  const about = () => ops.told().map(({ type, data }) => [type, data.about])
  const expired = (of: Record<string, string>) => ['subscription.credentials_expired', of]
  await trip.pass(5 * hour, 30)
  expect(typesTold(wide.client)).toEqual(['subscription.credentials_expired'])
  expect(wide.client.told()[0]?.data).toMatchObject({ about: { subscription: wide.made.id } })
  expect(typesTold(agents.client)).toEqual([])
  expect(about()).toHaveLength(2)
  expect(about()).toEqual(
    expect.arrayContaining([expired({ subscription: wide.made.id }), expired({ agent: agents.id })]),
  )
  await trip.call('PUT', `/v1/subscriptions/${wide.made.id}/credentials`, { credentials: own('two') })
  await trip.pass(hour, 12)
  expect(typesTold(wide.client)).toHaveLength(2)
  await trip.call('DELETE', '/v1/operations')
})

test('a task that is listed but not to be had is told as lost once, though it is pushed to somebody else, too', async () => {
  const lists = { tasks: [{ id: 'listed', ...status('working') }] }
  const wide = await wideOf(() => lists)
  wide.agent.instead(((asked: Asked) =>
    asked.method === 'ListTasks' ? say(asked, lists) : gone(asked)) as Parameters<Scripted['instead']>[0])
  await trip.pass(8 * hour, 24)
  expect(typesTold(wide.client)).toEqual(['task.lost_access'])
  const unbound = await trip.subscribe(wide.id)
  subscribed.push(unbound)
  await push(unbound.hook, statusPush('listed', 'working'))
  await trip.pass(2 * hour, 20)
  expect(typesTold(wide.client)).toEqual(['task.lost_access'])
})

test('a task that is not to be had and that an agent hangs at does not hide the next page', async () => {
  let hangs = false
  const listed: object[] = []
  const wide = await wideOf(() => ({ tasks: [] }))
  const first = { tasks: [{ id: 'ghost', ...status('working') }], nextPageToken: '1' }
  wide.agent.instead(((asked: Asked) => {
    if (asked.method === 'ListTasks')
      return say(asked, asked.params.pageToken === undefined ? first : { tasks: listed, nextPageToken: '' })
    if (asked.params.id !== 'ghost') return undefined
    if (!hangs) return gone(asked)
    trip.local.advance(11_000)
    return { status: 503 }
  }) as Parameters<Scripted['instead']>[0])
  await trip.pass(7 * hour, 28)
  hangs = true
  await trip.pass(7 * hour, 21)
  listed.push(ended(wide, 'new'))
  await trip.pass(2 * hour, 24)
  expect(heard(wide)).toContain('new')
})

test('a list whose tokens die once another is begun is gone through', async () => {
  const pages: object[] = []
  let lists = 0
  const wide = await wideOf(token => {
    if (token === undefined) lists++
    const [list = 0, page = 0] = (token ?? `${lists}.0`).split('.').map(Number)
    if (list !== lists) return { status: 400, body: '{}' }
    const next = page + 1 < pages.length ? `${list}.${page + 1}` : ''
    return { tasks: pages.slice(page, page + 1), nextPageToken: next }
  })
  const names = Array.from({ length: 50 }, (_, page) => `p-${page}`)
  for (const name of names) pages.push(ended(wide, name))
  await trip.pass(3 * hour, 60)
  expect(heard(wide)).toEqual(new Set(names))
})

test('an agent that is put again as it was has nothing told again', async () => {
  const lists = { tasks: [{ id: 'listed', ...status('working') }] }
  const wide = await wideOf(() => lists)
  wide.agent.instead(((asked: Asked) =>
    asked.method === 'ListTasks' ? say(asked, lists) : gone(asked)) as Parameters<Scripted['instead']>[0])
  await trip.pass(8 * hour, 24)
  await trip.call('PUT', `/v1/agents/${wide.id}`, {
    ...{ url: `${wide.agent.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true },
  })
  await trip.pass(8 * hour, 24)
  expect(typesTold(wide.client)).toEqual(['task.lost_access'])
})
