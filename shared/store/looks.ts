// What a look saves of a task: always under the lease that it was begun with, so that of two that overlap one is lost whole.
import type { TaskState } from '../a2a/task.ts'
import type { Lasting, Tried, Trouble, Watch } from '../model.ts'
import type { Wishes } from '../wishes.ts'
import { watchKey } from './keys.ts'
import { type Table, update } from './table.ts'
import { type Trail, trailChange } from './tails.ts'
import { alarmed, keptSeconds, read, type Stored, troubled } from './watches.ts'

/** What a look that saw the task saves. Fields left out stay as they are. */
export type Seen = Pick<Watch, 'digest' | 'ring' | 'rev' | 'changed' | 'woken' | 'looked' | 'lease'> &
  Partial<
    Pick<
      Watch,
      | 'news'
      | 'stamp'
      | 'restamp'
      | 'restampSince'
      | 'anew'
      | 'works'
      | 'snap'
      | 'backSince'
      | 'expired'
      | 'restored'
    >
  > & {
    state?: TaskState
    served?: Watch['served'] | undefined
    contextId?: string
    due?: number
    tooLarge?: boolean
    /** What becomes of the transitions that wait. */
    trail?: Trail
  } & Pick<Watch, 'overdue' | 'refusedAt'> &
  Wishes

/** Adds steps to what is owed, in the write that makes them true: a crash can lose neither without the other. */
const owing = (steps: string[]): string => (steps.length > 0 ? ' ADD #owed :steps' : '')
const removing = (names: string[]): string =>
  names.length > 0 ? ` REMOVE ${names.map(name => `#${name}`).join(', ')}` : ''
const owedValues = (steps: string[]) => (steps.length > 0 ? { steps: new Set(steps) } : {})

/**
 * Saves a look under its lease; undefined when the lease was lost to another.
 * @param with.steps what became true with it, see steps.ts
 * @param with.told who joined, and has heard with it all that there is to hear
 */
export async function saveLook(
  table: Table,
  watch: Watch,
  seen: Seen,
  { steps = [], told = [] }: { steps?: string[]; told?: string[] } = {},
): Promise<Watch | undefined> {
  const { trail = {}, ...facts } = seen
  const tail = trailChange(trail)
  const present = Object.entries({ ...facts, holds: 0 }).filter(([, value]) => value !== undefined)
  // What was told of a trouble is taken back by what is known of the task: an older answer is not that.
  const stands = seen.backSince !== undefined && isTold(watch)
  const kept = new Set([...present.map(([name]) => name), ...(stands ? alarmed : [])])
  const taken = troubled.filter(name => !kept.has(name))
  const gone = [
    ...taken,
    ...(seen.backSince === undefined ? ['backSince'] : []),
    ...(seen.tooLarge === undefined ? ['tooLarge'] : []),
    ...(seen.served === undefined && watch.served !== undefined ? ['served'] : []),
    ...(seen.restamp === undefined ? ['restamp', 'restampSince'] : []),
    ...(seen.anew === undefined ? ['anew'] : []),
    ...withdrawn(watch, seen),
  ]
  const saved = await update<Stored>(
    table,
    watchKey(watch.key),
    `SET ${[...present.map(([name]) => `#${name} = :${name}`), ...tail.set].join(', ')} REMOVE ${[...gone.map(name => `#${name}`), ...tail.remove].join(', ')}${owing(steps)}${told.length > 0 ? ' DELETE #fresh :told' : ''}`,
    {
      ...Object.fromEntries(present),
      ...tail.values,
      ...owedValues(steps),
      ...(told.length > 0 && { told: new Set(told) }),
      start: watch.lookAt,
    },
    '#lookAt = :start',
  )
  return saved.ok && saved.item ? read(watch.key, saved.item) : undefined
}

const isTold = ({ alarms, expired = [], restored = [] }: Watch): boolean =>
  alarms !== undefined || expired.some(name => !restored.includes(name))

/** Wishes that no longer stand: only those that this look knew of, for another may have been made meanwhile. */
const withdrawn = (watch: Wishes, saved: Wishes) =>
  (['cancel', 'overdueCancel'] as const).filter(
    name => watch[name] !== undefined && saved[name] === undefined,
  )

/** What a look that gave no task saves. */
export type Fault = Pick<Watch, 'overdue' | 'refusedAt' | 'alarms' | 'raised' | 'restored'> &
  Wishes & {
    trouble: Trouble
    troubleSince: number
    failures: number
    lasting?: Lasting | undefined
    due?: number | undefined
    expired?: string[] | undefined
    tried?: Tried[]
  }

/**
 * Saves why a look gave no task. Such a look does not count as one that completed. Its lease ends, unless steps became
 * true with it: those are still to be told under it.
 */
export async function saveTrouble(
  table: Table,
  watch: Watch,
  fault: Fault,
  steps: string[] = [],
): Promise<Watch | undefined> {
  const lease = steps.length > 0 ? watch.lease : 0
  return saveFacts(table, watch, { ...fault, lease }, steps, withdrawn(watch, fault))
}

/**
 * Saves what the time alone made true of a task that was not asked for. Its lease goes on: the steps are told under it.
 * Undefined when it was lost to another.
 */
export async function saveTimes(
  table: Table,
  watch: Watch,
  saves: Pick<Watch, 'overdue' | 'overdueCancel' | 'alarms'>,
  steps: string[],
): Promise<Watch | undefined> {
  return saveFacts(table, watch, { ...saves, lease: watch.lease }, steps)
}

/** Sets what is given, under the lease that the watch was read with. */
async function saveFacts(
  table: Table,
  watch: Watch,
  facts: (Fault | Parameters<typeof saveTimes>[2]) & { lease: number },
  steps: string[],
  gone: string[] = [],
): Promise<Watch | undefined> {
  const present = Object.entries(facts).filter(([, value]) => value !== undefined)
  const saved = await update<Stored>(
    table,
    watchKey(watch.key),
    `SET ${present.map(([name]) => `#${name} = :${name}`).join(', ')}${removing(gone)}${owing(steps)}`,
    { ...Object.fromEntries(present), ...owedValues(steps), start: watch.lookAt },
    '#lookAt = :start',
  )
  return saved.ok && saved.item ? read(watch.key, saved.item) : undefined
}

/**
 * Marks a revision as published and ends the lease. The timer of an ended task goes only here, and only when everybody
 * on the watch was told and nothing is owed, so that whatever is unpublished is found again.
 * @param done who was told now, and which steps; `over` if the task ended, and `next` if it is to be judged once more: then
 *   the timer is set to that instead
 */
export async function publishedWatch(
  table: Table,
  watch: Watch,
  done: { told: string[]; steps: string[]; over: boolean; now: number; next?: number | undefined },
): Promise<boolean> {
  const values = {
    rev: watch.rev,
    zero: 0,
    start: watch.lookAt,
    ttl: Math.ceil(done.now / 1000) + keptSeconds,
    ...(done.told.length > 0 && { told: new Set(done.told) }),
    ...owedValues(done.steps),
  }
  const less = [
    ...(done.told.length > 0 ? ['#fresh :told'] : []),
    ...(done.steps.length > 0 ? ['#owed :steps'] : []),
  ]
  const forget = less.length > 0 ? `DELETE ${less.join(', ')}` : ''
  const mine = '#lookAt = :start AND #rev = :rev'
  if (done.over) {
    const nothingLeft = (set: string, told: string, some: boolean): string =>
      some ? `(attribute_not_exists(${set}) OR ${set} = ${told})` : `attribute_not_exists(${set})`
    const everybody = `${nothingLeft('#fresh', ':told', done.told.length > 0)} AND ${nothingLeft('#owed', ':steps', done.steps.length > 0)}`
    const { next } = done
    const timer = next === undefined ? 'REMOVE #slot, #due' : ', #due = :next'
    const change = `SET #woken = :rev, #lease = :zero, #ttl = :ttl ${timer} ${forget}`
    const all = { ...values, ...(next !== undefined && { next }) }
    const ended = await update<Stored>(table, watchKey(watch.key), change, all, `${mine} AND ${everybody}`)
    if (ended.ok) return true
  }
  // Somebody joined meanwhile, or another step is owed: the timer stays for that.
  const change = `SET #woken = :rev, #lease = :zero ${forget}`
  return (await update<Stored>(table, watchKey(watch.key), change, values, mine)).ok
}
