// Routes of agents: where they are, how to call them, how their pushes prove themselves.
import { Hono } from 'hono'
import { limitOf } from '../../shared/breaker.ts'
import { RouseError } from '../../shared/errors.ts'
import { dropGrant } from '../../shared/granting.ts'
import { createKeySets } from '../../shared/keysets.ts'
import type { Agent } from '../../shared/model.ts'
import type { Relay } from '../../shared/relay.ts'
import { getAgent, putAgent, removeAgent } from '../../shared/store/agents.ts'
import { list, point, unpoint } from '../../shared/store/directory.ts'
import { pardonGrant } from '../../shared/store/grants.ts'
import { keyStore } from '../../shared/store/keysets.ts'
import { giveBack, takeOne } from '../../shared/store/quota.ts'
import { isLive } from '../../shared/store/subscriptions.ts'
import { type Env, tenantOf } from './auth.ts'
import { readPage } from './cursor.ts'
import { newPathId, onlyQuery, overLimit, pathId, readBody } from './input.ts'
import { AgentRequest, makeAgent } from './registering.ts'
import { findSubscription } from './subscribing.ts'

const agentsOf = { kind: 'agents' } as const

export function agents(relay: Relay): Hono<Env> {
  const { net, table, now, log } = relay
  const keySets = createKeySets({ net, store: keyStore(table), now, log })
  return new Hono<Env>()
    .put('/agents/:agent', async c => {
      const tenant = tenantOf(c.get('caller'), 'write')
      const agent = newPathId(c, 'agent')
      const asked = await readBody(c, AgentRequest)
      const before = await getAgent(table, tenant, agent)
      const made = await makeAgent(relay, { tenant, agent }, asked, before)
      if (before === undefined && !(await takeOne(table, tenant, 'agents', relay.now())))
        throw overLimit('agents')
      await point(table, tenant, agentsOf, agent, agent)
      if (!(await putAgent(table, made, before?.etag))) {
        if (before === undefined) await giveBack(table, tenant, 'agents', relay.now())
        throw new RouseError('conflict', { detail: 'The agent was changed by somebody else; try again.' })
      }
      if (asked.credentials?.type === 'oauth2') await pardonGrant(table, made)
      else if (made.tokenOrigin === undefined) await dropGrant(relay, { tenant, agent })
      relay.log({ step: 'agent.registered', tenant, agent, road: made.road, origins: made.origins })
      const { jwt } = made.verification
      // Fetched now, so that the first push need not wait, and its owner hears at once what is wrong with the set.
      const keys = jwt && (await keySets.refresh({ tenant, agent }, jwt.jwksUrl))
      return c.json({ ...shown(made), keys }, before === undefined ? 201 : 200)
    })
    .get('/agents/:agent', async c => {
      onlyQuery(c)
      const tenant = tenantOf(c.get('caller'), 'read')
      return c.json(shown(await agentFor(relay, tenant, pathId(c, 'agent'))))
    })
    .get('/agents', async c => {
      onlyQuery(c, 'limit', 'after')
      const tenant = tenantOf(c.get('caller'), 'read')
      const { limit, after, cursor } = readPage(relay, c, tenant)
      const page = await list(table, tenant, agentsOf, limit, after)
      const found = await Promise.all(page.pointers.map(({ id }) => getAgent(table, tenant, id)))
      return c.json({ agents: found.filter(one => one !== undefined).map(shown), next: cursor(page.next) })
    })
    .delete('/agents/:agent', async c => {
      onlyQuery(c)
      const tenant = tenantOf(c.get('caller'), 'write')
      const { agent } = await agentFor(relay, tenant, pathId(c, 'agent'))
      if (await hasSubscriptions(relay, tenant, agent))
        throw new RouseError('conflict', { detail: 'The agent still has subscriptions; delete them first.' })
      const removed = await removeAgent(table, tenant, agent)
      await unpoint(table, tenant, agentsOf, agent)
      if (removed) await giveBack(table, tenant, 'agents', relay.now())
      return c.body(null, 204)
    })
}

/** @throws RouseError `not_found`, for another tenant's agent just as for none */
async function agentFor(relay: Relay, tenant: string, agent: string): Promise<Agent> {
  const found = await getAgent(relay.table, tenant, agent)
  if (found === undefined) throw new RouseError('not_found')
  return found
}

async function hasSubscriptions(relay: Relay, tenant: string, agent: string): Promise<boolean> {
  let after: string | undefined
  do {
    const page = await list(
      relay.table,
      tenant,
      { kind: 'subscriptions', by: 'agent', of: agent },
      100,
      after,
    )
    const subs = await Promise.all(page.pointers.map(({ id }) => findSubscription(relay, tenant, id)))
    if (subs.some(sub => isLive(sub, relay.now()))) return true
    after = page.next
  } while (after !== undefined)
  return false
}

/** What is shown of an agent: never its credentials. */
const shown = (agent: Agent) => ({
  agent: agent.agent,
  name: agent.name,
  cardUrl: agent.cardUrl,
  url: agent.url,
  binding: agent.binding,
  version: agent.version,
  agentTenant: agent.agentTenant,
  origins: agent.origins,
  capabilities: { pushNotifications: agent.pushes, streaming: agent.streams },
  road: agent.road,
  roadSays:
    agent.road === 'push'
      ? 'Pushes, and looks by deadline for those that are lost'
      : 'Polling only: 2 s after a change, rising to a minute and more',
  floorSeconds: agent.floorSeconds,
  maxConcurrentCalls: limitOf(agent),
  hasCredentials: agent.credentials !== undefined,
  tokenOrigin: agent.tokenOrigin,
  verification: agent.verification,
  etag: agent.etag,
  createdAt: agent.createdAt,
  updatedAt: agent.updatedAt,
})
