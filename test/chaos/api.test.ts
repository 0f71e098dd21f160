// A request that dies at any of its writes, before or after the effect, is made whole by the same request again.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Caller, callAgent } from '../../infra/local/agent/caller.ts'
import type { Call, Fault } from '../../infra/local/wire.ts'
import {
  type Answer,
  type Api,
  configsAt,
  expectDiscreet,
  expectProblem,
  type Fields,
  type Made,
  startApi,
} from '../support/api.ts'

let api: Api
let caller: Caller
let plan: (call: Call) => Fault | undefined = () => undefined

const isWrite = ({ who, operation }: Call): boolean =>
  who === 'api' && ['PutItem', 'UpdateItem', 'DeleteItem', 'SendMessage'].includes(operation)

beforeAll(async () => {
  api = await startApi({ faults: call => plan(call) })
  caller = await callAgent(api.agent.cardUrl())
  await api.must('PUT', '/v1/agents/demo', { cardUrl: api.agent.cardUrl() })
})

afterAll(() => api.stop())

type Way = { fault: Fault; often: 'once' | 'for good' }

/**
 * Makes a request go wrong at its first write, at its second, and so on, until it has no more.
 * @param ready prepares a case and gives the request
 * @param whole checks what came of the request and its repeat
 * @returns all the cases, of which the last is one in which nothing went wrong
 */
async function everyWrite<T, Body>(
  { fault, often }: Way,
  ready: (at: number) => Promise<T>,
  request: (one: T) => Promise<Answer<Body>>,
  whole: (one: T, last: Answer<Body>) => Promise<void>,
): Promise<T[]> {
  const cases: T[] = []
  for (let at = 1; ; at++) {
    const one = await ready(at)
    cases.push(one)
    let writes = 0
    plan = call => {
      if (!isWrite(call)) return undefined
      writes += 1
      return often === 'once' ? (writes === at ? fault : undefined) : writes >= at ? fault : undefined
    }
    const first = await request(one)
    plan = () => undefined
    if (often === 'for good' && writes >= at) expect(first.status).toBe(503)
    else expect(first.status).toBeLessThan(300)
    await whole(one, often === 'once' ? first : await request(one))
    if (writes < at) return cases
  }
}

/** The subscriptions of a client, as they are listed. */
const listed = async (client: string): Promise<Fields[]> =>
  (await api.must<{ subscriptions: Fields[] }>('GET', `/v1/subscriptions?client=${client}`)).subscriptions

const subscribed = (id: string, body: unknown) => api.ask<Made>('PUT', `/v1/subscriptions/${id}`, { body })

/** Everything in the table whose key or name says so. */
const named = async (start: string, word: string): Promise<Fields[]> =>
  (await api.items()).filter(({ pk, sk, id }) => String(pk).startsWith(start) && [sk, id].includes(word))

/** All of these tasks were looked at, once each look had its turn at the agent, which takes ten at a time. */
async function seen(cases: { taskId: string }[]): Promise<void> {
  for (let turns = 0; ; turns++) {
    await api.local.drain()
    const tasks = await Promise.all(cases.map(({ taskId }) => api.must('GET', `/v1/tasks/demo/${taskId}`)))
    const expected = cases.map(() => expect.objectContaining({ state: 'working', rev: 1 }))
    if (turns === 6) expect(tasks).toEqual(expected)
    if (tasks.every(({ rev }) => rev === 1)) return expect(tasks).toEqual(expected)
    api.local.advance(10_000)
  }
}

const deaths: [says: string, way: Way][] = [
  ['dies before', { fault: 'throttle', often: 'for good' }],
  ['dies after', { fault: 'fail_after', often: 'for good' }],
]
/** The SDK's own retry must find that its first attempt went through. */
const unheard: [says: string, way: Way] = ['gets no answer after', { fault: 'fail_after', often: 'once' }]

const wordOf = (says: string): string => says.replaceAll(' ', '-')

const hook = 'http://127.0.0.1:9/woken'
const patience = { timeout: 120_000 }

test.each([...deaths, unheard])(
  'a new subscription whose request %s any of its writes is made whole by a repeat',
  patience,
  async (says, way) => {
    const cases = await everyWrite(
      way,
      async at => {
        const [id, taskId] = [`new-${wordOf(says)}-${at}`, await caller.send('work')]
        return { id, taskId, body: { agent: 'demo', client: id, taskId, targets: [{ url: hook }] } }
      },
      ({ id, body }) => subscribed(id, body),
      async ({ id, taskId, body }, made) => {
        expect(made.body).toMatchObject({ id, status: 'active', registration: { status: 'registered' } })
        expect((await subscribed(id, body)).body).toEqual(made.body)
        const { url } = made.body.pushNotificationConfig
        expect(await configsAt(api, taskId)).toEqual([{ url, id }])
        expect((await listed(id)).map(one => one.id)).toEqual([id])
        expect(await named('S#', id)).toHaveLength(1)
        const target = await api.must('GET', `/v1/targets/${made.body.targets[0]?.target}`)
        expect(target).toMatchObject({ generation: 1, status: 'active' })
      },
    )
    expect(cases.length).toBeGreaterThan(9)
    await seen(cases)
  },
)

test.each(deaths)(
  'a binding whose request %s any of its writes is made whole by a repeat',
  patience,
  async (says, way) => {
    const cases = await everyWrite(
      way,
      async at => {
        const [id, taskId] = [`bind-${wordOf(says)}-${at}`, await caller.send('work')]
        const { body } = await subscribed(id, { agent: 'demo', client: 'me' })
        return { id, taskId, url: body.pushNotificationConfig.url }
      },
      ({ id, taskId }) => api.ask<Made>('POST', `/v1/subscriptions/${id}/bind`, { body: { taskId } }),
      async ({ id, taskId, url }, made) => {
        expect(made.body).toMatchObject({ id, taskId, registration: { status: 'registered' } })
        expect(await configsAt(api, taskId)).toEqual([{ url, id }])
      },
    )
    expect(cases.length).toBeGreaterThan(4)
    await seen(cases)
  },
)

const left: { way: string; path: (id: string) => Promise<[method: string, path: string, Fields]> }[] = [
  {
    way: 'new',
    path: async id => {
      const body = { agent: 'demo', client: id, taskId: await caller.send('work') }
      return ['PUT', `/v1/subscriptions/${id}`, body]
    },
  },
  {
    way: 'bound',
    path: async id => {
      await subscribed(id, { agent: 'demo', client: id })
      return ['POST', `/v1/subscriptions/${id}/bind`, { taskId: await caller.send('work') }]
    },
  },
]

test.each(left)(
  'a subscription that is $way whose request dies after any of its writes is whole or not there, without a repeat',
  patience,
  async ({ way, path }) => {
    const made: string[] = []
    for (let at = 1, writes = at; writes >= at; at++) {
      const id = `left-${way}-${at}`
      const [method, to, body] = await path(id)
      writes = 0
      plan = call => (isWrite(call) && ++writes >= at ? 'fail_after' : undefined)
      await api.ask(method, to, { body })
      plan = () => undefined
      made.push(id)
    }
    expect(made.length).toBeGreaterThan(4)
    api.local.advance(61_000)
    await api.local.drain()
    const found = await Promise.all(made.map(id => api.ask<Fields>('GET', `/v1/subscriptions/${id}`)))
    const bound = found.filter(({ status, body }) => status === 200 && body.taskId !== undefined)
    expect(bound.length).toBeGreaterThan(2)
    for (const { body } of bound) {
      expect(body).toMatchObject({ status: 'active', registration: { status: 'registered' } })
      expect(await configsAt(api, String(body.taskId))).toHaveLength(1)
      const [kept] = await named('S#', String(body.id))
      expect(kept).not.toHaveProperty('due')
    }
    await seen(bound.map(({ body }) => ({ taskId: String(body.taskId) })))
  },
)

test.each(deaths)(
  'a deletion whose request %s any of its writes is made whole by a repeat',
  patience,
  async (says, way) => {
    const cases = await everyWrite(
      way,
      async at => {
        const [id, taskId] = [`end-${wordOf(says)}-${at}`, await caller.send('work')]
        const { body } = await subscribed(id, { agent: 'demo', client: id, taskId, targets: [{ url: hook }] })
        return { id, taskId, target: body.targets[0]?.target ?? '' }
      },
      async ({ id }) => {
        const answer = await api.ask<Made>('DELETE', `/v1/subscriptions/${id}`)
        expect((await listed(id)).filter(({ status }) => status === 'deleted')).toEqual([])
        // Once its own pointer is gone all is done: there is nothing left to find.
        return answer.status === 404 ? { ...answer, status: 200 } : answer
      },
      async ({ id, taskId, target }) => {
        expectProblem(api, await api.ask('GET', `/v1/subscriptions/${id}`), 'not_found')
        expect(await configsAt(api, taskId)).toEqual([])
        expect(await listed(id)).toEqual([])
        const left = [await named('D#', id), await named('D#', target), await named('G#', target)]
        expect(left.flat()).toEqual([])
      },
    )
    expect(cases.length).toBeGreaterThan(7)
  },
)

describe.each(['new', 'known'])('an agent that is %s', known => {
  test.each([...deaths, unheard])(
    'whose request %s any of its writes is made whole by a repeat',
    async (says, way) => {
      const cases = await everyWrite(
        way,
        async at => {
          const id = `${known}-${wordOf(says)}-${at}`
          const older = { cardUrl: api.agent.cardUrl({ version: '0.3' }) }
          if (known === 'known') await api.must('PUT', `/v1/agents/${id}`, older)
          return id
        },
        id => {
          const credentials = { type: 'bearer', token: `token-${id}` }
          return api.ask('PUT', `/v1/agents/${id}`, { body: { cardUrl: api.agent.cardUrl(), credentials } })
        },
        async (id, made) => {
          expect(made.body).toMatchObject({ agent: id, version: '1.0', hasCredentials: true })
          expect(await named('D#demo#agents', id)).toHaveLength(1)
        },
      )
      expect(cases.length).toBeGreaterThan(2)
    },
  )
})

test.each(deaths)(
  'a target whose request %s any of its writes is made whole by a repeat',
  async (says, way) => {
    const cases = await everyWrite(
      way,
      async at => `target-${wordOf(says)}-${at}`,
      id => api.ask('PUT', `/v1/targets/${id}`, { body: { url: hook } }),
      async (id, made) => {
        expect(made.body).toMatchObject({ target: id, generation: 1, status: 'active' })
        expect(await api.must('PUT', `/v1/targets/${id}`, { url: hook })).toEqual(made.body)
      },
    )
    expect(cases.length).toBeGreaterThan(2)
  },
)

test('no log line of all this holds a secret', () => {
  expectDiscreet(api)
})
