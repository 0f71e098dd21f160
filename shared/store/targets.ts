// Keeps targets: webhooks with their sealed secrets and a generation that a dead address disables.
import type { Target } from '../telling.ts'
import { targetKey } from './keys.ts'
import { get, put, remove, type Table, update } from './table.ts'

export const getTarget = (table: Table, tenant: string, target: string): Promise<Target | undefined> =>
  get<Target>(table, targetKey(tenant, target))

/** Puts a target where `before` stands, or none; false when it, or its secret, changed meanwhile. */
export async function putTarget(
  table: Table,
  target: Target,
  before: Pick<Target, 'generation' | 'secretGeneration'> | undefined,
  ttl?: number,
): Promise<boolean> {
  const { ok } = await put(
    table,
    { ...targetKey(target.tenant, target.target), ...target, ttl },
    before === undefined
      ? 'attribute_not_exists(#pk)'
      : '#generation = :generation AND #secretGeneration = :secretGeneration',
    { ...before },
  )
  return ok
}

/** Sets how much a target takes and nothing else; of two who do the later stands. @returns undefined when it is gone */
export async function limitTarget(
  table: Table,
  { tenant, target, generation }: Target,
  limits: Pick<Target, 'maxConcurrency' | 'ratePerSecond'>,
): Promise<Target | undefined> {
  const names = ['maxConcurrency', 'ratePerSecond'] as const
  const [set, gone] = [
    names.filter(name => limits[name] !== undefined),
    names.filter(name => limits[name] === undefined),
  ]
  const written = await update<Target>(
    table,
    targetKey(tenant, target),
    [
      set.length > 0 ? `SET ${set.map(name => `#${name} = :${name}`).join(', ')}` : '',
      gone.length > 0 ? `REMOVE ${gone.map(name => `#${name}`).join(', ')}` : '',
    ].join(' '),
    { ...limits, generation },
    '#generation = :generation',
  )
  return written.ok ? written.item : undefined
}

/** Replaces the secret after the one that is named: of two who replace the same, or one who asks twice, one does. */
export const rotateTarget = (
  table: Table,
  { tenant, target, secretGeneration: seen }: Target,
  next: Pick<Target, 'secret' | 'secretGeneration' | 'retiring'>,
) =>
  update<Target>(
    table,
    targetKey(tenant, target),
    'SET #secret = :secret, #secretGeneration = :secretGeneration, #retiring = :retiring',
    { ...next, seen },
    '#secretGeneration = :seen',
  )

/** Lets a disabled target be called again, as its next generation. @returns undefined when it changed meanwhile */
export async function enableTarget(
  table: Table,
  { tenant, target, generation: seen }: Target,
  generation: number,
): Promise<Target | undefined> {
  const written = await update<Target>(
    table,
    targetKey(tenant, target),
    'SET #status = :active, #generation = :generation REMOVE #reason, #disabledAt',
    { active: 'active', disabled: 'disabled', generation, seen },
    '#generation = :seen AND #status = :disabled',
  )
  return written.ok ? written.item : undefined
}

/** Disables this generation only: an address that was replaced meanwhile stays in use. */
export async function disableTarget(
  table: Table,
  tenant: string,
  target: string,
  generation: number,
  at: { reason: string; now: number },
): Promise<boolean> {
  const { ok } = await update<Target>(
    table,
    targetKey(tenant, target),
    'SET #status = :disabled, #reason = :reason, #disabledAt = if_not_exists(#disabledAt, :now)',
    { ...at, disabled: 'disabled', generation },
    '#generation = :generation',
  )
  return ok
}

export const removeTarget = (table: Table, tenant: string, target: string): Promise<boolean> =>
  remove(table, targetKey(tenant, target))
