// Routes that read chained delegation as a tree: the tasks of a context, and those delegated from one.
import { type Context, Hono } from 'hono'
import { isTerminal } from '../../shared/a2a/task.ts'
import { invalidField } from '../../shared/errors.ts'
import type { Watch } from '../../shared/model.ts'
import type { Relay } from '../../shared/relay.ts'
import { list } from '../../shared/store/directory.ts'
import type { Listing } from '../../shared/store/keys.ts'
import { below, inContext, readParent } from '../../shared/store/trees.ts'
import { getWatch } from '../../shared/store/watches.ts'
import { type Env, tenantOf } from './auth.ts'
import { readPage } from './cursor.ts'
import { onlyQuery, parse, TaskId } from './input.ts'

export function trees(relay: Relay): Hono<Env> {
  const { table } = relay
  return new Hono<Env>().get('/tasks', async c => {
    onlyQuery(c, 'context', 'parent', 'limit', 'after')
    const tenant = tenantOf(c.get('caller'), 'read')
    const page = readPage(relay, c, tenant)
    const listing = listingOf(c)
    const { pointers, next } = await list(table, tenant, listing, page.limit, page.after)
    const watches = await Promise.all(pointers.map(({ ref }) => getWatch(table, ref)))
    const tasks = watches.filter(watch => watch !== undefined).map(shownNode)
    return c.json({ tasks, next: page.cursor(next) })
  })
}

/** Which tasks are asked for: by context or by parent. */
function listingOf(c: Context): Listing {
  const { context, parent } = c.req.query()
  if ((context === undefined) === (parent === undefined))
    throw invalidField('?context', 'Expected either context or parent')
  if (context !== undefined) return inContext(parse(TaskId, context, '?context'))
  const above = readParent(parent ?? '')
  if (above === undefined) throw invalidField('?parent', 'Expected agent/task')
  return below({ agent: above.agent, taskId: parse(TaskId, above.taskId, '?parent') })
}

/** A task in its place: whose it is, under what, and how far it came. */
const shownNode = ({ agent, taskId, principal, contextId, parent, state, rev, changed }: Watch) => ({
  ...{ agent, taskId, principal, contextId },
  parentTask: readParent(parent ?? ''),
  state: state ?? null,
  terminal: isTerminal(state),
  rev,
  changedAt: rev > 0 ? changed : null,
})
