// Judges the time budgets of a task whose agent cannot be called now: what is overdue is told all the same. Asks no agent.

import type { Watch } from './model.ts'
import { holdMs, leaseMs, startAfter } from './policy.ts'
import { audienceOf } from './publish.ts'
import { agentAlarmed, alarmAnew } from './raising.ts'
import { type Relay, within } from './relay.ts'
import { tell } from './saving.ts'
import { saveTimes } from './store/looks.ts'
import { leaseWatch, timeWatch } from './store/watches.ts'
import { sooner } from './timing.ts'
import { timesNow } from './tree.ts'

/** Goes by what the watch knows; its timer comes back when the next budget ends. A look under way does the same itself. */
export async function judgeTimes(world: Relay, watch: Watch): Promise<void> {
  const now = world.now()
  const audience = await audienceOf(world, watch)
  const trace = world.trace ?? audience.live.find(sub => sub.traceparent !== undefined)?.traceparent
  const relay = within(world, { trace })
  const { steps, saves, next } = await timesNow(relay, watch, audience.live, now)
  // A timer that fired may not be held yet. The hold knows of no budget, so it is set instead, and is then no tick's any more.
  const isFired = watch.due !== undefined && watch.due <= now
  const due = isFired && next !== undefined ? Math.min(next, now + holdMs(0)) : sooner(watch, next)
  // Who joins hears of what stands as well.
  const { steps: anew, ...told } = alarmAnew(watch, await agentAlarmed(relay, watch), audience)
  const owed = [...steps, ...anew]
  if (owed.length > 0) {
    const leased = await leaseWatch(relay.table, watch, {
      ...{ now, start: startAfter(watch, now), until: now + leaseMs },
    })
    const saved = leased && (await saveTimes(relay.table, leased, { ...saves, ...told }, owed))
    if (saved === undefined) return
    await tell(relay, saved, audience)
  }
  if (due !== undefined) await timeWatch(relay.table, watch.key, due, now)
}
