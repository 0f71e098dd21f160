// Looks after messages that their queues gave up: notes whose they are and why, and puts them back by and by. The work they ask for is the doors'.
import { type DeadMessage, takeDead } from './dead.ts'
import { idOf } from './hash.ts'
import { DeliverMessage, LookMessage, type WakeMessage } from './messages.ts'
import { holdMs } from './policy.ts'
import { type QueueName, sendAgain } from './queue.ts'
import type { Relay } from './relay.ts'
import { type Fault, getLetter, type Letter, letterBack, saveLetter } from './store/letters.ts'
import { getNotice } from './store/notices.ts'
import { getSubscription } from './store/subscriptions.ts'
import { getWake } from './store/wakes.ts'
import { getWatch } from './store/watches.ts'
import { traceIdOf } from './trace.ts'

/** How often a message is put back by itself: after 5 minutes, twice as long each time up to 6 hours, so for 16 hours in all. */
const timesPutBack = 8

/** What a message is about, as far as that is known. */
type Concern = { tenant?: string; agent?: string; taskId?: string; target?: string }

/** Empties the dead-letter queues into the table, until there is nothing left in them or the time is over. */
export async function collectLetters(relay: Relay, until: number): Promise<void> {
  for (const queue of ['look', 'deliver'] as const) {
    for (;;) {
      const messages = await takeDead(relay.queues, queue)
      for (const message of messages) await bury(relay, queue, message)
      if (messages.length === 0 || relay.now() > until) break
    }
  }
}

/** One that cannot be stored stays where it is, and keeps no other from it. */
async function bury(relay: Relay, queue: QueueName, message: DeadMessage): Promise<void> {
  try {
    // Stored first: a crash between stores it twice.
    await collect(relay, queue, message)
    await message.forget()
  } catch (error) {
    relay.log({ step: 'letter.failed', level: 'error', queue, error })
  }
}

async function collect(relay: Relay, queue: QueueName, { body, group }: DeadMessage): Promise<void> {
  const { fault, concern, trace } = await read(relay, queue, body)
  const { tenant, ...about } = concern
  const found = { id: idOf('letter', queue, body), queue, body, group, fault, ...about }
  const letter = await saveLetter(relay.table, tenant, found, relay.now(), times =>
    times > timesPutBack ? undefined : holdMs(times - 1),
  )
  const { id, agent, taskId: task, target, times } = letter
  relay.log({
    step: 'letter.kept',
    level: 'error',
    queue,
    letter: id,
    fault,
    tenant,
    agent,
    task,
    target,
    trace,
    times,
  })
}

async function read(
  relay: Relay,
  queue: QueueName,
  body: string,
): Promise<{ fault: Fault; concern: Concern; trace?: string }> {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return { fault: 'unreadable', concern: {} }
  }
  const parsed = queue === 'look' ? LookMessage.safeParse(value) : DeliverMessage.safeParse(value)
  if (!parsed.success) return { fault: 'future_version', concern: {} }
  const { trace } = { trace: undefined, ...parsed.data }
  return {
    fault: 'failed',
    concern: await concernOf(relay, parsed.data),
    ...(trace !== undefined && { trace: traceIdOf(trace) }),
  }
}

/** Whose a message is; of nobody when what it points at is gone. */
async function concernOf(relay: Relay, message: LookMessage | DeliverMessage): Promise<Concern> {
  const { table } = relay
  switch (message.kind) {
    case 'notice':
      return { ...(await ofSubscription(relay, message.sub)), taskId: message.taskId }
    case 'pending': {
      const notice = await getNotice(table, message.notice)
      return notice ? { ...(await ofSubscription(relay, notice.sub)), taskId: notice.taskId } : {}
    }
    case 'subscription':
      return ofSubscription(relay, message.sub)
    case 'watch':
      return ofWatch(relay, message.watch)
    case 'keys':
      return { tenant: message.tenant, agent: message.agent }
    case 'target':
      return { tenant: message.tenant, target: message.target }
    case 'wake':
      return ofWake(relay, message)
  }
}

async function ofSubscription(relay: Relay, ref: string): Promise<Concern> {
  const sub = await getSubscription(relay.table, ref)
  return sub ? { tenant: sub.tenant, agent: sub.agent } : {}
}

async function ofWatch(relay: Relay, key: string): Promise<Concern> {
  const watch = await getWatch(relay.table, key)
  return watch ? { tenant: watch.tenant, agent: watch.agent, taskId: watch.taskId } : {}
}

async function ofWake(relay: Relay, { subject, id, of }: WakeMessage): Promise<Concern> {
  const task = await ofWatch(relay, subject)
  const wake = of ?? (await getWake(relay.table, subject, id))
  return {
    ...task,
    ...(wake?.tenant !== undefined && { tenant: wake.tenant }),
    ...(wake !== undefined && { target: wake.target }),
  }
}

/** Puts a letter back into its queue, whose time has come. */
export async function putBackById(relay: Relay, tenant: string | undefined, id: string): Promise<void> {
  const letter = await getLetter(relay.table, tenant, id)
  if (letter !== undefined) await putBack(relay, tenant, letter)
}

/** Queued first, marked second: a crash between queues it twice, and the doors know what they have done. */
export async function putBack(relay: Relay, tenant: string | undefined, letter: Letter): Promise<void> {
  const { queue, group, body } = letter
  await sendAgain(relay.queues, queue, group, body)
  await letterBack(relay.table, tenant, letter, relay.now())
  relay.log({ step: 'letter.back', queue, letter: letter.id, tenant, times: letter.times })
}
