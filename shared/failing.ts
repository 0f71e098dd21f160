// What follows from a look that gave no task: it is recorded, and looked again, slower each time. Asks no agent itself.
import type { Failure } from './a2a/trouble.ts'
import { type Ask, idsOf, type Looked } from './asking.ts'
import type { Agent, Trouble, Watch } from './model.ts'
import { aheadTries, troubleMs } from './policy.ts'
import type { Audience } from './publish.ts'
import type { Relay } from './relay.ts'
import { dropWatch, leaveWatch, saveTrouble } from './store/watches.ts'
import { nextTimer, putOff } from './timing.ts'

/** Faults that asking again soon does not mend. */
const lastingTroubles: ReadonlySet<Trouble> = new Set([
  'not_found',
  'forbidden',
  'unauthorized',
  'wrong_task',
  'unreadable',
  'unsupported_version',
])

/** Settles a look that failed. */
export async function inTrouble(
  relay: Relay,
  watch: Watch,
  agent: Agent,
  audience: Audience,
  answer: Failure,
  ask: Ask,
): Promise<Looked> {
  const now = relay.now()
  const { trouble, detail } = answer
  const failures = (watch.failures ?? 0) + 1
  const afterMs = answer.retryAfterMs ?? troubleMs(failures)
  const lasting = lastingTroubles.has(trouble)
  relay.log({ step: 'look.failed', ...idsOf(watch), trouble, detail, failures })
  if (watch.subs.length === 0) {
    await dropWatch(relay.table, watch.key, watch.lookAt)
    return { kind: 'trouble', trouble, lasting, watched: false, afterMs }
  }
  if (
    lasting &&
    watch.rev === 0 &&
    failures > aheadTries &&
    audience.live.every(sub => sub.scope === 'agent')
  ) {
    // Pushed once and never seen: an agent-wide subscription does not wait for it for ever.
    for (const ref of watch.subs) await leaveWatch(relay.table, watch.key, ref, now)
    return { kind: 'dropped', why: trouble }
  }
  const fired = ask.fired === true
  await saveTrouble(relay.table, watch, {
    trouble,
    since: watch.troubleSince ?? now,
    failures,
    due: fired ? nextTimer(watch, agent, now, watch.changed, true) : undefined,
  })
  // One chain of repeats, whatever the number of pushes; past the longest delay the timer alone goes on.
  if ((watch.again <= now || ask.own === true) && (failures < 2 * aheadTries || agent.road === 'poll'))
    await putOff(relay, watch, { v: 1, kind: 'watch', watch: watch.key, looked: watch.looked }, afterMs)
  // The chain goes on for those who are on the watch; one that is not bound has only its push.
  return { kind: 'trouble', trouble, lasting, watched: ask.unbound === undefined, afterMs }
}
