// Tells a tenant's own operational targets what is no client's news: an agent or a target that failed, a subscription that ran out.
import { idOf } from './hash.ts'
import type { Subscription } from './model.ts'
import { sendDeliver } from './queue.ts'
import type { Relay } from './relay.ts'
import { subjectOf, targetGroup } from './store/keys.ts'
import { getOperations } from './store/operations.ts'
import type { About, Facts } from './telling.ts'

type OperationalType =
  | 'target.disabled'
  | 'target.paused'
  | 'target.recovered'
  | 'agent.unreachable'
  | 'agent.recovered'
  | 'agent.keys_rejected'
  | 'agent.unusable'
  | 'subscription.expired'
  | 'subscription.credentials_expired'

/** What happened to something. */
export type Happened = {
  type: OperationalType
  /**
   * What tells this time from the next: a generation, or when it began. It must be known before the caller's own
   * write, and be the same when a crash makes the caller tell it again.
   */
  since: number | string
  /** More fields of the event; no secrets. */
  data?: Facts
  /** The subscription that it is about: its own targets are told as well, as long as it is not deleted. */
  beside?: Pick<Subscription, 'ref' | 'targets'>
}

/**
 * Queues a wake for each operational target of a tenant; with none set it is only logged. Call it before the write that
 * makes it true: a crash between tells it twice under one id, the other way round it would never be told.
 */
export async function tellOperations(
  relay: Pick<Relay, 'table' | 'queues' | 'now' | 'log'>,
  tenant: string,
  about: About,
  { type, since, data, beside }: Happened,
): Promise<void> {
  const { targets: operational } = (await getOperations(relay.table, tenant)) ?? { targets: [] }
  const targets = [...new Set([...operational, ...(beside?.targets ?? [])])]
  const subject = subjectOf(tenant, about)
  for (const target of targets)
    await sendDeliver(relay.queues, targetGroup(tenant, target), {
      v: 1,
      kind: 'wake',
      subject,
      id: idOf('wake', subject, type, since, target),
      of: {
        ...{ tenant, about, target, type, at: relay.now() },
        ...(data !== undefined && { data }),
        ...(beside !== undefined && { sub: beside.ref }),
      },
    })
  relay.log({ step: 'operations.told', tenant, ...about, type, since, told: targets.length })
}
