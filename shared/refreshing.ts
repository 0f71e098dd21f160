// Keeps an agent's published keys fresh while it pushes, and tells its tenant of keys that nobody may publish. Only look uses it.
import type { KeySets } from './keysets.ts'
import { tellOperations } from './operations.ts'
import type { Relay } from './relay.ts'
import { getAgent } from './store/agents.ts'
import { getCounts } from './store/health.ts'
import { type AgentName, keyStore, owedAlarm, restKeySet, toldAlarm } from './store/keysets.ts'

/** An agent is taken for silent when none of its pushes was accepted for so long. */
const silentMs = 24 * 60 * 60 * 1000

/** Does what is due with an agent's keys. A repeat tells nothing under another id. */
export async function refreshKeys(
  relay: Relay,
  keySets: KeySets,
  { tenant, agent }: AgentName,
): Promise<'done'> {
  const of = { tenant, agent }
  const { jwt } = (await getAgent(relay.table, tenant, agent))?.verification ?? {}
  if (jwt !== undefined) await tellAlarm(relay, of, jwt.jwksUrl)
  const { lastAccepted = 0 } = await getCounts(relay.table, tenant, agent)
  if (jwt === undefined || relay.now() - lastAccepted > silentMs) await restKeySet(relay.table, of)
  else await keySets.refresh(of, jwt.jwksUrl)
  return 'done'
}

/** Told first, marked second: a crash between tells it twice under one id. */
async function tellAlarm(relay: Relay, of: AgentName, jwksUrl: string): Promise<void> {
  const keys = await keyStore(relay.table).load(of)
  const owed = keys?.url === jwksUrl ? owedAlarm(keys) : undefined
  if (keys === undefined || owed === undefined) return
  const { flags, since } = owed
  const event = { type: 'agent.keys_rejected', since, data: { flags } } as const
  await tellOperations(relay, of.tenant, { agent: of.agent }, event)
  await toldAlarm(relay.table, of, keys, since)
}
