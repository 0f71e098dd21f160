// Keeps agents: where they are, how to call them, how their pushes prove themselves.
import type { Agent } from '../model.ts'
import { removeGrant } from './grants.ts'
import { agentCallsKey, agentHealthKey, agentKey, agentKeysKey } from './keys.ts'
import { get, put, remove, type Table } from './table.ts'

/** @param lazy read in half the units, perhaps as it stood a second ago */
export const getAgent = (
  table: Table,
  tenant: string,
  agent: string,
  lazy = false,
): Promise<Agent | undefined> => get<Agent>(table, agentKey(tenant, agent), lazy)

/**
 * Puts an agent where `before` stands (nothing, or the etag that was read).
 * @returns false when somebody else put one meanwhile: two registrations of one agent settle here
 */
export async function putAgent(table: Table, agent: Agent, before: string | undefined): Promise<boolean> {
  const { ok } = await put(
    table,
    { ...agentKey(agent.tenant, agent.agent), ...agent },
    before === undefined ? 'attribute_not_exists(#pk)' : '#etag = :before',
    { before },
  )
  return ok
}

/** Removes an agent with its key set, its counts and its calls. Of two who remove one, one does, and is told so. */
export async function removeAgent(table: Table, tenant: string, agent: string): Promise<boolean> {
  await remove(table, agentKeysKey(tenant, agent))
  await remove(table, agentHealthKey(tenant, agent))
  await remove(table, agentCallsKey(tenant, agent))
  await removeGrant(table, { tenant, agent })
  return remove(table, agentKey(tenant, agent), 'attribute_exists(#pk)')
}
