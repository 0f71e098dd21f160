// Routes that try again what came to nothing: failed wakes, and messages that their queues gave up. Everything keeps its id.
import { Hono } from 'hono'
import * as z from 'zod'
import { RouseError } from '../../shared/errors.ts'
import { putBack } from '../../shared/letters.ts'
import { readWakeId } from '../../shared/names.ts'
import { sendDeliver } from '../../shared/queue.ts'
import type { Relay } from '../../shared/relay.ts'
import { targetGroup } from '../../shared/store/keys.ts'
import { type Letter, listLetters } from '../../shared/store/letters.ts'
import { getTarget } from '../../shared/store/targets.ts'
import { always, getWake, listFailed, reviveWake } from '../../shared/store/wakes.ts'
import type { Target, Wake } from '../../shared/telling.ts'
import { type Caller, type Env, tenantOf } from './auth.ts'
import { readPage } from './cursor.ts'
import { Id, Nothing, readBody } from './input.ts'
import { shownWake } from './tasks.ts'

const Time = z.number().int().min(0)

const RedriveRequest = z.strictObject({
  /** Counts and shows, and does nothing. */
  dryRun: z.boolean().default(false),
  agent: Id.optional(),
  target: Id.optional(),
  /** When what wakes tell became so, and when messages were given up (ms since 1970); both ends count. */
  since: Time.optional(),
  until: Time.optional(),
})
type RedriveRequest = z.infer<typeof RedriveRequest>

/** How many of each kind an answer shows one by one. */
const shownMost = 20
/** How many messages that queues gave up are looked through in one call. */
const lettersMost = 1000

export function redrive(relay: Relay): Hono<Env> {
  return new Hono<Env>()
    .post('/redrive', async c => {
      const asked = await readBody(c, RedriveRequest, 'after', 'limit')
      const tenant = whose(c.get('caller'))
      const page = readPage(relay, c, tenant ?? '', asked)
      // Messages come with the first page, for they are few.
      const letters = page.after === undefined ? await lettersFor(relay, tenant, asked) : []
      const failed =
        tenant === undefined
          ? { wakes: [], next: undefined }
          : await listFailed(
              relay.table,
              tenant,
              { since: asked.since ?? always.since, until: asked.until ?? always.until },
              page.limit,
              page.after,
            )
      const { able, unable } = await sorted(
        relay,
        failed.wakes.filter(wake => fits(asked, wake)),
      )
      let revived = 0
      if (!asked.dryRun) {
        for (const letter of letters) await putBack(relay, tenant, letter)
        for (const wake of able) if (await tryAgain(relay, wake, 'failed')) revived += 1
        relay.log({ step: 'redriven', tenant, wakes: revived, messages: letters.length })
      }
      return c.json({
        dryRun: asked.dryRun,
        wakes: {
          count: asked.dryRun ? able.length : revived,
          shown: able.slice(0, shownMost).map(shownWake),
        },
        skipped: { count: unable.length, shown: unable.slice(0, shownMost).map(shownWake) },
        messages: { count: letters.length, shown: letters.slice(0, shownMost).map(shownLetter) },
        next: page.cursor(failed.next),
      })
    })
    .post('/wakes/:id/retry', async c => {
      const tenant = tenantOf(c.get('caller'), 'write')
      await readBody(c, Nothing)
      const name = readWakeId(c.req.param('id'))
      const wake = name && (await getWake(relay.table, name.subject, name.id))
      if (wake?.tenant !== tenant) throw new RouseError('not_found')
      const target = await getTarget(relay.table, tenant, wake.target)
      if (!mayBeCalled(target))
        throw new RouseError('conflict', { detail: `The target ${wake.target} is disabled or gone.` })
      if (!(await tryAgain(relay, wake)))
        throw new RouseError('conflict', { detail: 'The wake is on its way already.' })
      const { agent, taskId: task } = wake
      relay.log({ step: 'wake.retried', tenant, agent, task, wake: wake.id, target: wake.target })
      return c.json({ ...shownWake(wake), status: 'pending', tries: 0, next: relay.now() }, 202)
    })
}

/** A tenant's own, or for the operator what belongs to nobody since it could not be read. */
const whose = (caller: Caller): string | undefined =>
  caller.kind === 'operator' ? undefined : tenantOf(caller, 'write')

const fits = ({ agent, target }: RedriveRequest, one: { agent?: string; target?: string }): boolean =>
  (agent === undefined || one.agent === agent) && (target === undefined || one.target === target)

async function lettersFor(
  relay: Relay,
  tenant: string | undefined,
  asked: RedriveRequest,
): Promise<Letter[]> {
  const { since = always.since, until = always.until } = asked
  const found: Letter[] = []
  let after: string | undefined
  do {
    const page = await listLetters(relay.table, tenant, 100, after)
    found.push(...page.letters.filter(one => fits(asked, one) && one.at >= since && one.at <= until))
    after = page.next
  } while (after !== undefined && found.length < lettersMost)
  return found
}

/** A wake whose target may not be called would only be dropped: it stays in the list of failures. */
async function sorted(relay: Relay, wakes: Wake[]): Promise<{ able: Wake[]; unable: Wake[] }> {
  const targets = new Map<string, Target | undefined>()
  for (const { tenant, target } of wakes)
    if (!targets.has(target)) targets.set(target, await getTarget(relay.table, tenant, target))
  const able = wakes.filter(wake => mayBeCalled(targets.get(wake.target)))
  return { able, unable: wakes.filter(wake => !able.includes(wake)) }
}

const mayBeCalled = (target: Target | undefined): boolean => target?.status === 'active'

/** Marked first, for a message of a wake that ended is taken for a copy; its timer is there if the queue is not. */
export async function tryAgain(relay: Relay, wake: Wake, only?: 'failed'): Promise<boolean> {
  const name = readWakeId(wake.id)
  const now = relay.now()
  if (name === undefined || !(await reviveWake(relay.table, wake, { now, ...(only && { only }) })))
    return false
  await sendDeliver(relay.queues, targetGroup(wake.tenant, wake.target), { v: 1, kind: 'wake', ...name })
  return true
}

/** What is shown of a message: what it is about, not its text, which names inner things. */
const shownLetter = (letter: Letter) => ({
  id: letter.id,
  queue: letter.queue,
  reason: letter.fault,
  agent: letter.agent,
  taskId: letter.taskId,
  target: letter.target,
  since: letter.since,
  at: letter.at,
  times: letter.times,
})
