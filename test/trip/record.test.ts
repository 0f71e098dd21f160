// What is kept of a task beside its state: the trace and the parent it belongs to, what happened when, and work that was never finished.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LocalOptions } from '../../infra/local/run.ts'
import { sha256Hex } from '../../shared/hash.ts'
import { watchOf } from '../../shared/store/keys.ts'
import { traceIdOf } from '../../shared/trace.ts'
import { type Scripted, startScripted, status } from '../support/scripted.ts'
import { push, type Subscribed, startTrip, statusPush, type Trip } from '../support/trip.ts'

let trip: Trip
let agent: Scripted
let tasksMade = 0
let pushesMade = 0
/** What goes wrong at a call of AWS. */
let plan: NonNullable<LocalOptions['faults']> = () => undefined

beforeAll(async () => {
  const faults: typeof plan = call => plan(call)
  ;[trip, agent] = await Promise.all([startTrip({ faults }), startScripted()])
  const hand = { url: `${agent.origin}/a2a`, binding: 'JSONRPC', version: '1.0', offline: true }
  await trip.call('PUT', '/v1/agents/scripted', hand)
})

afterAll(() => Promise.all([trip.stop(), agent.stop()]))

type Begun = Subscribed & { taskId: string }

/** A task in some state, subscribed to and looked at. */
async function begin(task: Record<string, unknown>, asked: Record<string, unknown> = {}): Promise<Begun> {
  const taskId = `task-${++tasksMade}`
  agent.put(taskId, task)
  const subscribed = await trip.subscribe('scripted', { taskId, ...asked })
  await trip.pass(2000)
  return { ...subscribed, taskId }
}

/** The agent goes on with a task, and pushes if `hook` is given. */
async function goOn({ taskId }: Begun, task: Record<string, unknown>, hook?: Begun['hook']): Promise<void> {
  agent.put(taskId, task)
  // Equal bodies within ten seconds are one push.
  if (hook !== undefined) await push(hook, { ...statusPush(taskId, 'working'), number: ++pushesMade })
  await trip.pass(4000, 2)
}

describe('a trace', () => {
  const given = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`
  const header = (call: { headers: Record<string, unknown> }): string => String(call.headers.traceparent)

  test('that the subscription brings is that of every call, wake and line, each call with a span of its own', async () => {
    const more = { traceparent: given, parentTask: { agent: 'elsewhere', taskId: 'plan' } }
    const one = await begin(status('working'), more)
    const error = { code: -32002, message: 'not cancelable' }
    agent.instead(({ id, method }) =>
      method === 'CancelTask' ? { body: JSON.stringify({ jsonrpc: '2.0', id, error }) } : undefined,
    )
    await trip.call('POST', `/v1/tasks/scripted/${one.taskId}/cancel`, {})
    await trip.pass(2000)
    let refusals = 2
    plan = ({ who, operation }) =>
      who === 'look' && operation === 'PutItem' && refusals-- > 0 ? 'throttle' : undefined
    await goOn(one, status('completed'), one.hook)
    await trip.pass(240_000, 8)
    agent.instead(undefined)
    expect(one.client.told().map(({ type }) => type)).toEqual(['task.cancel_refused', 'task.completed'])
    const headers = [
      ...agent.calls(one.taskId).map(header),
      ...one.client.told().map(told => told.traceparent),
    ]
    expect(headers.length).toBeGreaterThanOrEqual(4)
    expect(headers.filter(text => !/^00-(ab){16}-[\da-f]{16}-01$/.test(text))).toEqual([])
    expect(new Set([given, ...headers]).size).toBe(headers.length + 1)
    const lines = trip.steps.filter(({ task }) => task === one.taskId)
    const named = new Set(lines.map(({ step }) => step))
    expect([...named]).toEqual(
      expect.arrayContaining([
        ...['subscription.made', 'notice.stored', 'notice.settled', 'task.cancel_asked', 'message.failed'],
        ...['task.looked', 'wake.queued', 'wake.sent', 'wake.recorded'],
      ]),
    )
    const whole = { agent: 'scripted', trace: 'ab'.repeat(16), parent: 'elsewhere/plan' }
    expect(lines.map(({ step, agent, trace, parent }) => ({ step, agent, trace, parent }))).toEqual(
      lines.map(({ step }) => ({ step, ...whole })),
    )
  })

  test('is made where none is brought, and the same request again leaves it as it is', async () => {
    const body = { agent: 'scripted', taskId: 'traced', client: 'nobody' }
    const put = (more = {}): Promise<{ traceparent: string }> =>
      trip.call('PUT', '/v1/subscriptions/traced', { ...body, ...more })
    const { traceparent } = await put()
    expect(traceparent).toMatch(/^00-[\da-f]{32}-[\da-f]{16}-00$/)
    expect(await put({ traceparent: given })).toMatchObject({ traceparent })
    await trip.settle()
    expect(agent.calls('traced').map(call => traceIdOf(header(call)))).toContain(traceIdOf(traceparent))
  })

  test.each([
    ['taken from the header', given, given],
    ['begun anew when the header is no good', given.toUpperCase(), undefined],
  ])('is %s', async (_, traceparent, expected) => {
    const response = await fetch(`${trip.local.apiOrigin}/v1/subscriptions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${trip.local.keys.demo}`,
        'content-type': 'application/json',
        traceparent,
      },
      body: JSON.stringify({ agent: 'scripted', client: 'nobody' }),
    })
    const made: { traceparent?: string } = JSON.parse(await response.text())
    if (expected === undefined) expect(made.traceparent).toMatch(/-00$/)
    else expect(made.traceparent).toBe(expected)
  })

  test('that is no traceparent is refused where the request names it', async () => {
    const asked = {
      agent: 'scripted',
      client: 'nobody',
      traceparent: `00-${'0'.repeat(32)}-${'1'.repeat(16)}-00`,
    }
    expect((await trip.refused('POST', '/v1/subscriptions', asked)).detail).toContain('/traceparent')
  })
})

/** What the API shows of a task, as far as these tests look. */
type Seen = {
  state: string
  incomplete: boolean
  withheld: boolean
  tooLarge: boolean
  task: { artifacts?: unknown; history?: unknown; status: unknown } | null
  artifacts: { count: number; bytes: number; listed: Fields[] }
  timeline: { steps: Fields[]; earlier?: Fields }
}

type Fields = Record<string, unknown>

const seen = ({ taskId }: Begun, query = ''): Promise<Seen> =>
  trip.call('GET', `/v1/tasks/scripted/${taskId}${query}`)

const artifact = (text: string): Fields => ({ artifactId: `a-${text.length}`, parts: [{ text }] })

const factsOf = (text: string): Fields => {
  const written = `{"artifactId":"a-${text.length}","parts":[{"text":"${text}"}]}`
  return { id: `a-${text.length}`, bytes: written.length, sha256: sha256Hex(written) }
}

describe('a timeline', () => {
  test('tells each transition, why it was seen, what changed, and how far the clocks are apart', async () => {
    const begun = trip.local.now()
    const dated = (ahead: number): Fields => ({ timestamp: new Date(begun + ahead).toISOString() })
    const one = await begin(status('submitted', dated(0)))
    await goOn(one, status('working', dated(60_000)), one.hook)
    await goOn(one, { ...status('working'), artifacts: [artifact('half')] }, one.hook)
    await goOn(one, { ...status('completed'), artifacts: [artifact('half'), artifact('the rest')] }, one.hook)
    const { timeline, artifacts } = await seen(one)
    const [first, second, third, fourth, ...more] = timeline.steps
    expect(more).toEqual([])
    expect(first).toMatchObject({ source: 'look', to: 'submitted', rev: 1, at: expect.any(Number) })
    expect(first).not.toHaveProperty('from')
    expect(Number(first?.delayMs)).toBeGreaterThanOrEqual(0)
    expect(second).toMatchObject({ source: 'push', from: 'submitted', to: 'working', rev: 2 })
    // Its clock is ahead of ours by nearly a minute.
    expect(Number(second?.delayMs)).toBeLessThan(-40_000)
    const half = factsOf('half')
    const rest = factsOf('the rest')
    const both = Number(half.bytes) + Number(rest.bytes)
    expect(third).toMatchObject({
      from: 'working',
      to: 'working',
      artifacts: { count: 1, bytes: half.bytes },
    })
    expect(fourth).toMatchObject({ to: 'completed', rev: 4 })
    expect(fourth?.artifacts).toEqual({ count: 2, bytes: both, changed: [half, rest] })
    expect(artifacts).toEqual({ count: 2, bytes: both, listed: [half, rest] })
  })

  test('costs no write more for looks that wake nobody, and is all there before anybody was told', async () => {
    const one = await begin(status('submitted'))
    const before = trip.calls.length
    agent.put(one.taskId, status('working'))
    await push(one.hook, statusPush(one.taskId, 'working'))
    await trip.pass(4000, 2)
    const watch = watchOf('demo', 'scripted', 'agent', one.taskId)
    const ofWatch = trip.calls
      .slice(before)
      .filter(({ body }) => JSON.stringify(body.Key ?? body.Item ?? '').includes(watch))
    const writes = ofWatch.filter(({ operation }) => operation !== 'GetItem')
    // The lease, and the save.
    expect(writes.map(({ operation }) => operation)).toEqual(['UpdateItem', 'UpdateItem'])
    expect((await seen(one)).timeline.steps.map(({ to }) => to)).toEqual(['submitted', 'working'])
  })

  test('goes on over several snapshots, and over those whose body is too large to keep', async () => {
    const one = await begin(status('input-required'))
    await goOn(one, status('working'), one.hook)
    const noise = Array.from({ length: 9000 }, (_, at) => sha256Hex(String(at))).join('')
    await goOn(one, { ...status('failed'), artifacts: [artifact(noise)] }, one.hook)
    const { task, tooLarge, incomplete, artifacts, timeline } = await seen(one)
    expect({ task, tooLarge, incomplete }).toEqual({ task: null, tooLarge: true, incomplete: true })
    expect(artifacts.listed).toEqual([factsOf(noise)])
    expect(timeline.steps.map(({ to }) => to)).toEqual(['input-required', 'working', 'failed'])
  })
})

describe('work that was never finished', () => {
  const halfDone = { artifacts: [artifact('secret draft')], history: [{ parts: [{ text: 'secret draft' }] }] }

  test.each(['failed', 'rejected', 'canceled'])(
    'is kept and said to be incomplete when its task is %s',
    async state => {
      const one = await begin({ ...status(state), ...halfDone })
      const { incomplete, withheld, task, artifacts } = await seen(one)
      expect({ incomplete, withheld }).toEqual({ incomplete: true, withheld: false })
      expect(task?.artifacts).toEqual(halfDone.artifacts)
      expect(artifacts.listed).toEqual([factsOf('secret draft')])
    },
  )

  test('is nothing that a finished task, or one without artifacts, has', async () => {
    expect(await seen(await begin({ ...status('completed'), ...halfDone }))).toMatchObject({
      incomplete: false,
    })
    expect(await seen(await begin(status('failed')))).toMatchObject({ incomplete: false })
  })

  test('is listed but not shown where a subscription withholds it, even after that ended', async () => {
    const one = await begin({ ...status('failed'), ...halfDone }, { partialWork: 'withhold' })
    await trip.call('DELETE', `/v1/subscriptions/${one.made.id}`)
    const shown = await seen(one)
    expect(shown).toMatchObject({ state: 'failed', incomplete: true, withheld: true, tooLarge: false })
    expect(shown.artifacts.listed).toEqual([factsOf('secret draft')])
    expect(shown.task?.status).toBeDefined()
    expect(JSON.stringify(shown)).not.toContain('secret draft')
  })

  test('is withheld for whoever subscribes so later, and until the task has ended it is shown', async () => {
    const one = await begin({ ...status('input-required'), ...halfDone }, { partialWork: 'withhold' })
    expect((await seen(one)).task?.artifacts).toEqual(halfDone.artifacts)
    const other = await begin({ ...status('failed'), ...halfDone })
    const late = await trip.subscribe('scripted', { taskId: other.taskId, partialWork: 'withhold' })
    expect(JSON.stringify(await seen(other))).not.toContain('secret draft')
    await trip.call('DELETE', `/v1/subscriptions/${late.made.id}`)
    expect(JSON.stringify(await seen(other))).not.toContain('secret draft')
  })

  test('is shown to an admin who asks for it by name, and to nobody else', async () => {
    const one = await begin({ ...status('failed'), ...halfDone }, { partialWork: 'withhold' })
    expect((await seen(one, '?partial=expose')).task?.artifacts).toEqual(halfDone.artifacts)
    const { key } = await trip.call<{ key: string }>('POST', '/v1/keys', { scopes: ['write'] })
    const response = await fetch(`${trip.local.apiOrigin}/v1/tasks/scripted/${one.taskId}?partial=expose`, {
      headers: { authorization: `Bearer ${key}` },
    })
    expect(response.status).toBe(403)
    expect(await response.text()).not.toContain('secret draft')
    expect((await trip.refused('GET', `/v1/tasks/scripted/${one.taskId}?partial=all`)).detail).toContain(
      '?partial',
    )
  })
})

describe('chained delegation reads as a tree', () => {
  type Node = { agent: string; taskId: string; parentTask?: unknown; contextId?: string; state: string }
  const list = (query: string) => trip.call<{ tasks: Node[]; next?: string }>('GET', `/v1/tasks?${query}`)

  test('the tasks delegated from one are listed under it, page by page, and name it', async () => {
    const parentTask = { agent: 'elsewhere', taskId: 'plan/7' }
    const [one, two] = [
      await begin(status('working'), { parentTask }),
      await begin(status('working'), { parentTask }),
    ]
    await begin(status('working'), { parentTask: { agent: 'elsewhere', taskId: 'plan' } })
    const first = await list('parent=elsewhere/plan/7&limit=1')
    const second = await list(`parent=elsewhere/plan/7&limit=1&after=${first.next}`)
    const found = [...first.tasks, ...second.tasks]
    expect(found.map(({ taskId }) => taskId).sort()).toEqual([one.taskId, two.taskId].sort())
    for (const task of found) expect(task).toMatchObject({ agent: 'scripted', state: 'working', parentTask })
    expect(await trip.task('scripted', one.taskId)).toMatchObject({ parentTask })
    const lines = trip.steps.filter(({ task, step }) => task === one.taskId && step === 'task.looked')
    expect(lines).toMatchObject([{ parent: 'elsewhere/plan/7' }])
  })

  test('a task bound by its first push stands under its parent too', async () => {
    const parentTask = { agent: 'elsewhere', taskId: 'unbound' }
    const unbound = await trip.subscribe('scripted', { parentTask })
    agent.put('late-child', status('working'))
    await push(unbound.hook, statusPush('late-child', 'working'))
    await trip.pass(2000)
    expect((await list('parent=elsewhere/unbound')).tasks).toMatchObject([{ taskId: 'late-child' }])
  })

  test('the tasks of a context are listed, and those that messages refer to are told', async () => {
    const contextId = 'talk-1'
    const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [], referenceTaskIds: ['a', 'b', 'a'] }
    const one = await begin({ ...status('working'), contextId })
    const two = await begin({ contextId, status: { state: 'TASK_STATE_COMPLETED', message } })
    const { tasks } = await list(`context=${contextId}`)
    expect(tasks.map(({ taskId }) => taskId).sort()).toEqual([one.taskId, two.taskId].sort())
    expect(await trip.task('scripted', two.taskId)).toMatchObject({ contextId, referenceTaskIds: ['a', 'b'] })
    expect(await list('context=another')).toEqual({ tasks: [] })
  })
})
