// What is wished of a task that is still to be canceled: a client's word, or budgets that ran out. Pure: time is an argument.
import type { Cancel, Subscription, Watch } from './model.ts'

/** The part of a watch that says who wants it canceled: a client, and budgets. Both are kept: either may go first. */
export type Wishes = Pick<Watch, 'cancel' | 'overdueCancel'>

/** The wish to cancel a task, if one still stands: that of budgets goes with the last of their subscriptions. */
export function standingOf(
  { cancel, overdueCancel }: Wishes,
  live: readonly Subscription[],
): Cancel | undefined {
  if (cancel !== undefined) return cancel
  const owners = overdueCancel?.subscriptions ?? []
  return live.some(({ id }) => owners.includes(id)) ? overdueCancel : undefined
}

/** The same, once its time has come: an agent that would not do it is not asked by each look. */
export function wishOf(wishes: Wishes, live: readonly Subscription[], now: number): Cancel | undefined {
  const standing = standingOf(wishes, live)
  return (standing?.notBefore ?? 0) > now ? undefined : standing
}

/**
 * What is wished once a look is over.
 * @param outcome what came of the wish that it tried, if it did: an answer to one answers all
 */
export function wishesAfter(
  { cancel, overdueCancel }: Wishes,
  live: readonly Subscription[],
  outcome: { again?: Cancel } | undefined,
): Wishes {
  if (outcome !== undefined && outcome.again === undefined) return {}
  const again = outcome?.again
  const client = again?.by === 'client' ? again : cancel
  const budgets = again?.by === 'policy' ? again : overdueCancel
  const stands = budgets && standingOf({ overdueCancel: budgets }, live)
  return { ...(client && { cancel: client }), ...(stands && { overdueCancel: stands }) }
}

/** A watch with these wishes, and no others. */
export function wishing<T extends Wishes>(watch: T, wishes: Wishes): Omit<T, keyof Wishes> & Wishes {
  const { cancel: _, overdueCancel: __, ...rest } = watch
  return { ...rest, ...wishes }
}
