// What is kept of a task beside its state: the trace and the parent it belongs to, what happened when, and work that was never finished.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { traceIdOf } from '../../shared/trace.ts'
import { type Scripted, startScripted, status } from '../support/scripted.ts'
import { push, type Subscribed, startTrip, statusPush, type Trip } from '../support/trip.ts'

let trip: Trip
let agent: Scripted
let tasksMade = 0

beforeAll(async () => {
  ;[trip, agent] = await Promise.all([startTrip(), startScripted()])
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
  if (hook !== undefined) await push(hook, statusPush(taskId, 'working'))
  await trip.pass(4000, 2)
}

describe('a trace', () => {
  const given = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`
  const header = (call: { headers: Record<string, unknown> }): string => String(call.headers.traceparent)

  test('that the subscription brings is that of every call, wake and line, each call with a span of its own', async () => {
    const one = await begin(status('working'), { traceparent: given })
    await goOn(one, status('completed'), one.hook)
    expect(one.client.states()).toEqual(['completed'])
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
      expect.arrayContaining(['notice.stored', 'task.looked', 'wake.queued', 'wake.sent', 'wake.recorded']),
    )
    expect(lines.filter(({ trace }) => trace !== 'ab'.repeat(16))).toEqual([])
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
