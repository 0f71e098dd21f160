// The world of the doors in one run: a table and queues in memory, calls that chance delays, doubles or cuts off. Holds and carries, decides nothing.
import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb'
import { marshall } from '@aws-sdk/util-dynamodb'
import type { Agent } from '../../../shared/model.ts'
import type { Relay } from '../../../shared/relay.ts'
import { agentKey, targetKey } from '../../../shared/store/keys.ts'
import type { Target } from '../../../shared/telling.ts'
import { type Crowd, callsAtOnce } from './crowd.ts'
import { agentUrl, createOutside, targetUrl } from './outside.ts'
import type { Story } from './story.ts'
import type { Input, MemoryTable } from './table.ts'
import { type Bed, befalls, call, type Process, type Queue, self } from './timeline.ts'
import type { Code } from './variants.ts'

/** A webhook call. */
export type Hint = {
  id: string
  target: string
  rev: number
  shows: number
  at: number
  /** Whether the target answered with 2xx. */
  heard: boolean
  /** Whether the entry that it hints at could be read in the inbox by then. */
  found: boolean
}

export type World = Bed & {
  code: Code
  relay: Relay
  story: Story
  road: 'push' | 'poll'
  crowd: Crowd
  /** How old a replica's answer may be. */
  replicaMs: number
  table: MemoryTable
  queues: { look: Queue; deliver: Queue }
  /** The push configs that the agent keeps, by id. */
  configs: Map<string, Record<string, unknown>>
  hints: Hint[]
  onHint: (hint: Record<string, unknown>, heard: boolean) => void
  /** Which state of the story a revision shows, by revision and state: the onlooker's own note. */
  shows: Map<string, number>
  counts: { looks: number; ticks: number }
  /** Whose call is carried out. */
  actor?: Process
}

const env = {
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'race',
  AWS_SECRET_ACCESS_KEY: 'race',
  TABLE_NAME: 'rouse',
  LOOK_QUEUE_URL: 'https://sqs.example/look',
  DELIVER_QUEUE_URL: 'https://sqs.example/deliver',
  PUBLIC_ORIGIN: 'https://rouse.example',
  HOOK_ORIGIN: 'https://hooks.rouse.example',
  ROOT_KEYS: `1:${Buffer.alloc(32, 7).toString('base64url')}`,
  DUE_SHARDS: '2',
  LOG_LEVEL: process.env.RACE_SEED === undefined ? 'error' : 'debug',
}

export const tenant = 't'

/** Who may subscribe: each has a client and a target of its own. */
const names = ['s1', 's2', 'crowd'] as const
export const targetOf = (name: string): string => `target-${name}`
export const clientOf = (name: string): string => `client-${name}`

/** What outlives the runs of one variant: building clients takes longer than a run. */
export type Stage = { code: Code; relay: Relay; enter: (world: World) => void }

/** Builds the relay of a variant; its calls go to the table and queues of the world that was entered last. */
export async function createStage(code: Code): Promise<Stage> {
  let world: World | undefined
  const here = (): World => {
    if (world === undefined) throw new Error('No run has begun')
    return world
  }
  const built = code.relay.createRelay('race', env, {
    now: () => (world === undefined ? 0 : Math.floor(world.timeline.now()) + self().skew),
    random: length => Uint8Array.from({ length }, () => world?.chance.between(0, 256) ?? 1),
    write: line => here().note(() => line),
  })
  const relay = { ...built, net: createOutside(here) }
  const answering =
    <In extends object, Out extends object>(_next: unknown, { commandName = '' }: { commandName?: string }) =>
    async ({ input }: { input: In }): Promise<{ response: unknown; output: Out }> => ({
      response: undefined,
      // The one border where what a command comes to gets its type.
      output: (await carry(here(), commandName, input)) as Out,
    })
  const first = { step: 'initialize', priority: 'high', name: 'race' } as const
  relay.table.client.middlewareStack.add(answering, first)
  relay.queues.client.middlewareStack.add(answering, first)
  const targets = await Promise.all(
    names.map(name =>
      code.targets.makeTarget(
        relay,
        { tenant, target: targetOf(name) },
        { url: targetUrl, secret: undefined },
        undefined,
        undefined,
      ),
    ),
  )
  const enter = (next: World) => {
    world = next
    furnish(next, targets)
  }
  return { code, relay, enter }
}

/** Puts what was registered before a run. */
function furnish({ table, road, crowd }: World, targets: Target[]): void {
  const agent: Agent = {
    ...{ tenant, agent: 'a', etag: '1', createdAt: 0, updatedAt: 0 },
    ...{ url: agentUrl, binding: 'JSONRPC', version: '1.0', origins: [new URL(agentUrl).origin] },
    ...{ pushes: road === 'push', streams: false, road, verification: { token: true } },
    ...(crowd.ends.size > 0 && { maxConcurrentCalls: callsAtOnce }),
  }
  table.place(marshall({ ...agentKey(tenant, 'a'), ...agent }))
  for (const target of targets) table.place(marshall({ ...targetKey(tenant, target.target), ...target }))
}

/** Carries a command to the table or a queue. The SDK repeats one whose answer was lost. */
async function carry(world: World, command: string, input: Input & Sent): Promise<object> {
  const { chance } = world
  const serve = (process: Process): object => {
    world.actor = process
    world.note(() => `${command} ${JSON.stringify(input)}`)
    if (command !== 'SendMessageCommand') return answerOrEnd(world, command, input)
    const queue = input.QueueUrl?.endsWith('look') ? world.queues.look : world.queues.deliver
    queue.send(input.MessageBody ?? '', (input.DelaySeconds ?? 0) * 1000)
    return {}
  }
  const first = await call(world, process => {
    if (befalls(world, process, 'throttled')) throw new Error('Throttled')
    const lost = befalls(world, process, 'lostAnswer')
    try {
      const answer = serve(process)
      return lost ? undefined : answer
    } catch (error) {
      if (!lost) throw error
    }
  })
  return first ?? call(world, serve, chance.between(5, 1500))
}

/** What the table in memory cannot do ends everything: it must not pass for a fault that the doors get over. */
function answerOrEnd({ table }: World, command: string, input: Input): object {
  try {
    return table.answer(command, input)
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) throw error
    process.stderr.write(`${error}\n`)
    process.exit(2)
  }
}

type Sent = { QueueUrl?: string; MessageBody?: string; DelaySeconds?: number }
