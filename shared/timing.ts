// When a watched task is looked at next: by its timer, by the queue's own delay, or by a message that was put off. Asks no agent.
import type { NoticeMessage, WatchMessage } from './messages.ts'
import type { Agent, Watch } from './model.ts'
import { floorMs, pollMs } from './policy.ts'
import { longestDelayMs, sendLook } from './queue.ts'
import type { Relay } from './relay.ts'
import { agentGroup } from './store/keys.ts'
import { markAgain } from './store/watches.ts'

/** The timer moves earlier at once, later only when it fired; undefined leaves it. */
export function nextTimer(
  watch: Watch,
  agent: Agent,
  now: number,
  changed: number,
  fired: boolean,
): number | undefined {
  const silence = now - changed
  const after =
    agent.road === 'poll' ? 2 * pollMs(silence) + 5 * 60_000 : floorMs(silence, agent.floorSeconds)
  const next = now + after
  return fired || (watch.due !== undefined && next < watch.due) ? next : undefined
}

/** The poll road rides on the queue's own delay; the timer is only its backstop. */
export const pollAgain = (relay: Relay, watch: Watch, silence: number): Promise<void> =>
  sendLook(
    relay.queues,
    agentGroup(watch.tenant, watch.agent),
    { v: 1, kind: 'watch', watch: watch.key, looked: watch.looked },
    pollMs(silence),
  )

/** Queues a message for later, then marks that a look will come: the other way round a crash would lose it. */
export async function putOff(
  relay: Relay,
  watch: Watch,
  message: NoticeMessage | WatchMessage,
  delayMs: number,
): Promise<void> {
  const wholeMs = Math.ceil(Math.min(delayMs, longestDelayMs) / 1000) * 1000
  const mark = relay.now() + wholeMs
  await sendLook(relay.queues, agentGroup(watch.tenant, watch.agent), { ...message, mark }, wholeMs)
  await markAgain(relay.table, watch.key, mark)
}
