// Keeps targets: webhooks with their sealed secrets and a generation that a dead address disables.
import type { Target } from '../model.ts'
import { targetKey } from './keys.ts'
import { get, put, remove, type Table, update } from './table.ts'

export const getTarget = (table: Table, tenant: string, target: string): Promise<Target | undefined> =>
  get<Target>(table, targetKey(tenant, target))

/** Puts a target where one of generation `before` stands, or none; false when it changed meanwhile. */
export async function putTarget(
  table: Table,
  target: Target,
  before: number | undefined,
  ttl?: number,
): Promise<boolean> {
  const { ok } = await put(
    table,
    { ...targetKey(target.tenant, target.target), ...target, ttl },
    before === undefined ? 'attribute_not_exists(#pk)' : '#generation = :before',
    { before },
  )
  return ok
}

/** Disables this generation only: an address that was replaced meanwhile stays in use. */
export async function disableTarget(
  table: Table,
  tenant: string,
  target: string,
  generation: number,
  reason: string,
): Promise<boolean> {
  const { ok } = await update<Target>(
    table,
    targetKey(tenant, target),
    'SET #status = :disabled, #reason = :reason',
    { disabled: 'disabled', reason, generation },
    '#generation = :generation',
  )
  return ok
}

export const removeTarget = (table: Table, tenant: string, target: string): Promise<boolean> =>
  remove(table, targetKey(tenant, target))
