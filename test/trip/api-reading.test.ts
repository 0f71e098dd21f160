// The reading side: a task as last seen, a client's inbox, and wakes with their attempts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Caller, callAgent } from '../../infra/local/agent/caller.ts'
import { type Api, expectDiscreet, expectProblem, type Fields, startApi } from '../support/api.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'

let api: Api
let caller: Caller
let phone: Receiver

beforeAll(async () => {
  ;[api, phone] = await Promise.all([startApi(), startReceiver()])
  caller = await callAgent(api.agent.cardUrl())
  await api.must('PUT', '/v1/agents/demo', { cardUrl: api.agent.cardUrl() })
})

afterAll(() => Promise.all([api.stop(), phone.stop()]))

const get = (path: string) => api.ask('GET', path)
const subscribe = (more: Fields) => api.must('POST', '/v1/subscriptions', { agent: 'demo', ...more })

/** Asks page by page until there is none left. */
async function pages(path: string, field: string): Promise<Fields[][]> {
  const found: Fields[][] = []
  let after = ''
  for (;;) {
    const page = await api.must<Record<string, Fields[]> & { next?: string }>('GET', `${path}${after}`)
    found.push(page[field] ?? [])
    if (page.next === undefined) return found
    after = `&after=${page.next}`
  }
}

describe('a task', () => {
  test('is shown as its agent last showed it', async () => {
    const taskId = await caller.send('ask me')
    await subscribe({ client: 'reader', taskId })
    await api.local.drain()
    expect((await get(`/v1/tasks/demo/${taskId}`)).body).toEqual({
      ...{ agent: 'demo', taskId, principal: 'agent', contextId: expect.any(String) },
      ...{ state: 'input-required', terminal: false, rev: 1, taskRev: 1, stale: false, tooLarge: false },
      referenceTaskIds: [],
      ...{ incomplete: false, withheld: false, artifacts: { listed: [], count: 0, bytes: 0 } },
      timeline: { steps: [expect.objectContaining({ source: 'look', to: 'input-required', rev: 1 })] },
      ...{ changedAt: expect.any(Number), lookedAt: expect.any(Number), ageSeconds: expect.any(Number) },
      task: expect.objectContaining({ id: taskId, status: expect.anything() }),
    })
  })

  test('is stale before the first look', async () => {
    await subscribe({ client: 'reader', taskId: 'never-was' })
    const seen = (await get('/v1/tasks/demo/never-was')).body
    expect(seen).toMatchObject({ state: null, rev: 0, stale: true, task: null, taskRev: null })
    await api.local.drain()
  })

  test('is stale while looks fail, says why, and still shows what was seen', async () => {
    const taskId = await caller.send('work')
    const { id } = await subscribe({ client: 'reader', taskId })
    await api.local.drain()
    const path = `/v1/tasks/demo/${taskId}`
    const fresh = await get(path)
    expect(fresh.body).toMatchObject({ state: 'working', stale: false })
    api.agent.lie('not_found')
    api.local.advance(2000)
    const credentials = { type: 'bearer', token: 'whoever-this-is' }
    await api.must('PUT', `/v1/subscriptions/${id}/credentials`, { credentials })
    await api.local.drain()
    api.agent.lie(undefined)
    const trouble = { code: 'not_found', since: expect.any(Number) }
    const { ageSeconds: _, ...seen } = fresh.body
    expect((await get(path)).body).toMatchObject({ ...seen, stale: true, trouble })
  })

  test('that is too large to be answered is said to be so', async () => {
    const taskId = await caller.send('work')
    await api.agent.addArtifact(taskId, 'x'.repeat(3_000_000), { push: false })
    await api.agent.setState(taskId, 'completed', { push: false })
    await subscribe({ client: 'reader', taskId })
    await api.local.drain()
    const seen = await get(`/v1/tasks/demo/${taskId}`)
    expect(seen.body).toMatchObject({ state: 'completed', rev: 1, task: null, tooLarge: true })
  })

  test.each(['a/b', 'ü \u{1f600}', '%2e%2e', 'a?b#c', "'; --", 'x'.repeat(256)])(
    'may be called %j',
    async taskId => {
      await subscribe({ client: 'reader', taskId })
      expect((await get(`/v1/tasks/demo/${encodeURIComponent(taskId)}`)).body.taskId).toBe(taskId)
      await api.local.drain()
    },
  )

  test('of several principals is shown for the one that is named', async () => {
    const taskId = await caller.send('work')
    for (const principal of ['alice', 'bob']) await subscribe({ client: 'reader', taskId, principal })
    const path = `/v1/tasks/demo/${taskId}`
    expectProblem(api, await get(path), 'ambiguous', ['?principal'])
    expect((await get(`${path}?principal=bob`)).body).toMatchObject({ taskId, principal: 'bob' })
    expectProblem(api, await get(`${path}?principal=carol`), 'not_found')
    expectProblem(api, await get(`/v1/wakes?task=${taskId}`), 'ambiguous', ['?principal'])
    expect((await get(`/v1/wakes?task=${taskId}&principal=bob`)).body).toEqual({ wakes: [] })
  })

  test('that nobody asked for is not there', async () => {
    const taskId = await caller.send('work')
    expectProblem(api, await get(`/v1/tasks/demo/${taskId}`), 'not_found')
    expectProblem(api, await get(`/v1/tasks/nobody/${taskId}`), 'not_found')
    expectProblem(api, await get(`/v1/wakes?task=${taskId}`), 'not_found')
  })
})

describe('an inbox', () => {
  const tasks: string[] = []

  beforeAll(async () => {
    for (let at = 0; at < 5; at++) {
      const taskId = await caller.send('quick')
      tasks.push(taskId)
      await subscribe({ client: 'away', taskId })
      await api.local.drain()
    }
  })

  test('gives every entry once and in order, whatever the size of the page', async () => {
    for (const limit of [1, 2, 100]) {
      const seen: Fields[] = []
      let after = '0'
      for (;;) {
        const path = `/v1/inbox?client=away&limit=${limit}&after=${after}`
        const feed = await api.must<{ entries: Fields[]; next: string }>('GET', path)
        expect(feed.entries.length).toBeLessThanOrEqual(limit)
        if (feed.entries.length === 0) break
        seen.push(...feed.entries)
        after = feed.next
      }
      expect(seen.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5])
      expect(seen.map(({ taskId }) => taskId)).toEqual(tasks)
    }
  })

  test('tells what happened, and no more', async () => {
    const feed = await api.must<{ entries: Fields[] }>('GET', '/v1/inbox?client=away&limit=1')
    expect(feed).toEqual({
      client: 'away',
      entries: [
        {
          ...{ seq: 1, id: expect.any(String), type: 'task.completed', agent: 'demo', taskId: tasks[0] },
          ...{ contextId: expect.any(String), state: 'completed', rev: 1, at: expect.any(Number) },
          subscription: expect.stringMatching(/^sub_/),
        },
      ],
      next: '1',
    })
  })

  test('of nobody is empty, and so is the same name at another tenant', async () => {
    expect((await get('/v1/inbox?client=nobody')).body).toEqual({ client: 'nobody', entries: [], next: '0' })
    const theirs = await api.ask('GET', '/v1/inbox?client=away', { key: api.local.keys.other ?? '' })
    expect(theirs.body.entries).toEqual([])
  })
})

describe('wakes', () => {
  const tasks: string[] = []

  beforeAll(async () => {
    for (const status of [204, 410, 410, 410]) {
      phone.answer({ status, body: `said ${status}` })
      const taskId = await caller.send('quick')
      tasks.push(taskId)
      await subscribe({ client: 'woken', taskId, targets: [{ url: `${phone.origin}/${status}` }] })
      await api.local.drain()
    }
  })

  test('of a task are listed, each with its attempts, and found by their ids', async () => {
    const { wakes } = await api.must<{ wakes: Fields[] }>('GET', `/v1/wakes?task=${tasks[0]}&agent=demo`)
    expect(wakes).toEqual([
      {
        ...{ id: expect.stringMatching(/^wk_[\w-]{48}$/), type: 'task.completed', status: 'delivered' },
        ...{ target: expect.stringMatching(/^inline_/), agent: 'demo', taskId: tasks[0], state: 'completed' },
        ...{ contextId: expect.any(String), rev: 1, seq: 1, at: expect.any(Number), tries: 1 },
        attempts: [expect.objectContaining({ verdict: 'delivered', status: 204 })],
      },
    ])
    expect((await get(`/v1/wakes/${wakes[0]?.id}`)).body).toEqual(wakes[0])
    const theirs = { key: api.local.keys.other ?? '' }
    expectProblem(api, await api.ask('GET', `/v1/wakes/${wakes[0]?.id}`, theirs), 'not_found')
  })

  test('that failed are listed page by page, each exactly once', async () => {
    const found = await pages('/v1/wakes?state=failed&limit=1', 'wakes')
    expect(found.every(page => page.length <= 1)).toBe(true)
    expect(
      found
        .flat()
        .map(({ taskId }) => taskId)
        .sort(),
    ).toEqual(tasks.slice(1).sort())
    expect(found.flat()[0]).toMatchObject({
      status: 'failed',
      attempts: [{ verdict: 'disable', status: 410 }],
    })
    const theirs = { key: api.local.keys.other ?? '' }
    expect((await api.ask('GET', '/v1/wakes?state=failed', theirs)).body).toEqual({ wakes: [] })
  })

  test('cannot be asked for in a way that would be ignored', async () => {
    expectProblem(api, await get('/v1/wakes'), 'invalid', ['?task'])
    expectProblem(api, await get('/v1/wakes?state=pending'), 'invalid', ['?state'])
    expectProblem(api, await get(`/v1/wakes?state=failed&task=${tasks[1]}`), 'invalid', ['?task'])
    expectProblem(api, await get(`/v1/wakes/wk_${'A'.repeat(48)}`), 'not_found')
    expectProblem(api, await get('/v1/wakes/anything'), 'not_found')
  })

  test('have cursors that open no other list', async () => {
    const { next } = await api.must<{ next: string }>('GET', '/v1/wakes?state=failed&limit=1')
    for (const path of [`/v1/wakes?task=${tasks[1]}`, '/v1/agents?', '/v1/subscriptions?client=woken'])
      expectProblem(api, await get(`${path}&after=${next}`), 'invalid', ['?after'])
    const other = { key: api.local.keys.other ?? '' }
    const theirs = await api.ask('GET', `/v1/wakes?state=failed&after=${next}`, other)
    expectProblem(api, theirs, 'invalid', ['?after'])
  })
})

test('lists of agents, targets and keys give each exactly once', async () => {
  for (let at = 0; at < 6; at++) {
    await api.must('PUT', `/v1/agents/a-${at}`, { cardUrl: api.agent.cardUrl() })
    await api.must('PUT', `/v1/targets/t-${at}`, { url: `${phone.origin}/${at}` })
    await api.must('POST', '/v1/keys', { scopes: ['read'], label: `k-${at}` })
  }
  for (const [kind, name, expected] of [
    ['agents', 'agent', 7],
    ['targets', 'target', 10],
    ['keys', 'id', 7],
  ] as const) {
    const found = (await pages(`/v1/${kind}?limit=2`, kind)).flat().map(one => one[name])
    expect({ kind, seen: found.length, once: new Set(found).size }).toEqual({
      kind,
      seen: expected,
      once: expected,
    })
  }
})

test('a task that is asked for without its agent is looked for at 20 agents, and no more than that', async () => {
  const ask = { key: api.local.keys.other ?? '' }
  const hand = { url: api.agent.cardUrl(), binding: 'JSONRPC', version: '1.0' }
  const register = (at: number) => api.ask('PUT', `/v1/agents/b-${at}`, { ...ask, body: hand })
  const made = await Promise.all(Array.from({ length: 20 }, (_, at) => register(at)))
  expect(new Set(made.map(({ status }) => status))).toEqual(new Set([201]))
  expectProblem(api, await api.ask('GET', '/v1/wakes?task=t', ask), 'not_found')
  await register(20)
  expectProblem(api, await api.ask('GET', '/v1/wakes?task=t', ask), 'invalid', ['?agent'])
})

test('no log line of all this holds a secret', () => {
  expectDiscreet(api)
})
