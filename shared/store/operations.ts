// Keeps which of a tenant's targets are told how its agents, targets and subscriptions fare.
import { operationsKey } from './keys.ts'
import { get, put, remove, type Table } from './table.ts'

type Operations = { targets: string[] }

export const getOperations = (table: Table, tenant: string): Promise<Operations | undefined> =>
  get<Operations>(table, operationsKey(tenant))

/** Puts the list as a whole; of two who put one at once the later stands. */
export const putOperations = (table: Table, tenant: string, operations: Operations) =>
  put(table, { ...operationsKey(tenant), ...operations })

export const removeOperations = (table: Table, tenant: string): Promise<boolean> =>
  remove(table, operationsKey(tenant))
