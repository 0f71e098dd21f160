// Proves what a deploy would make, by evaluating the real sst.config.ts: everything is as the topology states, nobody may do more than it needs.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type DoorName, doors, type QueueName, queues, schedules, table } from '../../infra/topology.ts'
import { loadConfig } from '../../shared/config.ts'
import { readSources } from '../support/sources.ts'
import type { Plan } from './plan.ts'

const folder = mkdtempSync(join(tmpdir(), 'rouse-plan-'))
const secrets = {
  SST_SECRET_RootKeys: `1:${Buffer.alloc(32, 1).toString('base64url')}`,
  SST_SECRET_OperatorKeySha256: 'ab'.repeat(32),
}
const origins = { PUBLIC_ORIGIN: 'https://rouse.example', HOOK_ORIGIN: 'https://hooks.rouse.example' }

const run = (stage: string, env: Record<string, string>) => {
  const { status, stderr } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, 'plan.ts'), stage, join(folder, stage)],
    { env: { PATH: process.env.PATH, ...env }, encoding: 'utf8' },
  )
  return { status, stderr }
}
const planOf = (stage: string): Plan => JSON.parse(readFileSync(join(folder, stage), 'utf8'))

let plan: Plan
let first: Plan
let told: string
beforeAll(() => {
  expect(
    run('production', { ...secrets, ...origins, RECEIVE_CONCURRENCY: '200', LOG_LEVEL: 'debug' }),
  ).toEqual({
    status: 0,
    stderr: '',
  })
  plan = planOf('production')
  const { status, stderr } = run('trial', secrets)
  expect(status, stderr).toBe(0)
  told = stderr
  first = planOf('trial')
})
afterAll(() => rmSync(folder, { recursive: true }))

type Inputs = Record<string, unknown>

/** Everything of one type, by logical name. */
const all = (type: string, of = plan): Record<string, Inputs> =>
  Object.fromEntries(
    of.resources.filter(made => made.type === type).map(({ name, inputs }) => [name, inputs]),
  )

const one = (type: string, of = plan): Inputs => {
  const found = Object.values(all(type, of))
  expect(found).toHaveLength(1)
  return found[0]
}

const doorNames = Object.keys(doors) as DoorName[]
const queueNames = Object.keys(queues) as QueueName[]
const label = (name: string): string => name[0].toUpperCase() + name.slice(1)

const functionOf = (name: DoorName, of = plan): Inputs =>
  all('aws:lambda/function:Function', of)[`${label(name)}Function`]
const queueOf = (name: string): Inputs => all('aws:sqs/queue:Queue')[`${name}Queue`]
const arnOf = (service: string, { name }: Inputs): string =>
  `arn:aws:${service}:eu-west-1:123456789012:${{ lambda: 'function:', dynamodb: 'table/', sqs: '' }[service]}${name}`

/** How Pulumi marks a value that its state must encrypt. */
const secretMark = '1b47061264138c4ac30d75fd1eb44270'
const isSecret = (value: unknown): boolean => Object.values(value ?? {}).includes(secretMark)

function environmentOf(name: DoorName, of = plan): Record<string, string> {
  const { environment } = functionOf(name, of) as { environment: Inputs }
  const { variables } = (isSecret(environment) ? environment.value : environment) as Inputs
  return variables as Record<string, string>
}

type Statement = { Action: string[]; Resource: string[] }

/** What a role may do, one line for each action on each resource. */
function rightsOf(role: string): string[] {
  const { inlinePolicies } = all('aws:iam/role:Role')[role] as { inlinePolicies: { policy: string }[] }
  return inlinePolicies
    .flatMap(({ policy }) => JSON.parse(policy).Statement as Statement[])
    .flatMap(({ Action, Resource }) =>
      Action.flatMap(action => Resource.map(resource => `${action} ${resource}`)),
    )
    .sort()
}

/** The actions behind the commands that a room of ours sends with an SDK client. */
const actionsOf = (path: string, client: string): string[] =>
  readSources('shared')
    .filter(source => source.path === path)
    .flatMap(({ imports }) => imports.filter(({ from }) => from === `@aws-sdk/client-${client}`))
    .flatMap(({ names }) => names.filter(name => name.endsWith('Command')))
    .map(name => `${client}:${name.replace('Command', '')}`)

describe('the table', () => {
  test('has the keys, the sparse index and the expiry of the topology', () => {
    const { hashKey, rangeKey, ttl, index } = table
    expect(one('aws:dynamodb/table:Table')).toMatchObject({
      billingMode: 'PAY_PER_REQUEST',
      hashKey,
      rangeKey,
      attributes: [
        { name: hashKey, type: 'S' },
        { name: rangeKey, type: 'S' },
        { name: index.hashKey, type: 'S' },
        { name: index.rangeKey, type: 'N' },
      ],
      ttl: { attributeName: ttl, enabled: true },
      globalSecondaryIndexes: [
        {
          name: index.name,
          hashKey: index.hashKey,
          rangeKey: index.rangeKey,
          projectionType: 'INCLUDE',
          nonKeyAttributes: index.include,
        },
      ],
      localSecondaryIndexes: [],
      streamEnabled: false,
    })
  })

  test('can be restored to any second, and in production it outlives the app', () => {
    expect(one('aws:dynamodb/table:Table')).toMatchObject({
      pointInTimeRecovery: { enabled: true },
      deletionProtectionEnabled: true,
    })
    expect(plan.app).toMatchObject({ removal: 'retain', protect: true })
    expect(one('aws:dynamodb/table:Table', first)).toMatchObject({ deletionProtectionEnabled: false })
    expect(first.app).toMatchObject({ removal: 'remove', protect: false })
  })
})

describe('the queues', () => {
  test('are those of the topology, each with a dead-letter queue, and no others', () => {
    expect(Object.keys(all('aws:sqs/queue:Queue')).sort()).toEqual(
      queueNames.flatMap(name => [`${label(name)}DeadQueue`, `${label(name)}QueueQueue`]).sort(),
    )
  })

  test.each(queueNames)('%s keeps, hides and gives up messages as the topology says', name => {
    const stated = queues[name]
    const dead = queueOf(`${label(name)}Dead`)
    const queue = queueOf(`${label(name)}Queue`)
    expect(queue).toMatchObject({
      fifoQueue: false,
      visibilityTimeoutSeconds: stated.visibilitySeconds,
      messageRetentionSeconds: stated.retentionSeconds,
    })
    expect(JSON.parse(String(queue.redrivePolicy))).toEqual({
      deadLetterTargetArn: arnOf('sqs', dead),
      maxReceiveCount: stated.maxReceives,
    })
    expect(dead).toMatchObject({ fifoQueue: false, messageRetentionSeconds: stated.deadRetentionSeconds })
  })

  test.each(queueNames)('%s hides a message at least six times as long as its door may work', name => {
    expect(queueOf(`${label(name)}Queue`).visibilityTimeoutSeconds).toBeGreaterThanOrEqual(
      6 * Number(functionOf(queues[name].consumer).timeout),
    )
  })

  test('feed their doors in batches that are answered in part, a stated number at once', () => {
    const mappings = Object.values(all('aws:lambda/eventSourceMapping:EventSourceMapping'))
    expect(mappings).toHaveLength(queueNames.length)
    for (const name of queueNames)
      expect(mappings).toContainEqual({
        eventSourceArn: arnOf('sqs', queueOf(`${label(name)}Queue`)),
        functionName: arnOf('lambda', functionOf(queues[name].consumer)),
        functionResponseTypes: ['ReportBatchItemFailures'],
        batchSize: queues[name].batchSize,
        maximumBatchingWindowInSeconds: 0,
        scalingConfig: { maximumConcurrency: queues[name].maxConcurrency },
      })
  })
})

describe('the functions', () => {
  test('are the doors of the topology and no others', () => {
    expect(Object.keys(all('aws:lambda/function:Function')).sort()).toEqual(
      doorNames.map(name => `${label(name)}Function`).sort(),
    )
  })

  // That a handler exists is proven by the plan itself: it bundles each one and looks for its export.
  test.each(doorNames)('%s runs on Node 24 and arm64, within the limits of the topology', name => {
    expect(functionOf(name)).toMatchObject({
      runtime: 'nodejs24.x',
      architectures: ['arm64'],
      packageType: 'Zip',
      handler: 'bundle.handler',
      timeout: doors[name].timeoutSeconds,
      memorySize: doors[name].memoryMegabytes,
    })
  })

  test.each(doorNames)(
    '%s finds every setting that it needs, and root keys only if it is to hold them',
    name => {
      const config = loadConfig({ ...environmentOf(name), AWS_REGION: 'eu-west-1' })
      expect(config).toMatchObject({
        tableName: one('aws:dynamodb/table:Table').name,
        publicOrigin: origins.PUBLIC_ORIGIN,
        hookOrigin: origins.HOOK_ORIGIN,
        logLevel: 'debug',
        net: { allowHttp: false, allowAddresses: [], allowPorts: [443] },
      })
      expect(config.lookQueueUrl).toMatch(new RegExp(`/${queueOf('LookQueue').name}$`))
      expect(config.deliverQueueUrl).toMatch(new RegExp(`/${queueOf('DeliverQueue').name}$`))
      const dead = queueNames.map(queue => queueOf(`${label(queue)}Dead`).name)
      expect(
        [config.lookDeadQueueUrl, config.deliverDeadQueueUrl].map(url => url?.split('/').at(-1)),
      ).toEqual(doors[name].emptiesDead ? dead : [undefined, undefined])
      expect(config.rootKeys.size).toBe(doors[name].keys ? 1 : 0)
      expect(config.operatorKeySha256).toBe(name === 'api' ? secrets.SST_SECRET_OperatorKeySha256 : undefined)
    },
  )

  test.each(doorNames)('what is secret to %s is encrypted in the state of the deploy', name => {
    expect(isSecret(functionOf(name).environment)).toBe(doors[name].keys)
  })

  test('receive alone has concurrency of its own, and only if asked', () => {
    for (const name of doorNames)
      expect(functionOf(name).reservedConcurrentExecutions).toBe(name === 'receive' ? 200 : undefined)
    expect(functionOf('receive', first).reservedConcurrentExecutions).toBeUndefined()
  })
})

describe('rights', () => {
  test.each(doorNames)(
    '%s may do what the topology says, each action on each thing, and nothing else',
    name => {
      const { table: rights, sends, emptiesDead = false } = doors[name]
      const arn = arnOf('dynamodb', one('aws:dynamodb/table:Table'))
      const sqs = (queue: QueueName) => arnOf('sqs', queueOf(`${label(queue)}Queue`))
      const eats = queueNames.filter(queue => queues[queue].consumer === name)
      const eating = ['ChangeMessageVisibility', 'DeleteMessage', 'GetQueueAttributes', 'ReceiveMessage']
      expect(rightsOf(`${label(name)}Role`)).toEqual(
        [
          ...rights.map(right =>
            right === 'Query index'
              ? `dynamodb:Query ${arn}/index/${table.index.name}`
              : `dynamodb:${right} ${arn}`,
          ),
          ...sends.flatMap(queue =>
            actionsOf('shared/queue.ts', 'sqs').map(action => `${action} ${sqs(queue)}`),
          ),
          ...eats.flatMap(queue => eating.map(action => `sqs:${action} ${sqs(queue)}`)),
          ...(emptiesDead ? queueNames : []).flatMap(queue =>
            actionsOf('shared/dead.ts', 'sqs').map(
              action => `${action} ${arnOf('sqs', queueOf(`${label(queue)}Dead`))}`,
            ),
          ),
        ].sort(),
      )
    },
  )

  test('the doors may do all that the store does, and it does all that some door may', () => {
    const rights = doorNames.flatMap(name => doors[name].table).map(right => `dynamodb:${right}`)
    const done = actionsOf('shared/store/table.ts', 'dynamodb')
    expect([...new Set(rights)].sort()).toEqual([...done, 'dynamodb:Query index'].sort())
  })

  test('nobody but Lambda takes the role of a door, and no managed policy adds to it but for logs', () => {
    for (const name of doorNames)
      expect(all('aws:iam/role:Role')[`${label(name)}Role`]).toMatchObject({
        assumeRolePolicy: {
          Statement: [
            { Effect: 'Allow', Action: 'sts:AssumeRole', Principal: { Service: 'lambda.amazonaws.com' } },
          ],
        },
        managedPolicyArns: ['arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole'],
      })
  })

  test('the schedule may call the tick door and nothing else', () => {
    expect(rightsOf('TickScheduleRole')).toEqual([
      `lambda:InvokeFunction ${arnOf('lambda', functionOf(schedules.tick.door))}`,
    ])
  })

  test('there are no roles besides', () => {
    expect(Object.keys(all('aws:iam/role:Role')).sort()).toEqual(
      [...doorNames.map(name => `${label(name)}Role`), 'TickScheduleRole'].sort(),
    )
  })
})

describe('ways in', () => {
  const open = doorNames.filter(name => doors[name].url)

  test('only the doors that the topology opens have an address, and preflight requests reach them', () => {
    expect(Object.values(all('aws:lambda/functionUrl:FunctionUrl'))).toEqual(
      expect.arrayContaining(
        open.map(name => ({
          authorizationType: 'NONE',
          functionName: functionOf(name).name,
          invokeMode: 'BUFFERED',
        })),
      ),
    )
    expect(Object.keys(all('aws:lambda/functionUrl:FunctionUrl'))).toHaveLength(open.length)
  })

  test('the public may call only those, and only by their address', () => {
    const permissions = Object.values(all('aws:lambda/permission:Permission'))
    expect(new Set(permissions.map(permission => permission.function))).toEqual(
      new Set(open.map(name => functionOf(name).name)),
    )
    for (const { functionUrlAuthType, invokedViaFunctionUrl } of permissions)
      expect([functionUrlAuthType, invokedViaFunctionUrl]).toSatisfy(
        ([auth, via]) => auth === 'NONE' || via === true,
      )
  })

  test('tick runs every minute, one at a time, and a failed run is not repeated', () => {
    expect(schedules.tick.everySeconds).toBe(60)
    expect(one('aws:scheduler/schedule:Schedule')).toMatchObject({
      scheduleExpression: 'rate(1 minute)',
      state: 'ENABLED',
      target: {
        arn: arnOf('lambda', functionOf(schedules.tick.door)),
        retryPolicy: { maximumRetryAttempts: 0 },
      },
    })
    expect(one('aws:lambda/functionEventInvokeConfig:FunctionEventInvokeConfig')).toEqual({
      functionName: functionOf(schedules.tick.door).name,
      maximumRetryAttempts: 0,
    })
    expect(doors[schedules.tick.door].timeoutSeconds).toBeLessThan(schedules.tick.everySeconds)
  })
})

describe('deploying', () => {
  test('prints the origins in use', () => {
    expect(plan.outputs).toMatchObject(origins)
  })

  test('the first time prints the origins to set, says so, and the doors refuse to work without them', () => {
    expect(first.outputs).toMatchObject({
      PUBLIC_ORIGIN: 'https://apiurl.lambda-url.eu-west-1.on.aws',
      HOOK_ORIGIN: 'https://receiveurl.lambda-url.eu-west-1.on.aws',
    })
    expect(told).toMatch(/^First deploy: .*\.env\.trial/)
    expect(() => loadConfig(environmentOf('receive', first))).toThrow(
      /PUBLIC_ORIGIN is missing.*HOOK_ORIGIN is missing/,
    )
  })

  test('without a secret ends with the command that sets it', () => {
    const { status, stderr } = run('production', origins)
    expect(status).not.toBe(0)
    expect(stderr).toMatch(/sst secret set (RootKeys|OperatorKeySha256)/)
  })
})
