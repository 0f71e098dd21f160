// What every function has in common: run time, limits, environment and rights, all from the topology. Doors are named by string.
import { deadQueues, queues } from './queues.ts'
import { rootKeys } from './secrets.ts'
import { readSettings } from './settings.ts'
import { table, tableRights } from './table.ts'
import { type DoorName, doors, queues as statedQueues } from './topology.ts'

export const settings = readSettings(process.env, $app.stage)

type More = Pick<sst.aws.FunctionArgs, 'concurrency' | 'environment' | 'retries'>

/** The function of one door, reached by nobody yet. */
export function door(name: DoorName, label: string, more: More = {}): sst.aws.Function {
  const stated = doors[name]
  return new sst.aws.Function(label, {
    ...more,
    handler: stated.handler,
    runtime: 'nodejs24.x',
    architecture: 'arm64',
    timeout: `${stated.timeoutSeconds} seconds`,
    memory: `${stated.memoryMegabytes} MB`,
    nodejs: { minify: true },
    // Preflight requests are the doors' own business.
    url: stated.url && { cors: false },
    environment: { ...environmentOf(name), ...more.environment },
    permissions: rightsOf(name),
    transform: { role: onlyLambda },
  })
}

/** Settings as shared/config.ts reads them. A door without root keys says so, for missing ones are a fault. */
function environmentOf(name: DoorName): Record<string, $util.Input<string>> {
  return {
    ...settings.others,
    ...settings.origins,
    TABLE_NAME: table.name,
    LOOK_QUEUE_URL: queues.look.url,
    DELIVER_QUEUE_URL: queues.deliver.url,
    ...(doors[name].emptiesDead === true && {
      LOOK_DEAD_QUEUE_URL: deadQueues.look.url,
      DELIVER_DEAD_QUEUE_URL: deadQueues.deliver.url,
    }),
    ROOT_KEYS: doors[name].keys ? rootKeys.value : 'none',
  }
}

function rightsOf(name: DoorName): sst.aws.FunctionPermissionArgs[] {
  const { table: rights, sends, emptiesDead = false } = doors[name]
  const eats = (['look', 'deliver'] as const).filter(queue => statedQueues[queue].consumer === name)
  return [
    ...tableRights(rights),
    ...sends.map(queue => ({ actions: ['sqs:SendMessage'], resources: [queues[queue].arn] })),
    ...eats.map(queue => ({
      actions: [
        'sqs:ReceiveMessage',
        'sqs:DeleteMessage',
        'sqs:ChangeMessageVisibility',
        'sqs:GetQueueAttributes',
      ],
      resources: [queues[queue].arn],
    })),
    ...(emptiesDead
      ? [
          {
            actions: ['sqs:ReceiveMessage', 'sqs:DeleteMessage'],
            resources: [deadQueues.look.arn, deadQueues.deliver.arn],
          },
        ]
      : []),
  ]
}

/** SST 4.17 lets the whole account assume a function's role, for its live mode; nobody but Lambda needs to. */
const onlyLambda = (args: aws.iam.RoleArgs): undefined => {
  args.assumeRolePolicy = aws.iam.assumeRolePolicyForPrincipal({ Service: 'lambda.amazonaws.com' })
}
