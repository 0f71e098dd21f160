// Tells of a signed push that the agent's own answers contradict to the end: the push may be right, and so may they. Asks no agent.
import { isTerminal, type TaskState } from './a2a/task.ts'
import { idsOf } from './asking.ts'
import type { NoticeMessage } from './messages.ts'
import type { Notice, Watch } from './model.ts'
import { sendLook } from './queue.ts'
import type { Relay } from './relay.ts'
import { writeStep } from './steps.ts'
import { agentGroup } from './store/keys.ts'
import { getNotice } from './store/notices.ts'
import { getWatch, oweStep } from './store/watches.ts'

/** For how long after a push the agent may come to show what it named: longer than a replica lags. */
const disputeMs = 2 * 60_000

/**
 * True when a push and an answer cannot both be right, the push being the older: what ended stays so (A2A 1.0 section
 * 3.4). A question that was pushed may have been answered since, and a push of a state that goes on may be late.
 */
export const contradicts = (named: TaskState | undefined, shown: TaskState | undefined): boolean =>
  isTerminal(named) && shown !== undefined && shown !== named

/**
 * Settles what a push named that the last look did not show. Only one whose signature covers its body is disputed:
 * whoever sees a token can make others. A crash in between has the notice done again, and the dispute is owed once.
 * @returns true when it is too early to tell: another look was queued for then
 */
export async function isDisputable(relay: Relay, key: string, message: NoticeMessage): Promise<boolean> {
  const [notice, watch] = await Promise.all([
    message.notice === undefined ? undefined : getNotice(relay.table, message.notice),
    getWatch(relay.table, key),
  ])
  if (notice?.sha256 === undefined || watch === undefined) return false
  if (!contradicts(notice.state, watch.state)) return false
  const left = notice.at + disputeMs - relay.now()
  if (left <= 0 || isTerminal(watch.state)) {
    await dispute(relay, watch, notice)
    return false
  }
  // Without a mark: it is a look for this push alone, which begins no sooner than then.
  const { mark: _, ...again } = message
  await sendLook(
    relay.queues,
    agentGroup(watch.tenant, watch.agent),
    { ...again, at: notice.at + disputeMs },
    left,
  )
  return true
}

/** True for a push whose signature covers the end that it names: it is asked about until the agent says what the task is. */
export async function mayDispute(relay: Relay, message: NoticeMessage): Promise<boolean> {
  if (!isTerminal(message.state) || message.notice === undefined) return false
  return (await getNotice(relay.table, message.notice))?.sha256 !== undefined
}

/** Everybody on the task is told once for each state; who joined since, once a push of its own is disputed. */
async function dispute(
  relay: Relay,
  watch: Watch,
  { sub, state = 'unknown', at, sha256 = '' }: Notice,
): Promise<void> {
  const now = relay.now()
  const data = {
    pushedState: state,
    pushedAt: at,
    pushedSha256: sha256,
    lookedAt: watch.looked,
  }
  const owe = (disputed: string[], only?: string) =>
    oweStep(
      relay.table,
      watch.key,
      writeStep(watch, 'task.disputed', now, { data, ...(only !== undefined && { sub: only }) }),
      { due: now, disputed },
    )
  const markOf = (ref: string): string => `${state} ${ref}`
  const first = await owe([state, ...[...watch.subs, sub].map(markOf)])
  if (!first.ok) await owe([markOf(sub)], sub)
  // Whether this message owed it or one before: somebody has to tell it.
  await sendLook(relay.queues, agentGroup(watch.tenant, watch.agent), {
    v: 1,
    kind: 'watch',
    watch: watch.key,
  })
  relay.log({ step: 'task.disputed', level: 'error', ...idsOf(watch), pushed: state, state: watch.state })
}
