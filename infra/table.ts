// The one table, as the topology states it. Point-in-time recovery is on; in production it cannot be deleted by accident.
import { table as stated, type TableRight } from './topology.ts'

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

/** Rights to the table and its index; there is none to scan. */
export function tableRights(rights: readonly TableRight[]): sst.aws.FunctionPermissionArgs[] {
  const actions = rights.filter(right => right !== 'Query index').map(right => `dynamodb:${right}`)
  const arn = $interpolate`${table.arn}/index/${index.name}`
  return [
    { actions, resources: [table.arn] },
    ...(rights.includes('Query index') ? [{ actions: ['dynamodb:Query'], resources: [arn] }] : []),
  ]
}
