// Keeps the transitions that wait on a watch for its next snapshot: they ride on writes that are made anyway.
import type { Transition } from '../model.ts'
import { type Place, pack } from '../timeline.ts'
import { watchKey } from './keys.ts'
import { type Table, update } from './table.ts'

/** What others add is never folded, so it is bounded here. */
const mostWaiting = 12

/** What a look does to the transitions that wait: one is put in its place, or the first ones are in the snapshot now. */
export type Trail = { place?: Place; gone?: number }

/** The parts of an update expression that do it. Whoever adds one meanwhile adds to the end, so the places stay right. */
export function trailChange({ place, gone = 0 }: Trail): {
  set: string[]
  remove: string[]
  values: Record<string, unknown>
} {
  const remove = Array.from({ length: gone }, (_, at) => `#tail[${at}]`)
  if (place === undefined) return { set: [], remove, values: {} }
  if (place.at !== 'end') return { set: [`#tail[${place.at}] = :step`], remove, values: { step: place.text } }
  return { set: [appended], remove, values: { step: [place.text], empty: [] } }
}

const appended = '#tail = list_append(if_not_exists(#tail, :empty), :step)'

/**
 * Adds what was done to a task: that a client or a budget had it canceled, or wished it in vain. Needs no lease.
 * @returns false when the watch is gone, or too much waits on it already
 */
export async function addTransition(table: Table, watch: string, step: Transition): Promise<boolean> {
  const added = await update(
    table,
    watchKey(watch),
    `SET ${appended}`,
    { step: [pack(step)], empty: [], most: mostWaiting },
    'attribute_exists(#pk) AND (attribute_not_exists(#tail) OR size(#tail) < :most)',
  )
  return added.ok
}
