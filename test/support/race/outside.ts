// What is outside: the agent with its one task, its replicas and its pushes' configs, and the webhooks. Answers what a net was asked, late or never as chance will.
import { type Net, NetError, type NetReply, type NetRequest } from '../../../shared/net.ts'
import { isDown, taskOfCrowd } from './crowd.ts'
import { taskId } from './story.ts'
import { call, self } from './timeline.ts'
import type { World } from './world.ts'

export const agentUrl = 'https://agent.example/a2a'
export const targetUrl = 'https://target.example/hook'

/** The net of whoever acts in a world that may change from run to run. */
export const createOutside = (world: () => World): Net => ({
  check: url => new URL(url),
  request: request => (request.url.startsWith(targetUrl) ? hear(world(), request) : answer(world(), request)),
})

type Fields = Record<string, unknown>

const reply = (status: number, body?: object): NetReply => ({
  status,
  headers: new Headers(),
  body: Buffer.from(body === undefined ? '' : JSON.stringify(body)),
})

const parse = (body: NetRequest['body']): Fields => JSON.parse(String(body ?? '{}'))

async function answer(world: World, request: NetRequest): Promise<NetReply> {
  const { id, method, params } = parse(request.body)
  const asked: Fields = typeof params === 'object' ? { ...params } : {}
  const result = (value: unknown): NetReply => reply(200, { jsonrpc: '2.0', id, result: value })
  if (method === 'GetTask') {
    const seen = await look(world, asked.id)
    return seen === undefined
      ? reply(200, { jsonrpc: '2.0', id, error: { code: -32001, message: 'Task not found' } })
      : result(seen)
  }
  if (method === 'CreateTaskPushNotificationConfig')
    return call(world, () => {
      world.configs.set(String(asked.id), asked)
      return result(asked)
    })
  if (method === 'ListTaskPushNotificationConfigs')
    return call(world, () => result({ configs: [...world.configs.values()] }))
  throw new Error(`The agent knows no ${method}`)
}

/** The task as the agent shows it: a replica shows what was true some time ago. */
async function look(world: World, id: unknown): Promise<object | undefined> {
  const { chance, timeline, happens, story, crowd } = world
  const now = await call(world, () => timeline.now(), chance.between(2, 60))
  world.counts.looks += 1
  const answered = !isDown(crowd, now) && !happens('outage')
  const away = chance.pick(chance.between(1, 50), 10_000)
  const busy = happens('slow') ? chance.between(400, 6000) : chance.between(2, 400)
  const until = now + (answered ? busy : away)
  crowd.exchanges.push({ from: now, until, answered, late: self().stalled === true })
  await call(world, () => {}, until - now)
  if (!answered) throw new NetError('unreachable', 'The agent is away.')
  const when = now - (happens('replica') ? chance.between(0, world.replicaMs) : 0)
  if (id !== taskId) return taskOfCrowd(crowd, id, when)
  const seen = story.at(when)
  if (seen !== undefined) self().shown = seen.n
  return seen?.raw
}

/** A webhook takes a hint, or answers 503. Whoever was hinted at reads its inbox at once. */
async function hear(world: World, request: NetRequest): Promise<NetReply> {
  const { chance } = world
  return call(
    world,
    () => {
      const heard = !world.happens('unheard')
      world.onHint({ ...parse(request.body), id: request.headers?.['webhook-id'] }, heard)
      return reply(heard ? 204 : 503)
    },
    chance.of(0.9) ? undefined : chance.between(200, 15_000),
  )
}
