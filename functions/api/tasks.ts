// Routes of the reading side: a task as last seen, a client's inbox, and wakes with their attempts.
import { type Context, Hono } from 'hono'
import { invalidField, RouseError } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import type { Watch } from '../../shared/model.ts'
import { readWakeId } from '../../shared/names.ts'
import type { Relay } from '../../shared/relay.ts'
import { watchesOf } from '../../shared/store/asked.ts'
import { list } from '../../shared/store/directory.ts'
import { readInbox } from '../../shared/store/inbox.ts'
import { subjectOf } from '../../shared/store/keys.ts'
import { always, getWake, listFailed, listWakes, type Wakes } from '../../shared/store/wakes.ts'
import type { Wake } from '../../shared/telling.ts'
import { type Env, tenantOf } from './auth.ts'
import { type Page, readPage } from './cursor.ts'
import { Id, idPattern, onlyQuery, parse, readWhole, TaskId } from './input.ts'
import { asksToExpose, shownTask } from './seeing.ts'

export function tasks(relay: Relay): Hono<Env> {
  const { table } = relay
  return new Hono<Env>()
    .get('/tasks/:agent/:taskId', async c => {
      onlyQuery(c, 'principal', 'partial')
      const tenant = tenantOf(c.get('caller'), 'read')
      const exposed = asksToExpose(c)
      const { agent, taskId } = c.req.param()
      if (!idPattern.test(agent) || !TaskId.safeParse(taskId).success) throw new RouseError('not_found')
      const watch = onlyOne(await watchesOf(table, tenant, agent, taskId), c.req.query('principal'))
      return c.json(await shownTask(relay, watch, exposed))
    })
    .get('/inbox', async c => {
      onlyQuery(c, 'client', 'after', 'limit')
      const tenant = tenantOf(c.get('caller'), 'read')
      const client = parse(Id, c.req.query('client'), '?client')
      const after = readWhole(c, 'after', { least: 0, most: Number.MAX_SAFE_INTEGER, fallback: 0 })
      const limit = readWhole(c, 'limit', { least: 1, most: limits.itemsOfPage, fallback: 50 })
      const feed = await readInbox(table, tenant, client, { after, limit, now: relay.now() })
      const entries = feed.entries.map(({ from: _, ...entry }) => entry)
      return c.json({ client, entries, next: String(feed.next) })
    })
    .get('/wakes', async c => {
      onlyQuery(c, 'task', 'agent', 'principal', 'target', 'state', 'limit', 'after')
      const tenant = tenantOf(c.get('caller'), 'read')
      const page = readPage(relay, c, tenant)
      const { wakes, next } = await wakesFor(relay, tenant, c, page)
      return c.json({ wakes: wakes.map(shownWake), next: page.cursor(next) })
    })
    .get('/wakes/:id', async c => {
      onlyQuery(c)
      const tenant = tenantOf(c.get('caller'), 'read')
      const name = readWakeId(c.req.param('id'))
      const wake = name && (await getWake(table, name.subject, name.id))
      if (wake?.tenant !== tenant) throw new RouseError('not_found')
      return c.json(shownWake(wake))
    })
}

/** The watch that is meant, of those of all principals. */
export function onlyOne(watches: Watch[], principal: string | undefined): Watch {
  const meant = principal === undefined ? watches : watches.filter(watch => watch.principal === principal)
  const [watch, other] = meant
  if (watch === undefined) throw new RouseError('not_found')
  if (other !== undefined)
    throw new RouseError('ambiguous', {
      detail: `Principals: ${meant.map(one => one.principal).join(', ')}`,
      fields: [{ pointer: '?principal', detail: 'Several principals see this task' }],
    })
  return watch
}

/** The wakes that are asked for: a tenant's failed ones, those about a task, or about an agent or a target itself. */
async function wakesFor(relay: Relay, tenant: string, c: Context, page: Page): Promise<Wakes> {
  const { state, task, agent, target } = c.req.query()
  if (state !== undefined) return failedWakes(relay, tenant, c, page)
  if (target !== undefined) {
    onlyQuery(c, 'target', 'limit', 'after')
    const subject = subjectOf(tenant, { target: parse(Id, target, '?target') })
    return listWakes(relay.table, subject, page.limit, page.after)
  }
  if (task !== undefined || agent === undefined) return wakesOfTask(relay, tenant, c, page)
  onlyQuery(c, 'agent', 'limit', 'after')
  const subject = subjectOf(tenant, { agent: parse(Id, agent, '?agent') })
  return listWakes(relay.table, subject, page.limit, page.after)
}

async function wakesOfTask(relay: Relay, tenant: string, c: Context, { limit, after }: Page): Promise<Wakes> {
  const asked = c.req.query('task')
  if (asked === undefined) throw invalidField('?task', 'Expected one of task, agent, target, or state=failed')
  const task = parse(TaskId, asked, '?task')
  const agent = c.req.query('agent')
  const agents = agent === undefined ? await agentsOf(relay, tenant) : [parse(Id, agent, '?agent')]
  const watches = await Promise.all(agents.map(one => watchesOf(relay.table, tenant, one, task)))
  const watch = onlyOne(watches.flat(), c.req.query('principal'))
  return listWakes(relay.table, watch.key, limit, after)
}

/** A task that is asked for without its agent is looked for at all of them, if they are few. */
async function agentsOf(relay: Relay, tenant: string): Promise<string[]> {
  const { agentsSearched } = limits
  const { pointers } = await list(relay.table, tenant, { kind: 'agents' }, agentsSearched + 1)
  if (pointers.length > agentsSearched)
    throw invalidField('?agent', `Say which agent; without it at most ${agentsSearched} are searched`)
  return pointers.map(({ id }) => id)
}

/** A tenant's failed wakes, whatever their tasks. */
async function failedWakes(relay: Relay, tenant: string, c: Context, { limit, after }: Page): Promise<Wakes> {
  onlyQuery(c, 'state', 'limit', 'after')
  if (c.req.query('state') !== 'failed') throw invalidField('?state', 'Expected failed')
  return listFailed(relay.table, tenant, always, limit, after)
}

/** What is shown of a wake: not the inner name of its subscription. */
export const shownWake = (wake: Wake) => ({
  id: wake.id,
  type: wake.type,
  status: wake.status,
  target: wake.target,
  agent: wake.agent,
  taskId: wake.taskId,
  contextId: wake.contextId,
  about: wake.about,
  state: wake.state,
  rev: wake.rev,
  tooLarge: wake.tooLarge,
  data: wake.data,
  seq: wake.seq,
  at: wake.at,
  tries: wake.tries,
  next: wake.next,
  attempts: wake.attempts,
})
