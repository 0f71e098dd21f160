// The relay's process is really killed at named points and started again on its data: the wake still comes, once by its id.
import { type ChildProcess, fork } from 'node:child_process'
import { on, once } from 'node:events'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { callAgent } from '../../infra/local/agent/caller.ts'
import { type DemoAgent, startAgent } from '../../infra/local/agent.ts'
import { type Local, startLocal } from '../../infra/local/run.ts'
import { type Client, type Clients, startClients } from '../support/clients.ts'
import { ear } from '../support/ear.ts'
import { makeFolder } from '../support/folder.ts'
import { freePorts } from '../support/ports.ts'
import { type Made, type Routes, routesOf } from '../support/routes.ts'

let agent: DemoAgent
let clients: Clients
/** The relay that runs in this process, if one does: webhooks are judged by its time. */
let local: Local | undefined

beforeAll(async () => {
  agent = await startAgent()
  clients = await startClients(
    () => local?.now() ?? Date.now(),
    () => {},
  )
})

afterAll(() => Promise.all([agent.stop(), clients.stop()]))

const child = new URL('../support/child.ts', import.meta.url)
/** Each test starts two relays. */
const patienceMs = 120_000

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
    const relay = await startChild(step)
    const taskId = await (await callAgent(agent.cardUrl())).send('work')
    const saved = relay.logged('watch.saved')
    const { client } = await subscribe(relay, { taskId })
    await saved
    await relay.killedBy(agent.setState(taskId, 'completed'))
    const before = client.told().length
    const again = await relay.startAgain()
    for (const minutes of [0, 1.5, 2, 6]) {
      again.advance(minutes * 60_000)
      await again.drain()
    }
    expect([before, client.told().length]).toEqual([most - 1, most])
    await expectToldOnce(relay, client, taskId)
    expect(await again.dead()).toEqual([])
  },
  patienceMs,
)

test(
  'killed right after the first push of an unknown task was stored, it still binds, and wakes the client',
  async () => {
    const relay = await startChild('notice.stored')
    const { client, made } = await subscribe(relay, {})
    const config = made.pushNotificationConfigs['1.0']
    const sending = callAgent(agent.cardUrl()).then(caller => caller.send('work', { config }))
    await relay.killedBy(sending)
    const taskId = await sending
    await agent.setState(taskId, 'completed', { push: false })
    const again = await relay.startAgain()
    again.advance(61_000)
    await again.drain()
    expect(client.told()).toHaveLength(1)
    await expectToldOnce(relay, client, taskId)
  },
  patienceMs,
)

async function expectToldOnce({ inbox }: Routes, client: Client, taskId: string): Promise<void> {
  const told = client.told()
  expect(new Set(told.map(({ id }) => id)).size).toBe(1)
  const { entries } = await inbox(client.name)
  expect(entries).toMatchObject([{ taskId, state: 'completed', seq: told[0]?.data.seq }])
}

type Mortal = Routes & {
  /** Resolves once the relay has logged a step. */
  logged: (step: string) => Promise<void>
  /** Resolves once the relay was killed, which that work must bring about. */
  killedBy: (work: Promise<unknown>) => Promise<void>
  /** Starts a relay on the data and ports that the killed one left. */
  startAgain: () => Promise<Local>
}

/** Starts a relay that will be killed by a step, and registers the agent there. */
async function startChild(step: string): Promise<Mortal> {
  const dir = makeFolder()
  const ports = await freePorts()
  const relay = fork(child, [dir, step, String(ports.hook), String(ports.api)])
  onTestFinished(() => void relay.kill('SIGKILL'))
  const exited = once(relay, 'exit')
  const routes = routesOf(`http://127.0.0.1:${ports.api}`, await keyOf(relay))
  await routes.call('PUT', '/v1/agents/demo', { cardUrl: agent.cardUrl() })
  return {
    ...routes,
    logged: async name => {
      for await (const [said] of on(relay, 'message')) if (said.step === name) return
    },
    killedBy: async work => {
      await work
      expect(await exited).toEqual([null, 'SIGKILL'])
    },
    startAgain: async () => {
      const started = await startLocal({ dir, ports, tick: 'manual', write: ear.line })
      local = started
      onTestFinished(async () => {
        local = undefined
        await started.stop()
      })
      return started
    },
  }
}

/** The relay's API key, which it says when it is up. */
async function keyOf(relay: ChildProcess): Promise<string> {
  for await (const [said] of on(relay, 'message', { close: ['exit'] }))
    if (said.key !== undefined) return said.key
  throw new Error('The relay ended before it was up')
}

async function subscribe(
  { call }: Routes,
  asked: Record<string, unknown>,
): Promise<{ client: Client; made: Made }> {
  const client = clients.make()
  const whom = { client: client.name, targets: [{ url: client.url }] }
  const made = await call<Made>('POST', '/v1/subscriptions', { agent: 'demo', ...whom, ...asked })
  client.secret = made.targets[0]?.secret ?? ''
  return { client, made }
}
