// Counts what a tenant has against its stated limits, so that a loop in a client cannot fill the table.
import { type Counted, tenantLimits } from '../limits.ts'
import { quotaKey } from './keys.ts'
import { type Table, update } from './table.ts'

/** Counts one more; false at the limit. A crash before the thing was made leaves it counted: the limit errs on the low side. */
export async function takeOne(table: Table, tenant: string, counted: Counted): Promise<boolean> {
  const { ok } = await update(
    table,
    quotaKey(tenant),
    `ADD #${counted} :one`,
    { one: 1, limit: tenantLimits[counted] },
    `attribute_not_exists(#${counted}) OR #${counted} < :limit`,
  )
  return ok
}

/** Counts one less. */
export const giveBack = (table: Table, tenant: string, counted: Counted) =>
  update(table, quotaKey(tenant), `ADD #${counted} :less`, { less: -1, zero: 0 }, `#${counted} > :zero`)
