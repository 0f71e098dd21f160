// The story of a task: each transition, packed small while it waits on the watch, merged into the snapshot's story, oldest folded into counts. Pure.
import type { Earlier, Story, Transition } from './model.ts'

/** Transitions told one by one, and how much room all of them may take in characters; older ones are counted. */
const mostTold = 50
const mostRoom = 8000
/** Transitions of looks that wait on the watch; more fold into the last. It is written at every look, so it stays small. */
const mostWaiting = 3

/**
 * When the agent dates a state, how long it took to reach us.
 * @param timestamp the agent's own, ISO 8601; one that is unset (Go's zero, the epoch) says nothing
 * @returns ms, negative when the agent's clock is ahead of ours
 */
export function delayOf(timestamp: string | undefined, now: number): number | undefined {
  const dated = Date.parse(timestamp ?? '')
  return dated > 0 ? now - dated : undefined
}

/** Writes a transition as short text: what each has by its place, what few have by a letter. */
export function pack({ at, source, from, to, rev, delay, ...more }: Transition): string {
  const { note, folded, since, works } = more
  const measured = works && [works.count, works.bytes, ...(works.changed ? [works.changed] : [])]
  const rare = { n: note, f: folded, s: since, w: measured }
  const isUsual = Object.values(rare).every(part => part === undefined)
  const parts = [at, source, from, to, rev, delay, isUsual ? undefined : rare]
  return JSON.stringify(parts.slice(0, parts.findLastIndex(part => part !== undefined) + 1))
}

/** Reads what {@link pack} wrote. */
export function unpack(text: string): Transition {
  const [at, source, from, to, rev, delay, { n: note, f: folded, s: since, w } = {}] = JSON.parse(text)
  const [count, bytes, changed] = w ?? []
  const works = w && { count, bytes, ...(changed && { changed }) }
  const parts = Object.entries({ from, to, delay, note, folded, since, works })
  return {
    ...{ at, source, rev },
    ...Object.fromEntries(parts.filter(([, part]) => part !== null && part !== undefined)),
  }
}

/** Where a transition goes among those that wait on a watch: to the end, or in the place of one that it takes up. */
export type Place = { at: number | 'end'; text: string }

/**
 * Finds the place of a look's transition. Of a state that goes on, one change folds into the one before, and so does
 * everything once there are many; what has a note stays as it is.
 */
export function placeFor(waiting: readonly string[], step: Transition): Place {
  const at = waiting.findLastIndex(text => unpack(text).note === undefined)
  const last = at < 0 ? undefined : unpack(waiting[at] ?? '')
  const alike =
    last?.source === step.source && [last.from, last.to, step.from].every(state => state === step.to)
  if (last === undefined || !(alike || waiting.length >= mostWaiting)) return { at: 'end', text: pack(step) }
  return { at, text: pack(fold(last, step)) }
}

function fold(before: Transition, step: Transition): Transition {
  const { from: _, ...rest } = step
  return {
    ...rest,
    ...(before.from !== undefined && { from: before.from }),
    ...((step.works ?? before.works) !== undefined && { works: step.works ?? before.works }),
    since: before.since ?? before.at,
    folded: (before.folded ?? 1) + 1,
  }
}

/**
 * Merges the transitions that wait into a story. One that stands there already is there once; those of a look whose
 * save never came to be give way to the look that came instead.
 * @param step what is seen now, if anything
 */
export function merge(story: Story, waiting: readonly string[], step?: Transition): Story {
  const kept = story.steps.filter(({ rev, to }) => step === undefined || to === undefined || rev < step.rev)
  const texts = new Set([...kept.map(pack), ...waiting, ...(step === undefined ? [] : [pack(step)])])
  const steps = [...texts].map(unpack).sort((a, b) => a.at - b.at)
  return bound({ ...story, steps })
}

function bound({ steps, earlier }: Story): Story {
  const sizes = steps.map(step => pack(step).length)
  let room = sizes.reduce((sum, size) => sum + size, 0)
  let gone = 0
  while (steps.length - gone > mostTold || (room > mostRoom && gone < steps.length - 1))
    room -= sizes[gone++] ?? 0
  const folded = steps.slice(0, gone).reduce(count, earlier)
  return { steps: steps.slice(gone), ...(folded !== undefined && { earlier: folded }) }
}

const count = (
  earlier: Earlier | undefined,
  { source, at, since = at, folded = 1 }: Transition,
): Earlier => ({
  counts: { ...earlier?.counts, [source]: (earlier?.counts[source] ?? 0) + folded },
  since: Math.min(earlier?.since ?? since, since),
  until: Math.max(earlier?.until ?? at, at),
})
