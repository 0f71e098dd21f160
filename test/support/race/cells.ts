// Items of a model's table: reads, and conditional writes of one item that the SDK may repeat, as shared/store/table.ts has them.
import type { Bed, Work } from './timeline.ts'

/** What cells stand on: `onTimer` is told of every timer that is set, so that whoever sweeps them comes. */
export type Shelf = Bed & { onTimer: (due: number) => void }

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
 * @returns what stands afterwards, or what stood in the way; a condition that our own first attempt broke is kept
 */
export function* write<T>(
  shelf: Shelf,
  cell: Cell<T>,
  when: (item: (T & { req: number }) | undefined, req: number) => boolean,
  change: (item: T | undefined) => T | undefined,
): Work<Written<T>> {
  marks += 1
  const req = marks
  const attempt = (): Written<T> => {
    if (!when(cell.item, req)) {
      shelf.note(() => 'refused by its condition')
      return { ok: cell.item?.req === req, item: cell.item }
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
