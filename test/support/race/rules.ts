// The rules that the doors keep, each by the change of their text that breaks it, so that a run without it shows what it is for.

/** A text that stands once in a file, and what stands there while the rule is off. */
export type Break = { file: string; from: string | RegExp; to: string }

const of =
  (file: string) =>
  (from: string | RegExp, to: string): Break => ({ file, from, to })

const accepting = of('shared/accepting.ts')
const breaker = of('shared/breaker.ts')
const calls = of('shared/store/calls.ts')
const inbox = of('shared/store/inbox.ts')
const looks = of('shared/store/looks.ts')
const look = of('functions/look.ts')
const policy = of('shared/policy.ts')
const publishing = of('shared/publish.ts')
const saving = of('shared/saving.ts')
const table = of('shared/store/table.ts')
const tick = of('functions/tick.ts')
const turns = of('shared/turns.ts')
const watches = of('shared/store/watches.ts')
const watching = of('shared/watching.ts')

/** A page of the tick's holds so few entries here that runs have several. */
export const scale: readonly Break[] = [tick('const pageSize = 100', 'const pageSize = 2')]

const isEnd = "['completed', 'failed', 'canceled', 'rejected'].includes"

/** Every rule says what holds while it is on. */
export const breaks = {
  /** A push needs no look once one that completed started a window after it; one that merely started would not do. */
  completed: [policy('watch.looked >= cause.at + windowMs', 'watch.lookAt >= cause.at + windowMs')],
  /** A revision is marked as published once its entries and wakes are queued, not before. */
  queueFirst: [
    saving(
      'export async function tell(relay: Relay, watch: Watch, audience: Audience, next?: number): Promise<void> {',
      `export async function tell(relay: Relay, watch: Watch, audience: Audience, next?: number): Promise<void> {
         await mark(relay, watch, audience, next)
         await publish(relay, watch, audience)
       }
       async function mark(relay: Relay, watch: Watch, audience: Audience, next?: number, publish = async (..._: unknown[]) => {}) {`,
    ),
  ],
  /** An inbox entry stands before the wake that hints at it is queued. */
  entryFirst: [
    publishing('const seq = await enter(', 'const seq = undefined; const late = () => enter('),
    publishing(/(for \(const target of sub\.targets\) await wake\(.*\))/, '$1; await late()'),
  ],
  /** The record that marks a push as seen has a timer until it is settled. */
  noticeTimers: [
    accepting('const timer = isNews(state) || sub.taskId === undefined', 'const timer = false'),
    accepting('if (!timer) await keepTimed', 'if (timer) await keepTimed'),
  ],
  /** A look has the task to itself, and saves only if nobody took that from it. */
  fence: [
    watches("'#lookAt = :seen AND #lease < :now'", "'attribute_exists(#pk)'"),
    looks(/(start: watch\.lookAt,\n\s*},\n\s*)'#lookAt = :start'/, "$1'attribute_exists(#pk)'"),
    policy('return now < watch.lease ? windowMs : 0', 'return 0'),
  ],
  /** A lease lasts longer than whoever holds it can. */
  outlives: [policy('export const leaseMs = 32 * second', 'export const leaseMs = 25 * second')],
  /** What a look finds unpublished it publishes before anything else. */
  publishFirst: [policy(/watch\.rev > watch\.woken \|\|/, '')],
  /** The timer of an ended task goes only with the write that marks it published. */
  timerStays: [
    looks(
      'const gone = [',
      `const gone = [...(seen.due === undefined && ${isEnd}(String(seen.state)) ? ['slot', 'due'] : []),`,
    ),
  ],
  /** A look is repeated while the agent does not show the news that a push named. */
  patience: [look('patient: (message.tries ?? 0) < aheadTries', 'patient: false')],
  /** Pushes that wait for the agent to show what they named share each other's looks. */
  sharesLooks: [
    look('tries: tries + 1, at: relay.now() }', 'tries: tries + 1 }'),
    watching('isSettled(watch, covered(', '!ahead && isSettled(watch, covered('),
  ],
  /** An answer that was seen before and left is an older replica's. */
  ring: [policy('watch.ring.includes(exact)', 'false')],
  /** So is one whose own time is before that of what is known. */
  stamps: [policy('isBefore(task.timestamp, watch.stamp)', 'false')],
  /** A step back is looked at again once it can no longer be a replica's. */
  backSoon: [saving("change === 'back' ? now : changed", 'changed')],
  /** What is known stays: a state is replaced only by a newer one. */
  endStays: [saving('state: isNew ? task.state', "state: change !== 'back' ? task.state")],
  /** Only who was told counts as told, though others joined meanwhile. */
  joiners: [saving('watch.fresh.filter(ref => heard.has(ref))', 'watch.fresh')],
  /** The look for a late subscriber waits its turn though the task ended. */
  lateWaits: [look('if (isOver(watch) ||', `if (${isEnd}(String(watch.state)) ||`)],
  /** The push of an unbound subscription is settled by a look of its own only, for that one binds it. */
  unboundLooks: [
    watching('const binds = ask.unbound !== undefined', 'const binds = false'),
    policy('(unbound === undefined || watch.againFor === unbound)', 'true'),
  ],
  /** The SDK's own retry takes no second number of an inbox: a gap would hide the entry from who was just woken. */
  countsOnce: [table('OR #req <> :req)', 'OR #req = #req)')],
  /** A gap in an inbox is as old as the number that was taken last before it ended, not as the entry behind it. */
  gapsAge: [inbox('...entry, seq, before, ttl', '...entry, seq, before: taken, ttl')],
  /** A look that has to wait is put off, not dropped. */
  trailing: [
    look(
      'return later(relay, watch, message, trailingMs(looked.ms, message))',
      "return trailingMs(looked.ms, message) > 0 ? 'done' : later(relay, watch, message, 0)",
    ),
  ],
  /** A trailing look does not ride along on its own mark: clocks differ. */
  marks: [look('mark !== undefined && mark === watch.again', 'mark === -1')],
  /** An agent is called so many times at once, whoever asks. */
  cap: [breaker('}): number => maxConcurrentCalls', '}): number => maxConcurrentCalls + 9')],
  /** An agent that answers nobody is left alone for a while. */
  leavesAlone: [breaker('failures >= openAfter.failures &&', 'failures < 0 &&')],
  /** After that while one call tries it, for all. */
  oneProbe: [
    calls(
      "despite ? mayCall : 'attribute_not_exists(#openUntil)',",
      "'(attribute_not_exists(#openUntil) OR #openUntil < :now)',",
    ),
  ],
  /** Once a probe was answered all may call again. */
  closes: [turns('await closeBreaker(relay.table, agent, until)', '{ ok: false, old: calls }')],
} as const satisfies Record<string, readonly Break[]>

export type Rule = keyof typeof breaks

/** A text with every break made. @throws Error when the code has changed and a break finds nothing to break */
export function changed(text: string, all: readonly Break[]): string {
  let next = text
  for (const { file, from, to } of all) {
    const place = typeof from === 'string' ? from : from.exec(next)?.[0]
    if (place === undefined || next.split(place).length !== 2)
      throw new Error(`${file} does not hold once what is replaced while a rule is off: ${from}`)
    next = typeof from === 'string' ? next.replace(from, () => to) : next.replace(from, to)
  }
  return next
}
