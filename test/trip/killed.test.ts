// The relay's process is really killed at named points and started again on its data: the wake still comes, once by its id.
import { type ChildProcess, fork } from 'node:child_process'
import { on, once } from 'node:events'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { callAgent } from '../../infra/local/agent/caller.ts'
import { type DemoAgent, startAgent } from '../../infra/local/agent.ts'
import { startLocal } from '../../infra/local/run.ts'
import { type Clients, startClients } from '../support/clients.ts'
import { makeFolder } from '../support/folder.ts'
import { freePorts } from '../support/ports.ts'
import { type Made, routesOf } from '../support/routes.ts'

let agent: DemoAgent
let clients: Clients

beforeAll(async () => {
  agent = await startAgent()
  clients = await startClients(
    () => now(),
    () => {},
  )
})

afterAll(() => Promise.all([agent.stop(), clients.stop()]))

/** The time by which webhooks are judged: that of the relay that runs. */
let now = Date.now

const child = new URL('../support/child.ts', import.meta.url)

test.each([
  ['the notice was stored', 'notice.stored', 1],
  ['the notice was queued', 'notice.queued', 1],
  ['the snapshot was saved', 'snapshot.saved', 1],
  ['the inbox entry was appended', 'inbox.appended', 1],
  ['the wake was queued', 'wake.queued', 1],
  // Nobody can know then whether the client has it: the same id comes again.
  ['the webhook was sent', 'wake.sent', 2],
])(
  'killed right after %s, it still wakes the client, by one id, with one inbox entry',
  async (_when, step, most) => {
    const dir = makeFolder()
    const ports = await freePorts()
    const api = `http://127.0.0.1:${ports.api}`
    const [relay, key] = await startChild(dir, step, ports)
    const saved = logged(relay, 'watch.saved')
    const client = clients.make()
    const taskId = await subscribe(api, key, client)
    await saved
    const killed = once(relay, 'exit')
    await agent.setState(taskId, 'completed')
    expect(await killed).toEqual([null, 'SIGKILL'])
    const before = client.told().length

    const local = await startLocal({ dir, ports, tick: 'manual' })
    now = local.now
    try {
      for (const minutes of [0, 1.5, 2, 6]) {
        local.advance(minutes * 60_000)
        await local.drain()
      }
      const told = client.told()
      expect(new Set(told.map(({ id }) => id)).size).toBe(1)
      expect(told.length).toBe(most)
      expect(before).toBe(most - 1)
      expect(client.states()).toContain('completed')
      const { entries } = await routesOf(api, key).inbox(client.name)
      expect(entries).toMatchObject([{ taskId, state: 'completed', seq: told[0]?.data.seq }])
      expect(await local.dead()).toEqual([])
    } finally {
      now = Date.now
      await local.stop()
    }
  },
  // Each starts two relays.
  120_000,
)

/** Starts the relay that will be killed. @returns it and its API key */
async function startChild(
  dir: string,
  step: string,
  { hook, api }: { hook: number; api: number },
): Promise<[ChildProcess, string]> {
  const relay = fork(child, [dir, step, String(hook), String(api)])
  onTestFinished(() => void relay.kill('SIGKILL'))
  const [key] = await Promise.race([
    once(relay, 'message'),
    once(relay, 'exit').then(([code]) => {
      throw new Error(`The relay ended with ${code} before it was up`)
    }),
  ])
  return [relay, String(key)]
}

/** Resolves once the relay has logged a step. */
async function logged(relay: ChildProcess, step: string): Promise<void> {
  for await (const [said] of on(relay, 'message')) if (said === step) return
}

/** Subscribes a client to a task that is at work. */
async function subscribe(origin: string, key: string, client: ReturnType<Clients['make']>): Promise<string> {
  const { call } = routesOf(origin, key)
  await call('PUT', '/v1/agents/demo', { cardUrl: agent.cardUrl() })
  const caller = await callAgent(agent.cardUrl())
  const taskId = await caller.send('work')
  const made = await call<Made>('POST', '/v1/subscriptions', {
    agent: 'demo',
    taskId,
    client: client.name,
    targets: [{ url: client.url }],
  })
  client.secret = made.targets[0]?.secret ?? ''
  return taskId
}
