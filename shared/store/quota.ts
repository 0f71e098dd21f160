// Counts what a tenant has against its stated limits, so that a loop in a client cannot fill the table.
import { type Counted, tenantLimits } from '../limits.ts'
import { quotaKey } from './keys.ts'
import { type Table, update } from './table.ts'

const daySeconds = 24 * 60 * 60

/** Subscriptions are counted by day (UTC), everything else as long as it lives. */
const periodOf = (counted: Counted, nowMs: number): number | undefined =>
  counted === 'subscriptions' ? Math.floor(nowMs / 1000 / daySeconds) : undefined

/**
 * Counts one more; false at the limit. A crash before the thing was made leaves it counted: the limit errs on the low
 * side.
 */
export async function takeOne(
  table: Table,
  tenant: string,
  counted: Counted,
  nowMs: number,
): Promise<boolean> {
  const day = periodOf(counted, nowMs)
  const { ok } = await update(
    table,
    quotaKey(tenant, counted, day),
    `${day === undefined ? '' : 'SET #ttl = :ttl '}ADD #count :one`,
    { one: 1, limit: tenantLimits[counted], ttl: ((day ?? 0) + 3) * daySeconds },
    'attribute_not_exists(#count) OR #count < :limit',
  )
  return ok
}

/** Counts one less: what was counted is gone, or was never made. */
export const giveBack = (table: Table, tenant: string, counted: Counted, nowMs: number) =>
  update(
    table,
    quotaKey(tenant, counted, periodOf(counted, nowMs)),
    'ADD #count :less',
    { less: -1, zero: 0 },
    '#count > :zero',
  )
