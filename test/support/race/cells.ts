// Items of a model's table: reads, and conditional writes of one item that the SDK may repeat, as shared/store/table.ts has them.
import type { Bed, Work } from './timeline.ts'

/** What cells stand on. */
export type Shelf = Bed & {
  /** Told of every timer that is set, so that whoever sweeps them comes. */
  onTimer: (due: number) => void
  rules: { countsOnce: boolean }
}

/** A place for one item. `req` marks the write that made it what it is. */
export type Cell<T> = { item: (T & { req: number }) | undefined }

export type Written<T> = { ok: boolean; item: T | undefined }

let marks = 0

/** Reads an item as it is when the call arrives. */
export function* read<T>(cell: Cell<T>): Work<T | undefined> {
  yield
  return cell.item
}

/**
 * Writes an item if the condition holds when the call arrives. Items are never changed in place.
 * The SDK's own second attempt finds the mark of the first, unless somebody wrote in between.
 * @returns what stands afterwards, or what stood in the way
 */
export function* write<T>(
  shelf: Shelf,
  cell: Cell<T>,
  when: (item: T | undefined) => boolean,
  change: (item: T | undefined) => T | undefined,
): Work<Written<T>> {
  marks += 1
  const req = marks
  const attempt = (): Written<T> => {
    const mine = cell.item?.req === req
    if ((mine && shelf.rules.countsOnce) || !when(cell.item)) {
      shelf.note(() => 'refused by its condition')
      return { ok: mine, item: cell.item }
    }
    const next = change(cell.item)
    shelf.note(() => `written: ${JSON.stringify(next)}`)
    cell.item = next && { ...next, req }
    if (hasTimer(next)) shelf.onTimer(next.due)
    return { ok: true, item: cell.item }
  }
  yield
  const first = attempt()
  if (!shelf.happens('lostAnswer')) return first
  yield shelf.chance.between(5, 1500)
  return attempt()
}

const hasTimer = (item: unknown): item is { due: number } =>
  typeof item === 'object' && item !== null && 'due' in item && typeof item.due === 'number'
