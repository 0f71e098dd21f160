// Routes that try again what came to nothing: failed wakes, and messages that their queues gave up. Everything keeps its id.
import { Hono } from 'hono'
import * as z from 'zod'
import { invalidField, RouseError } from '../../shared/errors.ts'
import { putBack } from '../../shared/letters.ts'
import { readWakeId } from '../../shared/names.ts'
import { sendDeliver } from '../../shared/queue.ts'
import type { Relay } from '../../shared/relay.ts'
import { getAgent } from '../../shared/store/agents.ts'
import { targetGroup } from '../../shared/store/keys.ts'
import { type Letter, type Letters, listLetters } from '../../shared/store/letters.ts'
import { getTarget } from '../../shared/store/targets.ts'
import { always, getWake, listFailed, type Period, reviveWake, type Wakes } from '../../shared/store/wakes.ts'
import type { Target, Wake } from '../../shared/telling.ts'
import { type Caller, type Env, tenantOf } from './auth.ts'
import { readPage } from './cursor.ts'
import { Id, Nothing, readBody } from './input.ts'
import { shownWake } from './tasks.ts'

const Time = z.number().int().min(0)

export const RedriveRequest = z
  .strictObject({
    /** Counts and shows, and does nothing. */
    dryRun: z.boolean().default(false),
    agent: Id.optional(),
    target: Id.optional(),
    /** When what wakes tell became so, and when messages were given up (ms since 1970); both ends count. */
    since: Time.default(always.since),
    until: Time.optional(),
  })
  .refine(({ since, until = since }) => since <= until, {
    path: ['until'],
    error: 'Expected a time that is not before `since`',
  })
type RedriveRequest = z.infer<typeof RedriveRequest>

/** How many of each kind an answer shows one by one. */
const shownMost = 20
export function redrive(relay: Relay): Hono<Env> {
  return new Hono<Env>()
    .post('/redrive', async c => {
      const asked = await readBody(c, RedriveRequest, 'after', 'limit')
      const tenant = whose(c.get('caller'))
      const page = readPage(relay, c, tenant ?? '', asked)
      if (tenant !== undefined) await checkNames(relay, tenant, asked)
      const from = readPlaces(page.after)
      const letters = await lettersFor(relay, tenant, asked, page.limit, from.letters)
      const failed = await failedFor(relay, tenant, asked, page.limit, from.wakes)
      const { able, unable } = await sorted(relay, failed.wakes)
      const wakes = able.map(shownWake)
      if (!asked.dryRun) {
        for (const letter of letters.letters) await putBack(relay, tenant, letter)
        wakes.length = 0
        // Of two who redrive the same one revives it, and shows it as it is from then on.
        for (const wake of able) if (await tryAgain(relay, wake, 'failed')) wakes.push(revived(relay, wake))
        relay.log({ step: 'redriven', tenant, wakes: wakes.length, messages: letters.letters.length })
      }
      return c.json({
        dryRun: asked.dryRun,
        wakes: counted(wakes),
        skipped: counted(unable.map(shownWake)),
        messages: counted(letters.letters.map(shownLetter)),
        next: page.cursor(writePlaces({ letters: letters.next, wakes: failed.next })),
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
      return c.json(revived(relay, wake), 202)
    })
}

/** Whoever misspells a name is not to take it that nothing had failed. */
async function checkNames(relay: Relay, tenant: string, { agent, target }: RedriveRequest): Promise<void> {
  if (agent !== undefined && (await getAgent(relay.table, tenant, agent)) === undefined)
    throw invalidField('/agent', 'There is no such agent')
  if (target !== undefined && (await getTarget(relay.table, tenant, target)) === undefined)
    throw invalidField('/target', 'There is no such target')
}

/** A wake as it is once it has been begun anew. */
const revived = (relay: Relay, wake: Wake) =>
  shownWake({ ...wake, status: 'pending', tries: 0, next: relay.now() })

/** How many there are on this page, and the first of them. */
const counted = <T>(all: T[]): { count: number; shown: T[] } => ({
  count: all.length,
  shown: all.slice(0, shownMost),
})

/** Where either list goes on; null for one that came to its end. */
type Places = { letters?: string | null | undefined; wakes?: string | null | undefined }

const readPlaces = (after: string | undefined): Places => (after === undefined ? {} : JSON.parse(after))

const writePlaces = ({ letters = null, wakes = null }: Places): string | undefined =>
  letters === null && wakes === null ? undefined : JSON.stringify({ letters, wakes })

/** A tenant's own, or for the operator what belongs to nobody since it could not be read. */
const whose = (caller: Caller): string | undefined =>
  caller.kind === 'operator' ? undefined : tenantOf(caller, 'write')

const fits = ({ agent, target }: RedriveRequest, one: { agent?: string; target?: string }): boolean =>
  (agent === undefined || one.agent === agent) && (target === undefined || one.target === target)

const periodOf = ({ since, until = always.until }: RedriveRequest): Period => ({ since, until })

/** A page of the messages that were given up. The filters come after: it may be empty, and not the last. */
async function lettersFor(
  relay: Relay,
  tenant: string | undefined,
  asked: RedriveRequest,
  limit: number,
  after: string | null | undefined,
): Promise<Letters> {
  if (after === null) return { letters: [], next: undefined }
  const { letters, next } = await listLetters(relay.table, tenant, limit, after)
  const { since, until } = periodOf(asked)
  const meant = letters.filter(one => fits(asked, one) && one.at >= since && one.at <= until)
  return { letters: meant, next }
}

/** A page of a tenant's failed wakes. Those that belong to nobody cannot be: each has a target. */
async function failedFor(
  relay: Relay,
  tenant: string | undefined,
  asked: RedriveRequest,
  limit: number,
  after: string | null | undefined,
): Promise<Wakes> {
  if (tenant === undefined || after === null) return { wakes: [], next: undefined }
  const { wakes, next } = await listFailed(relay.table, tenant, periodOf(asked), limit, after)
  return { wakes: wakes.filter(wake => fits(asked, wake)), next }
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
