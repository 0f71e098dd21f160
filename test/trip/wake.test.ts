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
const roads = ['bound', 'unbound'] as const

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

/** Up to the moment before the agent is done: Rouse registers the push config, or the client hands it over inline. */
async function begin(variant: Partial<Variant>, proof: Proof, road: string): Promise<Played> {
  const [agent, verification] = proving(proof)
  const scene = await trip.register(agent, { variant, verification })
  if (road === 'bound') {
    const taskId = await scene.caller.send('work')
    return { ...scene, taskId, ...(await trip.subscribe(scene.id, { taskId })) }
  }
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
  const played = new Map<string, Played>()
  const of = (road: string, proof: Proof): Played => {
    const one = played.get(`${road} ${proof}`)
    if (one === undefined) throw new Error('It was not played')
    return one
  }

  beforeAll(async () => {
    const cases = roads.flatMap(road => proofs.map(proof => [road, proof] as const))
    await Promise.all(
      cases.map(async ([road, proof]) => played.set(`${road} ${proof}`, await begin(variant, proof, road))),
    )
    await trip.settle()
    trip.local.advance(1000)
    await Promise.all([...played.values()].map(({ agent, taskId }) => agent.setState(taskId, 'completed')))
    await trip.pass(2000, 2)
  })

  test.each(proofs)('a push proven by %s wakes the client of a task that was subscribed to', async proof => {
    const one = of('bound', proof)
    expect(one.made.registration).toMatchObject({ status: 'registered' })
    await expectWoken(one, proof)
  })

  test.each(proofs)('a first push proven by %s binds the subscription it was handed out for', async proof => {
    const one = of('unbound', proof)
    expect(one.made.registration).toMatchObject({ status: 'handed_out' })
    const bound = await trip.call<{ taskId: string }>('GET', `/v1/subscriptions/${one.made.id}`)
    expect(bound.taskId).toBe(one.taskId)
    await expectWoken(one, proof)
  })
})

/** Woken once, with what GetTask says, by a push that was proven as expected; the inbox says the same. */
async function expectWoken({ id, taskId, client }: Played, proof: Proof): Promise<void> {
  expect(trip.stepsOf('notice.stored', taskId).map(({ by }) => by)).toContainEqual([loggedAs[proof]])
  const { entries } = await trip.inbox(client.name)
  expect(entries).toMatchObject([{ taskId, state: 'completed' }])
  expect(client.told()).toMatchObject([
    { type: 'task.completed', data: { agent: id, taskId, state: 'completed', seq: entries[0]?.seq } },
  ])
  const seen = await trip.task(id, taskId)
  expect(seen).toMatchObject({ state: 'completed', stale: false, task: { id: taskId } })
}
