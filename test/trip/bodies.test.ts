// Every body that senders are known to push, replayed about a task that a real agent has: one look, and GetTask's word counts.
import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { push, type Subscribed, startTrip, type Trip, tokenOf } from '../support/trip.ts'

type Body = { name: string; body: unknown; reads: { taskId?: string } }
type Fixture = { sender: string; bodies: Body[] }

const folder = new URL('../fixtures/a2a/', import.meta.url)
const fixtures: Fixture[] = readdirSync(folder).map(name =>
  JSON.parse(readFileSync(new URL(name, folder), 'utf8')),
)

let trip: Trip
let agent: string
let subscribed: Subscribed
/** The agent's task by body, and how the push of the body was answered. */
const played = new Map<Body, { taskId: string; status: number }>()

/** The tasks are over before anybody pushes, whatever the bodies say: so the wakes show whose word counts. */
beforeAll(async () => {
  trip = await startTrip()
  const { id, caller } = await trip.scene()
  agent = id
  subscribed = await trip.subscribe(id, { scope: 'agent' })
  await trip.settle()
  for (const body of fixtures.flatMap(({ bodies }) => bodies)) {
    const taskId = await caller.send('do it at once')
    played.set(body, { taskId, status: await replay(body, taskId) })
  }
  await trip.pass(3000, 3)
}, 120_000)

afterAll(() => trip.stop())

/** Pushes the body with the id of the agent's own task; half of them as A2A's own media type. */
function replay({ body, reads }: Body, taskId: string): Promise<number> {
  let text = JSON.stringify(body)
  if (reads.taskId !== undefined) text = text.replaceAll(reads.taskId, taskId)
  const type = text.length % 2 === 0 ? 'application/json' : 'application/a2a+json'
  return push(subscribed.hook, text, { 'content-type': type, ...tokenOf(subscribed.hook) })
}

const naming = (isNaming: boolean) =>
  fixtures.flatMap(({ sender, bodies }) =>
    bodies
      .filter(({ reads }) => (reads.taskId !== undefined) === isNaming)
      .map(body => ({ sender, name: body.name, body })),
  )

describe('a push is accepted, costs one look, and the wake says what GetTask says', () => {
  test.each(naming(true))('$sender: $name', async ({ body }) => {
    const { taskId = '', status } = played.get(body) ?? {}
    expect(status).toBe(202)
    expect(trip.stepsOf('task.looked', taskId)).toHaveLength(1)
    const told = subscribed.client.told().filter(({ data }) => data.taskId === taskId)
    expect(told).toMatchObject([{ type: 'task.completed', data: { agent, state: 'completed', rev: 1 } }])
    expect(await trip.task(agent, taskId)).toMatchObject({ state: 'completed', task: { id: taskId } })
  })
})

describe('a push that names no task is accepted and causes nothing', () => {
  test.each(naming(false))('$sender: $name', ({ body }) => {
    const { taskId = '', status } = played.get(body) ?? {}
    expect(status).toBe(202)
    for (const step of ['notice.stored', 'notice.queued', 'task.looked'])
      expect(trip.stepsOf(step, taskId)).toEqual([])
  })
})
