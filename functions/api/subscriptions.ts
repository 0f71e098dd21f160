// Routes of subscriptions: whom to wake for which task; each hands out a push config for the agent.
import { type Context, Hono } from 'hono'
import * as z from 'zod'
import { sealCredentials } from '../../shared/calling.ts'
import { invalidField, RouseError } from '../../shared/errors.ts'
import type { Subscription } from '../../shared/model.ts'
import type { Relay } from '../../shared/relay.ts'
import { getAgent } from '../../shared/store/agents.ts'
import { list } from '../../shared/store/directory.ts'
import { pardonGrant, removeGrant } from '../../shared/store/grants.ts'
import type { Listing } from '../../shared/store/keys.ts'
import { replaceCredentials } from '../../shared/store/subscriptions.ts'
import { endAtAgent, lookSoon } from '../../shared/subscribing.ts'
import { readTraceparent } from '../../shared/trace.ts'
import { type Env, tenantOf } from './auth.ts'
import { CredentialsRequest, judged } from './credentials.ts'
import { readPage } from './cursor.ts'
import { Id, newPathId, onlyQuery, parse, pathId, readBody, TaskId } from './input.ts'
import { RotateRequest, rotate } from './rotating.ts'
import {
  all,
  bind,
  findSubscription,
  forget,
  ofAgent,
  ofClient,
  SubscriptionRequest,
  shown,
  subscribe,
} from './subscribing.ts'

export function subscriptions(relay: Relay): Hono<Env> {
  const { table } = relay
  return new Hono<Env>()
    .post('/subscriptions', async c => {
      const tenant = tenantOf(c.get('caller'), 'write')
      const id = `sub_${Buffer.from(relay.random(15)).toString('base64url')}`
      return c.json(await subscribe(relay, tenant, id, await readRequest(c)), 201)
    })
    .put('/subscriptions/:id', async c => {
      const tenant = tenantOf(c.get('caller'), 'write')
      const id = newPathId(c, 'id')
      return c.json(await subscribe(relay, tenant, id, await readRequest(c)))
    })
    .get('/subscriptions/:id', async c => {
      onlyQuery(c)
      const tenant = tenantOf(c.get('caller'), 'read')
      return c.json(shown(relay, await subscriptionFor(relay, tenant, pathId(c, 'id'))))
    })
    .get('/subscriptions', async c => {
      onlyQuery(c, 'limit', 'after', 'client', 'agent')
      const tenant = tenantOf(c.get('caller'), 'read')
      const { limit, after, cursor } = readPage(relay, c, tenant)
      const { client, agent } = c.req.query()
      const page = await list(table, tenant, listingOf(client, agent), limit, after)
      const found = await Promise.all(page.pointers.map(({ id }) => findSubscription(relay, tenant, id)))
      // A pointer may be older than what its id stands for now.
      const fits = (sub: Subscription | undefined): sub is Subscription =>
        sub !== undefined &&
        sub.status !== 'deleted' &&
        (client === undefined || sub.client === client) &&
        (agent === undefined || sub.agent === agent)
      const subscriptions = found.filter(fits).map(sub => shown(relay, sub))
      return c.json({ subscriptions, next: cursor(page.next) })
    })
    .post('/subscriptions/:id/bind', async c => {
      const tenant = tenantOf(c.get('caller'), 'write')
      const sub = await liveSubscription(relay, tenant, pathId(c, 'id'))
      const { taskId } = await readBody(c, z.strictObject({ taskId: TaskId }))
      return c.json(await bind(relay, sub, taskId))
    })
    .post('/subscriptions/:id/rotate', async c => {
      const tenant = tenantOf(c.get('caller'), 'write')
      const sub = await liveSubscription(relay, tenant, pathId(c, 'id'))
      return c.json(await rotate(relay, sub, await readBody(c, RotateRequest)))
    })
    .put('/subscriptions/:id/credentials', async c => {
      const tenant = tenantOf(c.get('caller'), 'write')
      const sub = await liveSubscription(relay, tenant, pathId(c, 'id'))
      const asked = await readBody(c, z.strictObject({ credentials: CredentialsRequest }))
      const { credentials, tokenOrigin } = judged(relay, asked.credentials, '/credentials')
      const sealed = await sealCredentials(relay, { subscription: sub }, credentials)
      if (
        !(await replaceCredentials(table, sub.ref, { credentials: sealed, tokenOrigin, at: relay.now() })).ok
      )
        throw new RouseError('not_found')
      if (tokenOrigin !== undefined) await pardonGrant(table, sub)
      else if (sub.tokenOrigin !== undefined) await removeGrant(table, sub)
      if (sub.taskId !== undefined || sub.scope === 'agent') await lookSoon(relay, sub)
      return c.body(null, 204)
    })
    .delete('/subscriptions/:id', async c => {
      onlyQuery(c)
      const tenant = tenantOf(c.get('caller'), 'write')
      // One that ended but is still listed was left half deleted by a crash.
      const sub = await findSubscription(relay, tenant, pathId(c, 'id'))
      if (sub === undefined) throw new RouseError('not_found')
      const ended = await endAtAgent(relay, sub, await getAgent(table, tenant, sub.agent))
      await forget(relay, sub)
      relay.log({ step: 'subscription.deleted', tenant, subscription: sub.id, agent: sub.agent })
      return c.json({ id: sub.id, status: 'deleted', ...ended })
    })
}

/** The request, in the trace that it names itself, else in that of its header; one that cannot be read begins a new one. */
async function readRequest(c: Context): Promise<SubscriptionRequest> {
  const asked = await readBody(c, SubscriptionRequest)
  const traceparent = asked.traceparent ?? readTraceparent(c.req.header('traceparent'))
  return traceparent === undefined ? asked : { ...asked, traceparent }
}

function listingOf(client: string | undefined, agent: string | undefined): Listing {
  if (client !== undefined && agent !== undefined)
    throw invalidField('?agent', 'List by client or by agent, not both')
  if (client !== undefined) return ofClient(parse(Id, client, '?client'))
  return agent === undefined ? all : ofAgent(parse(Id, agent, '?agent'))
}

async function subscriptionFor(relay: Relay, tenant: string, id: string): Promise<Subscription> {
  const sub = await findSubscription(relay, tenant, id)
  if (sub === undefined || sub.status === 'deleted') throw new RouseError('not_found')
  return sub
}

async function liveSubscription(relay: Relay, tenant: string, id: string): Promise<Subscription> {
  const sub = await subscriptionFor(relay, tenant, id)
  if (sub.status === 'expired' || sub.expiresAt <= relay.now())
    throw new RouseError('conflict', { detail: 'The subscription has expired.' })
  return sub
}
