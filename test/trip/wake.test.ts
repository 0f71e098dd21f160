// The main trip: a real A2A agent pushes, the push is proven, the agent is asked, the client that was away is woken.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Variant } from '../../infra/local/agent/cards.ts'
import type { DemoAgent } from '../../infra/local/agent.ts'
import { type Scene, type Subscribed, startTrip, type Trip } from '../support/trip.ts'

let trip: Trip
/** By how they prove their pushes: the SDK's own sender, and two that sign. */
let agents: Record<'plain' | 'ES256' | 'RS256', DemoAgent>

beforeAll(async () => {
  trip = await startTrip()
  agents = {
    plain: await trip.startAgent(),
    ES256: await trip.startAgent({ sign: 'ES256' }),
    RS256: await trip.startAgent({ sign: 'RS256' }),
  }
})

afterAll(() => trip.stop())

const proofs = ['token', 'Bearer', 'Basic', 'ES256', 'RS256'] as const
/** Those of a first push that binds: one by the SDK's own sender, and a signed one. */
const bindingProofs = ['Bearer', 'ES256'] as const

type Proof = (typeof proofs)[number]
type Played = Scene & Subscribed & { taskId: string }

/** An agent, and the verification setting under which its pushes are to be proven so. */
function proving(proof: Proof): [DemoAgent, Record<string, unknown>] {
  if (proof === 'token') return [agents.plain, { token: true }]
  if (proof === 'Bearer' || proof === 'Basic') return [agents.plain, { token: true, authorization: proof }]
  const { jwksUrl, origin } = agents[proof]
  return [agents[proof], { jwt: { jwksUrl, issuer: origin, algorithms: [proof] } }]
}

const loggedAs: Record<Proof, string> = {
  token: 'token',
  Bearer: 'authorization',
  Basic: 'authorization',
  ES256: 'jwt',
  RS256: 'jwt',
}

/** Up to the moment before the agent is done: Rouse registered the push config there. */
async function beginBound(variant: Partial<Variant>, proof: Proof): Promise<Played> {
  const [agent, verification] = proving(proof)
  const scene = await trip.register(agent, { variant, verification })
  const taskId = await scene.caller.send('work')
  return { ...scene, taskId, ...(await trip.subscribe(scene.id, { taskId })) }
}

/** The same, but the client handed the push config over with its message, and the agent has pushed once. */
async function beginUnbound(variant: Partial<Variant>, proof: Proof): Promise<Played> {
  const [agent, verification] = proving(proof)
  const scene = await trip.register(agent, { variant, verification })
  const subscribed = await trip.subscribe(scene.id)
  const taskId = await scene.caller.send('work', { config: subscribed.made.pushNotificationConfigs['1.0'] })
  await trip.until(() => trip.stepsOf('notice.queued', taskId).length > 0)
  return { ...scene, taskId, ...subscribed }
}

describe.each<Pick<Variant, 'version' | 'binding'>>([
  { version: '1.0', binding: 'JSONRPC' },
  { version: '1.0', binding: 'HTTP+JSON' },
  { version: '0.3', binding: 'JSONRPC' },
  { version: '0.3', binding: 'HTTP+JSON' },
])('A2A $version over $binding', variant => {
  const bound = new Map<Proof, Played>()
  const unbound = new Map<Proof, Played>()

  beforeAll(async () => {
    for (const proof of proofs) bound.set(proof, await beginBound(variant, proof))
    for (const proof of bindingProofs) unbound.set(proof, await beginUnbound(variant, proof))
    await trip.settle()
    trip.local.advance(1000)
    for (const { agent, taskId } of [...bound.values(), ...unbound.values()])
      await agent.setState(taskId, 'completed')
    await trip.pass(2000, 2)
  }, 120_000)

  test.each(proofs)('a push proven by %s wakes the client of a task that was subscribed to', async proof => {
    const one = bound.get(proof)
    expect(one?.made.registration).toMatchObject({ status: 'registered' })
    await expectWoken(one, proof)
  })

  test.each(bindingProofs)(
    'a first push proven by %s binds the subscription it was handed out for',
    async proof => {
      const one = unbound.get(proof)
      expect(one?.made.registration).toMatchObject({ status: 'handed_out' })
      expect(await trip.call('GET', `/v1/subscriptions/${one?.made.id}`)).toMatchObject({
        taskId: one?.taskId,
      })
      await expectWoken(one, proof)
    },
  )
})

test('one line is logged of a push, of a look that shows something new, and of a wake, unless more is asked for', async () => {
  const { taskId } = await beginBound({}, 'token')
  await trip.settle()
  trip.local.advance(1000)
  const before = trip.steps.length
  await agents.plain.setState(taskId, 'completed')
  await trip.settle()
  const logged = trip.steps.slice(before).filter(({ task, level }) => task === taskId && level === 'info')
  expect(logged.map(({ step }) => step)).toEqual(['notice.queued', 'watch.saved', 'wake.recorded'])
})

/** Woken once, with what GetTask says, by a push that was proven as expected; the inbox says the same. */
async function expectWoken(played: Played | undefined, proof: Proof): Promise<void> {
  if (played === undefined) throw new Error('It was not played')
  const { id, taskId, client } = played
  expect(trip.stepsOf('notice.stored', taskId).map(({ by }) => by)).toContainEqual([loggedAs[proof]])
  const { entries } = await trip.inbox(client.name)
  expect(entries).toMatchObject([{ taskId, state: 'completed' }])
  expect(client.told()).toMatchObject([
    { type: 'task.completed', data: { agent: id, taskId, state: 'completed', seq: entries[0]?.seq } },
  ])
  const seen = await trip.task(id, taskId)
  expect(seen).toMatchObject({ state: 'completed', stale: false, task: { id: taskId } })
}
