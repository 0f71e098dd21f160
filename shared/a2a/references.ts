// Reads which other tasks a task's messages refer to (A2A 1.0 section 4.1.4, `referenceTaskIds`). Pure.
import { isRecord } from './read.ts'

/** So many are told at most: agents may repeat them in every message. */
const most = 100

/** The ids of tasks that the messages of a task name, each once, in the order of the body; either version's spelling. */
export function referencedTasks(task: unknown): string[] {
  if (!isRecord(task)) return []
  const status = isRecord(task.status) ? task.status : {}
  const messages = [...(Array.isArray(task.history) ? task.history : []), status.message]
  const ids = messages.filter(isRecord).flatMap(({ referenceTaskIds, reference_task_ids: other }) => {
    const named: unknown = referenceTaskIds ?? other
    return Array.isArray(named) ? named : []
  })
  return [...new Set(ids.filter((id): id is string => typeof id === 'string' && id !== ''))].slice(0, most)
}
