// Route that cancels a task: it is noted on the task's record, and sent to the agent by a look.
import { Hono } from 'hono'
import * as z from 'zod'
import { RouseError } from '../../shared/errors.ts'
import type { Cancel } from '../../shared/model.ts'
import { sendLook } from '../../shared/queue.ts'
import { type Relay, within } from '../../shared/relay.ts'
import { askCancel, watchesOf } from '../../shared/store/asked.ts'
import { agentGroup } from '../../shared/store/keys.ts'
import { getSubscription } from '../../shared/store/subscriptions.ts'
import { type Env, tenantOf } from './auth.ts'
import { Id, pathId, readBody, TaskId, Text } from './input.ts'
import { onlyOne } from './tasks.ts'

export const CancelRequest = z.strictObject({
  principal: Id.optional(),
  /** Stands in the task's history; the agent is not told. */
  reason: Text.max(200).default('asked by a client'),
})

export function cancel(relay: Relay): Hono<Env> {
  return new Hono<Env>().post('/tasks/:agent/:taskId/cancel', async c => {
    const caller = c.get('caller')
    const tenant = tenantOf(caller, 'write')
    const agent = pathId(c, 'agent')
    const { taskId } = c.req.param()
    if (!TaskId.safeParse(taskId).success) throw new RouseError('not_found')
    const { principal, reason } = await readBody(c, CancelRequest)
    const watch = onlyOne(await watchesOf(relay.table, tenant, agent, taskId), principal)
    const { state, principal: name } = watch
    // Asked for again, as a client does whose answer was lost.
    if (state === 'canceled') return c.json({ agent, taskId, principal: name, state, cancel: null })
    const key = caller.kind === 'tenant' ? caller.key : 'operator'
    const asked: Cancel = { by: 'client', why: reason, at: relay.now(), key }
    const noted = await askCancel(relay.table, watch.key, asked)
    if (noted === undefined)
      throw new RouseError('conflict', { detail: 'The task has ended, or nobody is subscribed to it.' })
    const sub = await getSubscription(relay.table, watch.subs[0] ?? '')
    const inside = within(relay, { trace: sub?.traceparent, parent: watch.parent })
    await sendLook(inside.queues, agentGroup(tenant, agent), { v: 1, kind: 'watch', watch: watch.key })
    inside.log({ step: 'task.cancel_asked', tenant, agent, task: taskId })
    const { by, why, at, key: of } = noted
    const cancel = { by, why, at, ...(of !== undefined && { key: of }) }
    return c.json({ agent, taskId, principal: name, state: state ?? null, cancel }, 202)
  })
}
