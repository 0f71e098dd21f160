// Routes of a tenant's operational targets: who is told when an agent or a target fails.
import { Hono } from 'hono'
import * as z from 'zod'
import { invalidField, RouseError } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import type { Relay } from '../../shared/relay.ts'
import { getOperations, putOperations, removeOperations } from '../../shared/store/operations.ts'
import { getTarget } from '../../shared/store/targets.ts'
import { type Env, tenantOf } from './auth.ts'
import { Id, onlyQuery, readBody } from './input.ts'
import { isInline, seenTarget } from './targets.ts'

const OperationsRequest = z.strictObject({ targets: z.array(Id).min(1).max(limits.targetsOfOperations) })

export function operations(relay: Relay): Hono<Env> {
  const { table } = relay
  return new Hono<Env>()
    .put('/operations', async c => {
      const tenant = tenantOf(c.get('caller'), 'admin')
      const { targets } = await readBody(c, OperationsRequest)
      // An inline target ends with its own subscription.
      for (const [index, target] of targets.entries())
        if (isInline(target) || (await getTarget(table, tenant, target)) === undefined)
          throw invalidField(`/targets/${index}`, 'There is no such target')
      const kept = { targets: [...new Set(targets)] }
      await putOperations(table, tenant, kept)
      return c.json(kept)
    })
    .get('/operations', async c => {
      onlyQuery(c)
      const tenant = tenantOf(c.get('caller'), 'admin')
      const kept = await getOperations(table, tenant)
      if (kept === undefined) throw new RouseError('not_found')
      const standing = await Promise.all(kept.targets.map(target => standingOf(relay, tenant, target)))
      return c.json({ targets: kept.targets, standing })
    })
    .delete('/operations', async c => {
      onlyQuery(c)
      const tenant = tenantOf(c.get('caller'), 'admin')
      if ((await getOperations(table, tenant)) === undefined) throw new RouseError('not_found')
      await removeOperations(table, tenant)
      return c.body(null, 204)
    })
}

/** How one of them fares: nobody else would tell of an alarm that fails itself. `since` is when it began to. */
async function standingOf(relay: Relay, tenant: string, name: string) {
  const target = await getTarget(relay.table, tenant, name)
  if (target === undefined) return { target: name, status: 'gone' }
  const { status, reason, failures, failingSince, nextProbeAt, disabledAt } = await seenTarget(relay, target)
  return { target: name, status, reason, failures, since: disabledAt ?? failingSince, nextProbeAt }
}
