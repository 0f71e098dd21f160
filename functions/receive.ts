// The door that agents push to: is it genuine, is it new? One record, one message, 202. It reads no task and updates no subscription.
import { parseBody, readPush } from '../shared/a2a/read.ts'
import { isNews, type PushReading } from '../shared/a2a/task.ts'
import { type ErrorCode, says, statusOf } from '../shared/errors.ts'
import { isHook, refOf } from '../shared/hooks.ts'
import { hookSecrets, hookUrl } from '../shared/issued.ts'
import { createKeySets, type KeySets } from '../shared/keysets.ts'
import { createMemory, type Known, type Memory } from '../shared/memory.ts'
import { noticeTimerMs } from '../shared/policy.ts'
import { sendLook } from '../shared/queue.ts'
import type { Relay } from '../shared/relay.ts'
import { agentGroup } from '../shared/store/keys.ts'
import { keyStore } from '../shared/store/keysets.ts'
import { acceptNotice, timeNotice } from '../shared/store/notices.ts'
import { isLive } from '../shared/store/subscriptions.ts'
import { type Proof, verifyPush } from '../shared/verify.ts'
import { type HttpHandler, type HttpRequest, type HttpResult, onLambda, readRequest } from './lambda.ts'

/** Senders hang up after 5 s; cold start and network have the rest. The queue has its turn even if the table hangs. */
const tableMs = 3000
const queueMs = 3500
/** Largest body, decoded: what Lambda takes as base64. */
const largestBody = 4_400_000
/** A remembered subscription that is older is read again before a push is refused by it. */
const refusalFreshMs = 5000

type Proven = Proof & { ok: true }
type World = { relay: Relay; memory: Memory; keySets: KeySets; now: number }

export const door = (relay: Relay): HttpHandler => {
  const { net, now, log, table, queues } = relay
  const memory = createMemory(now)
  const keySets = createKeySets({ net, store: keyStore(table), now, log })
  return event => {
    const timed = {
      ...relay,
      table: { ...table, signal: AbortSignal.timeout(tableMs) },
      queues: { ...queues, signal: AbortSignal.timeout(queueMs) },
    }
    return receive({ relay: timed, memory, keySets, now: now() }, readRequest(event))
  }
}

export const handler = onLambda('receive', door)

async function receive(world: World, request: HttpRequest): Promise<HttpResult> {
  const hook = /^\/hooks\/([\w-]{1,64})$/.exec(request.path)?.[1]
  // The MAC makes a guessed hook cost no read.
  if (hook === undefined || !isHook(world.relay.config.rootKeys, hook)) return refuse('not_found')
  if (request.method !== 'POST') return answerOther(request)
  if (!isJson(request.headers)) return refuse('unsupported_media_type')
  let known: Known | undefined
  try {
    known = await world.memory.find(world.relay.table, refOf(hook))
  } catch (error) {
    world.relay.log({ step: 'push.unavailable', level: 'error', error })
    return refuse('unavailable')
  }
  if (known === undefined || !isLive(known.sub, world.now)) return refuse('not_found')
  const proof = await prove(world, request, hook, known)
  if (proof.ok) return take(world, request, known, proof)
  world.relay.log({ step: 'push.refused', ...idsOf(known), reason: proof.reason })
  return refuse(proof.later ? 'unavailable' : 'unauthorized')
}

/** Verifies by what is remembered and, before refusing by something old, once more by what is true now. */
async function prove(world: World, request: HttpRequest, hook: string, known: Known): Promise<Proof> {
  const proof = await proveBy(world, request, hook, known)
  if (proof.ok || world.now - known.at <= refusalFreshMs) return proof
  const fresh = await world.memory.find(world.relay.table, known.sub.ref, refusalFreshMs)
  return fresh === undefined ? proof : proveBy(world, request, hook, fresh)
}

function proveBy(world: World, request: HttpRequest, hook: string, { sub, agent }: Known): Promise<Proof> {
  const { relay, keySets } = world
  const secrets = hookSecrets(relay, sub)
  const expected = {
    hook,
    hookUrl: hookUrl(relay, hook),
    tokens: [secrets.token],
    credentials: [agent.verification.authorization === 'Basic' ? secrets.basic : secrets.bearer],
    verification: agent.verification,
  }
  return verifyPush(
    request,
    expected,
    (rule, kid, alg, tried) => keySets.keysFor(agent, rule.jwksUrl, { kid, alg, tried }),
    world.now,
  )
}

/** A genuine push: is it one we can read, about a task that is expected, and new? */
async function take(world: World, request: HttpRequest, known: Known, proof: Proven): Promise<HttpResult> {
  if (request.body.length > largestBody) return takeTooLarge(world, known, proof)
  const parsed = parseBody(request.body)
  if (!parsed.ok) return refuse('bad_request', parsed.why)
  const read = readPush(parsed.value)
  if (!read.ok) return refuse('unreadable_push', read.why)
  const { taskId } = read.push
  if (proof.claimedTaskId !== undefined && proof.claimedTaskId !== taskId) {
    world.relay.log({ step: 'push.refused', ...idsOf(known), reason: 'task_claim_differs' })
    return refuse('unauthorized')
  }
  const { sub } = known
  if (taskId === undefined || (sub.taskId !== undefined && sub.taskId !== taskId)) {
    world.relay.log({ step: 'push.unexpected', ...idsOf(known), task: taskId })
    return answer(202, 'accepted')
  }
  return accept(world, known, proof, { ...read.push, taskId })
}

/** The record first: it marks the push as seen and is the work that is pending. Then the message; then the answer. */
async function accept(
  world: World,
  known: Known,
  proof: Proven,
  push: PushReading & { taskId: string },
): Promise<HttpResult> {
  const { relay, now: at } = world
  const { sub, agent } = known
  const { taskId, state } = push
  const group = agentGroup(sub.tenant, agent.agent)
  // A timer costs writes: only where the loss would hurt and nothing else would notice.
  const timer = isNews(state) || sub.taskId === undefined
  const key = proof.replay
  let stored = true
  try {
    const notice = {
      key,
      sub: sub.ref,
      group,
      taskId,
      at,
      seenUntil: proof.seenUntil,
      ...(state !== undefined && { state }),
    }
    if (!(await acceptNotice(relay.table, notice, timer ? at + noticeTimerMs : undefined))) {
      relay.log({ step: 'push.duplicate', ...idsOf(known), task: taskId, notice: key })
      return answer(200, 'duplicate')
    }
    relay.log({ step: 'notice.stored', ...idsOf(known), task: taskId, state, notice: key, by: proof.by })
  } catch (error) {
    // Without the record a copy may cost one look more; without the message the push would be lost.
    stored = false
    relay.log({ step: 'notice.not_stored', level: 'error', ...idsOf(known), task: taskId, error })
  }
  try {
    await sendLook(relay.queues, group, {
      v: 1,
      kind: 'notice',
      sub: sub.ref,
      taskId,
      ...(state !== undefined && { state }),
      at,
      ...(stored && { notice: key, timer }),
    })
    relay.log({ step: 'notice.queued', ...idsOf(known), task: taskId, notice: key })
    return answer(202, 'accepted')
  } catch (error) {
    relay.log({ step: 'notice.not_queued', level: 'error', ...idsOf(known), task: taskId, error })
    return stored ? keepTimed(relay, known, key, timer, at) : refuse('unavailable')
  }
}

/** The message could not be sent: the record's timer, or else the task's own floor, brings the look. */
async function keepTimed(
  relay: Relay,
  known: Known,
  key: string,
  timer: boolean,
  at: number,
): Promise<HttpResult> {
  if (timer) return answer(202, 'accepted')
  try {
    await timeNotice(relay.table, key, at + noticeTimerMs)
  } catch (error) {
    relay.log({ step: 'notice.not_timed', level: 'error', ...idsOf(known), error })
  }
  return answer(202, 'accepted')
}

/** Too large to read, but its headers prove the sender: the task it must be about is looked at. */
async function takeTooLarge(world: World, { sub }: Known, proof: Proven): Promise<HttpResult> {
  const taskId = sub.taskId ?? proof.claimedTaskId
  if (taskId !== undefined)
    await sendLook(world.relay.queues, agentGroup(sub.tenant, sub.agent), {
      v: 1,
      kind: 'notice',
      sub: sub.ref,
      taskId,
      at: world.now,
    }).catch((error: unknown) => world.relay.log({ step: 'notice.not_queued', level: 'error', error }))
  return refuse('too_large')
}

/** `application/json`, any `+json`, none, or bytes of no declared kind: the body decides. Compressed bodies are not taken. */
function isJson(headers: HttpRequest['headers']): boolean {
  const encoding = headers['content-encoding']?.trim().toLowerCase()
  if (encoding !== undefined && encoding !== '' && encoding !== 'identity') return false
  const type = headers['content-type']?.split(';')[0]?.trim() ?? ''
  return type === '' || /^application\/(?:json|octet-stream|[\w.+-]+\+json)$/i.test(type)
}

/** The handshake of early agents (`GET ?validationToken=`, echoed as text), and methods that a hook does not take. */
function answerOther({ method, query }: HttpRequest): HttpResult {
  const tokens = query.getAll('validationToken')
  const [token = ''] = tokens
  if ((method === 'GET' || method === 'HEAD') && tokens.length === 1 && /^[A-Za-z0-9-]{8,128}$/.test(token))
    return {
      statusCode: 200,
      headers: {
        'content-type': 'text/plain; charset=utf-8',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
      },
      body: method === 'GET' ? token : '',
    }
  const result = refuse('method_not_allowed')
  return { ...result, headers: { ...result.headers, allow: 'POST' } }
}

const json = { 'content-type': 'application/json', 'cache-control': 'no-store' }

const answer = (statusCode: 200 | 202, status: string): HttpResult => ({
  statusCode,
  headers: json,
  body: `{"status":"${status}"}`,
})

function refuse(code: ErrorCode, detail?: string): HttpResult {
  const status = statusOf(code)
  return {
    statusCode: status,
    headers: {
      ...json,
      'content-type': 'application/problem+json',
      ...(code === 'unavailable' && { 'retry-after': '2' }),
    },
    body: JSON.stringify({ title: says(code), status, code, ...(detail !== undefined && { detail }) }),
  }
}

/** Ids that may stand in logs; the hook only as the hash that its subscription is found by. */
const idsOf = ({ sub }: Known) => ({
  tenant: sub.tenant,
  agent: sub.agent,
  subscription: sub.id,
})
