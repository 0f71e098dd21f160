// The one table, as the topology states it. Point-in-time recovery is on; in production it cannot be deleted by accident.
import { table as stated } from './topology.ts'

const { index } = stated

export const table = new sst.aws.Dynamo(stated.name, {
  fields: {
    [stated.hashKey]: 'string',
    [stated.rangeKey]: 'string',
    [index.hashKey]: 'string',
    [index.rangeKey]: 'number',
  },
  primaryIndex: { hashKey: stated.hashKey, rangeKey: stated.rangeKey },
  globalIndexes: {
    [index.name]: { hashKey: index.hashKey, rangeKey: index.rangeKey, projection: [...index.include] },
  },
  ttl: stated.ttl,
  deletionProtection: $app.stage === 'production',
  transform: {
    table: args => {
      args.pointInTimeRecovery = { enabled: true }
    },
  },
})

/** Everything that the store does with one item or one partition; there is no scan. */
export const tableRights: sst.aws.FunctionPermissionArgs[] = [
  {
    actions: [
      'dynamodb:GetItem',
      'dynamodb:PutItem',
      'dynamodb:UpdateItem',
      'dynamodb:DeleteItem',
      'dynamodb:Query',
    ],
    resources: [table.arn],
  },
  { actions: ['dynamodb:Query'], resources: [$interpolate`${table.arn}/index/${index.name}`] },
]
