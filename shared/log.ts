// Writes one JSON line per step. Takes ids and counts only: secrets, hook ids and tokens never come here.

/** What happened, past tense and dotted (`notice.stored`), with the ids that tell which. */
export type Step = { step: string; level?: 'debug' | 'info' | 'error' } & Record<string, unknown>

export type Log = (step: Step) => void

const rank = { debug: 0, info: 1, error: 2 } as const

/**
 * Steps on the way to one that says the same and more: `notice.queued`, `watch.saved`, `wake.recorded`. A line costs a
 * third of a write, so that one has to do.
 */
const details: ReadonlySet<string> = new Set([
  'notice.stored',
  'task.looked',
  'snapshot.saved',
  'watch.published',
  'inbox.appended',
  'wake.queued',
  'wake.sent',
])

/**
 * Makes a log for one door.
 * @param write takes a finished line without its newline
 */
export function createLog(
  door: string,
  level: keyof typeof rank,
  now: () => number,
  write: (line: string) => void,
): Log {
  return ({ step, level: of = details.has(step) ? 'debug' : 'info', ...facts }) => {
    if (rank[of] < rank[level]) return
    write(JSON.stringify({ at: new Date(now()).toISOString(), level: of, door, step, ...facts }, plain))
  }
}

/** Errors become their name and message; a stack only helps when it is a bug, and then it is asked for by name. */
const plain = (_key: string, value: unknown): unknown =>
  value instanceof Error ? { name: value.name, message: value.message } : value
