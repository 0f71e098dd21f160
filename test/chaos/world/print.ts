// Prints the outcome of a run as one table. Pure.
import type { Rule, Violation } from './judge.ts'
import type { Figures } from './run.ts'

const says: Record<Rule, string> = {
  lost: 'states that did not arrive',
  late: 'pushed news that came late in a calm',
  wrong: 'states that never were, or not in that order',
  twice: 'revisions told under two ids',
  again: 'ids that came again in a calm',
  skipped: 'entries that a cursor stepped over',
  deleted: 'told although the subscription was deleted',
  unsaid: 'alarms and cancellations that did not come',
  stuck: 'left leased, due, queued or dead',
}

export function tableOf(figures: Figures, violations: readonly Violation[], waves: number): string {
  const count = (rule: string): number => violations.filter(violation => violation.rule === rule).length
  const rows: [what: string, count: number][] = [
    ['waves', waves],
    ['tasks', figures.tasks],
    ['subscriptions', figures.subscriptions],
    ['subscriptions deleted under way', figures.deletions],
    ['tasks canceled for a budget', figures.canceled],
    ['events at the agents', figures.events],
    ['pushes sent', figures.pushes],
    ['looks (GetTask)', figures.looks],
    ['webhooks received', figures.webhooks],
    ['inbox entries read', figures.entries],
    ['of these of lost tasks and refused credentials', figures.alarms],
    ['processes killed', figures.kills],
    ['calls throttled', figures.throttled],
    ['answers lost', figures.unheard],
    ['messages doubled', figures.doubled],
    ['messages delayed', figures.delayed],
    ['webhooks repeated under their id', figures.repeats],
    ['calm waves too slow to be timed', figures.strained],
    ...Object.entries(says).map(([rule, meaning]): [string, number] => [`${rule}: ${meaning}`, count(rule)]),
  ]
  const width = Math.max(...rows.map(([what]) => what.length))
  return rows.map(([what, number]) => `${what.padEnd(width)} ${String(number).padStart(8)}`).join('\n')
}

/** What a run shows: nothing if nothing happened in it, or nobody died. */
export function outcomeOf(
  { events, kills }: Pick<Figures, 'events' | 'kills'>,
  violations: readonly Violation[],
): { says: string; holds: boolean } {
  if (violations.length > 0) return { says: `${violations.length} promises were broken`, holds: false }
  if (events === 0) return { says: 'no event was played, so nothing was shown', holds: false }
  if (kills === 0) return { says: 'no process was killed, so too little was shown', holds: false }
  return { says: 'every promise held', holds: true }
}
