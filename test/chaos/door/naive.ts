// Doors that show that the matrix can fail: as one would write them at first, with the two writes in the wrong order, and ours with one await more.
import { door as receive } from '../../../functions/receive.ts'
import { readRequest } from '../../../functions/request.ts'
import { parseBody, readPush } from '../../../shared/a2a/read.ts'
import { refOf } from '../../../shared/hooks.ts'
import { sendLook } from '../../../shared/queue.ts'
import type { Relay } from '../../../shared/relay.ts'
import { unsignedMemoryMs, unsignedReplay } from '../../../shared/replay.ts'
import { agentGroup } from '../../../shared/store/keys.ts'
import { acceptNotice } from '../../../shared/store/notices.ts'
import { getSubscription } from '../../../shared/store/subscriptions.ts'
import { get } from '../../../shared/store/table.ts'
import type { MakeDoor } from './doors.ts'

/** What a push asks for; undefined for what these doors do not read. */
async function readNotice(relay: Relay, event: unknown) {
  const { path = '', body = new Uint8Array() } = readRequest(event) ?? {}
  const hook = path.replace('/hooks/', '')
  const sub = await getSubscription(relay.table, refOf(hook))
  const parsed = parseBody(body)
  const read = parsed.ok ? readPush(parsed.value) : parsed
  if (sub === undefined || !read.ok || read.push.taskId === undefined) return undefined
  const { taskId, state } = read.push
  const at = relay.now()
  const group = agentGroup(sub.tenant, sub.agent)
  const named = { sub: sub.ref, taskId, at, ...(state !== undefined && { state }) }
  return { ...named, group, key: unsignedReplay(hook, body), seenUntil: at + unsignedMemoryMs }
}

const send = (relay: Relay, { key, group, seenUntil: _, ...named }: Named): Promise<void> =>
  sendLook(relay.queues, group, { v: 1, kind: 'notice', ...named, notice: key })

type Named = NonNullable<Awaited<ReturnType<typeof readNotice>>>

/** Marks the push as seen, then queues it; what cannot be queued counts as done, for a mark is there. */
const markFirst: MakeDoor = relay => async event => {
  try {
    const notice = await readNotice(relay, event)
    if (notice === undefined) return { statusCode: 422 }
    if (!(await acceptNotice(relay.table, notice, undefined))) return { statusCode: 200 }
    await send(relay, notice).catch(() => {})
    return { statusCode: 202 }
  } catch {
    return { statusCode: 503 }
  }
}

/** Answers as soon as it knows what is pushed, and writes behind the answer. */
const answerFirst: MakeDoor = relay => async event => {
  const notice = await readNotice(relay, event).catch(() => undefined)
  if (notice === undefined) return { statusCode: 503 }
  acceptNotice(relay.table, notice, notice.at + 60_000)
    .then(() => send(relay, notice))
    .catch(() => {})
  return { statusCode: 202 }
}

/** Ours, but it waits for one thing more, which nobody told the matrix of, and takes no failure of it into account. */
export const longer: MakeDoor = relay => {
  const door = receive(relay)
  return async event => {
    await get(relay.table, { pk: 'X#1', sk: '.' })
    return door(event)
  }
}

export const naive: Record<string, MakeDoor> = {
  'marks as seen, then queues': markFirst,
  'answers, then writes': answerFirst,
}
