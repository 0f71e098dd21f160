// Says what a look that saw a task takes back of what was told of its troubles, and to whom. Pure: time is an argument.
import { eventType, type TaskState } from './a2a/task.ts'
import type { Agent, Subscription, Watch } from './model.ts'
import { type compare, wants } from './policy.ts'
import { credentialsOf, type Try } from './refusals.ts'
import { writeStep } from './steps.ts'

/** What is known of the task with this look. */
type Seen = {
  change: ReturnType<typeof compare>['change']
  isNew: boolean
  rev: number
  state: TaskState | undefined
  changed: number
}

/** What is told now, and who still counts as told that its credentials ran out. */
type Restored = Pick<Watch, 'expired' | 'restored'> & { steps: string[] }

/**
 * Whoever was told that the task is lost hears of the state again, also if it did not ask for that state, and whoever was
 * told that its credentials ran out if it did; nobody else does. Credentials that ran out still count as told until they
 * serve, or others are given: it may be another's that saw the task. An older answer takes nothing back.
 * @param fresh refs of those that joined and were told nothing yet
 * @param tries what the look came to with the credentials of each
 */
export function restore(
  watch: Watch,
  agent: Agent,
  { live, fresh }: { live: readonly Subscription[]; fresh: readonly string[] },
  tries: readonly Try[],
  { change, isNew, rev, state, changed }: Seen,
  now: number,
): Restored {
  const { alarms = {}, expired = [], restored = [] } = watch
  if (change === 'back' || state === undefined) return { steps: [], ...named(expired, restored) }
  const wasLost = ({ ref }: Subscription) => alarms[ref] !== undefined && !fresh.includes(ref)
  const ranOut = ({ ref }: Subscription) =>
    expired.some(name => name.startsWith(`${ref} `) && !restored.includes(name))
  // A new state became so once, whoever is told of it.
  const at = isNew ? changed : now
  const steps = live
    .filter(sub => (wants(sub, state) ? !isNew && (wasLost(sub) || ranOut(sub)) : wasLost(sub)))
    .map(({ ref }) => writeStep({ rev, state }, eventType(state), at, { sub: ref }))
  const stands = (sub: Subscription) => !tries.some(({ own, answer }) => own === sub && answer.ok)
  const left = live.filter(stands).map(sub => credentialsOf(agent, sub))
  const kept = expired.filter(name => left.includes(name))
  return { steps, ...named(kept, kept) }
}

const named = (expired: string[], restored: string[]): Pick<Watch, 'expired' | 'restored'> => ({
  ...(expired.length > 0 && { expired }),
  ...(restored.length > 0 && { restored }),
})
