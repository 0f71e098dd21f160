// Route that cancels a task: it is noted on the task's record, and sent to the agent by a look.
import { Hono } from 'hono'
import * as z from 'zod'
import { RouseError } from '../../shared/errors.ts'
import type { Cancel } from '../../shared/model.ts'
import { sendLook } from '../../shared/queue.ts'
import type { Relay } from '../../shared/relay.ts'
import { agentGroup } from '../../shared/store/keys.ts'
import { askCancel, watchesOf } from '../../shared/store/watches.ts'
import { type Env, tenantOf } from './auth.ts'
import { Id, pathId, readBody, TaskId, Text } from './input.ts'
import { onlyOne } from './tasks.ts'

const CancelRequest = z.strictObject({
  principal: Id.optional(),
  /** Stands in the task's history; the agent is not told. */
  reason: Text.max(200).default('asked by a client'),
})

export function cancel(relay: Relay): Hono<Env> {
  return new Hono<Env>().post('/tasks/:agent/:taskId/cancel', async c => {
    const tenant = tenantOf(c.get('caller'), 'write')
    const agent = pathId(c, 'agent')
    const { taskId } = c.req.param()
    if (!TaskId.safeParse(taskId).success) throw new RouseError('not_found')
    const { principal, reason } = await readBody(c, CancelRequest)
    const watch = onlyOne(await watchesOf(relay.table, tenant, agent, taskId), principal)
    const asked: Cancel = { by: 'client', why: reason, at: relay.now() }
    if (!(await askCancel(relay.table, watch.key, asked)))
      throw new RouseError('conflict', { detail: 'The task has ended, or nobody is subscribed to it.' })
    await sendLook(relay.queues, agentGroup(tenant, agent), { v: 1, kind: 'watch', watch: watch.key })
    relay.log({ step: 'task.cancel_asked', tenant, agent, task: taskId })
    return c.json(
      { agent, taskId, principal: watch.principal, state: watch.state ?? null, cancel: asked },
      202,
    )
  })
}
