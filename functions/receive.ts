// The door that agents push to: is it genuine, is it new? One record, one message, 202. It reads no task and updates no subscription.
import { parseBody, readPush } from '../shared/a2a/read.ts'
import {
  type Accepted,
  accept,
  type Genuine,
  idsOf,
  isFlood,
  lookUnread,
  type Rides,
  ride,
} from '../shared/accepting.ts'
import { networkOf } from '../shared/address.ts'
import { startDeadline } from '../shared/deadline.ts'
import { type ErrorCode, says, statusOf } from '../shared/errors.ts'
import { isHook, refOf } from '../shared/hooks.ts'
import { createKeySets } from '../shared/keysets.ts'
import { limits, rates } from '../shared/limits.ts'
import { createMemory, type Known } from '../shared/memory.ts'
import { hopHeader } from '../shared/names.ts'
import { type Court, prove } from '../shared/proving.ts'
import { createRates, type Rates } from '../shared/rates.ts'
import type { Reason } from '../shared/reasons.ts'
import type { Relay } from '../shared/relay.ts'
import { keyStore } from '../shared/store/keysets.ts'
import { isLive } from '../shared/store/subscriptions.ts'
import { createTally, type Tally } from '../shared/tally.ts'
import { type HttpHandler, type HttpResult, onLambda } from './lambda.ts'
import { type HttpRequest, readRequest } from './request.ts'

/** Senders hang up after 5 s; cold start and network have the rest. The queue has its turn even if the table hangs. */
const tableMs = 3000
/** Before that the keys have theirs: when the table hangs, what is remembered of them has to do. */
const keysMs = 2750
const queueMs = 3500

/** As deep as an agent's answer may be: a push may hold the same task. */
const deepestPush = 512

/** Everything that one request is judged with; all but `now` outlives it. */
type World = Court & { tally: Tally; counted: Rates; rides: Rides }

export const door = (relay: Relay): HttpHandler => {
  const { net, now, log, table, queues } = relay
  const kept = {
    memory: createMemory(now),
    keySets: createKeySets({ net, store: keyStore(table), now, log }),
    tally: createTally(),
    counted: createRates(),
    rides: new Map(),
  }
  return async event => {
    const request = readRequest(event)
    if (request === undefined) return refuse('bad_request')
    const forKeys = startDeadline(keysMs)
    const forTable = startDeadline(tableMs)
    const forQueue = startDeadline(queueMs)
    const timed = {
      ...relay,
      table: { ...table, signal: forTable.signal },
      queues: { ...queues, signal: forQueue.signal },
    }
    const world = { ...kept, relay: timed, now: now(), forKeys: forKeys.signal }
    try {
      const result = await receive(world, request)
      await kept.tally.flush(timed.table, world.now)
      return result
    } finally {
      forKeys.over()
      forTable.over()
      forQueue.over()
    }
  }
}

export const handler = onLambda('receive', door)

async function receive(world: World, request: HttpRequest): Promise<HttpResult> {
  const hook = /^\/hooks\/([\w-]{1,64})$/.exec(request.path)?.[1]
  // The MAC makes a guessed hook cost no read.
  if (hook === undefined || !isHook(world.relay.config.rootKeys, hook)) return refuse('not_found')
  if (request.method !== 'POST') return answerOther(request)
  if (request.headers[hopHeader] !== undefined) return refuse('loop_detected')
  if (!isJson(request.headers)) return refuse('unsupported_media_type')
  const ref = refOf(hook)
  const forger = `refused ${networkOf(request.source)} ${ref}`
  if (!world.counted.allows(forger, rates.refused, world.now)) return refuse('rate_limited')
  let known: Known | undefined
  try {
    known = await world.memory.find(world.relay.table, ref)
  } catch (error) {
    world.relay.log({ step: 'push.unavailable', level: 'error', error })
    return refuse('unavailable')
  }
  if (known === undefined || !isLive(known.sub, world.now)) return refuse('not_found')
  const proof = await prove(world, request, known)
  if (proof.ok) return take(world, request, known, proof)
  if (proof.later) return refusePush(world, known, proof.reason, refuse('unavailable'))
  world.counted.take(forger, rates.refused, world.now)
  return refusePush(world, known, proof.reason, refuse('unauthorized'))
}

/** A genuine push: is it one that can be read, about a task that is expected, and new? */
async function take(
  world: World,
  request: HttpRequest,
  known: Known,
  proof: Genuine['proof'],
): Promise<HttpResult> {
  const { relay, tally, now } = world
  if (request.body.length > limits.pushBytes) return takeTooLarge(world, known, proof)
  const parsed = parseBody(request.body, deepestPush)
  if (!parsed.ok) return refusePush(world, known, 'body_unreadable', refuse('bad_request', parsed.why))
  const read = readPush(parsed.value)
  if (!read.ok) return refusePush(world, known, 'body_unreadable', refuse('unreadable_push', read.why))
  // A message need not say which task it belongs to; what was signed may.
  const { taskId = proof.claimedTaskId } = read.push
  if (proof.claimedTaskId !== undefined && proof.claimedTaskId !== taskId)
    return refusePush(world, known, 'task_claim_differs', refuse('unauthorized'))
  if (taskId === undefined || (known.sub.taskId !== undefined && known.sub.taskId !== taskId)) {
    relay.log({ step: 'push.unexpected', ...idsOf(known), task: taskId })
    tally.note(known.agent, 'unexpected', now)
    return answers.accepted
  }
  const genuine = { proof, push: { ...read.push, taskId } }
  const taken = isFlood(world.counted, now, known, genuine)
    ? await ride(relay, now, known, genuine, world.rides)
    : await accept(relay, now, known, genuine, world.rides)
  if (taken === 'duplicate') relay.log({ step: 'push.duplicate', ...idsOf(known), task: taskId })
  if (taken !== 'unavailable') tally.note(known.agent, taken, now, proof.digest)
  return answers[taken]
}

/** Too large to read, but its headers prove the sender: the task that it must be about is looked at, or it shall come again. */
async function takeTooLarge(world: World, known: Known, proof: Genuine['proof']): Promise<HttpResult> {
  const { relay, now, counted, rides } = world
  const taskId = known.sub.taskId ?? proof.claimedTaskId
  if (taskId !== undefined) {
    const genuine: Genuine = { proof, push: { kind: 'task', taskId } }
    const taken = isFlood(counted, now, known, genuine)
      ? await ride(relay, now, known, genuine, rides)
      : await lookUnread(relay, now, known, taskId)
    if (taken === 'unavailable') return answers.unavailable
  }
  return refusePush(world, known, 'body_too_large', refuse('too_large'))
}

/** The reason is for the agent's owner; of proofs the sender learns none. */
function refusePush(world: World, known: Known, reason: Reason, answer: HttpResult): HttpResult {
  world.relay.log({ step: 'push.refused', ...idsOf(known), sub: known.sub.ref, reason })
  world.tally.refuse(known.agent, reason, world.now)
  return answer
}

/**
 * `application/json`, any `+json`, none, or bytes of no declared kind: the body decides. Of types that were joined, the
 * first counts. Compressed bodies are not taken.
 */
function isJson(headers: HttpRequest['headers']): boolean {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  // Some name the charset here, which compresses nothing.
  if (!/^(?:identity|utf-?8)?$/.test(encoding)) return false
  const type = headers['content-type']?.split(/[;,]/)[0]?.trim() ?? ''
  return (
    type === '' ||
    /^(?:application|text)\/(?:x-)?json$|^application\/(?:octet-stream|[\w.+-]+\+json)$/i.test(type)
  )
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

function refuse(code: ErrorCode, detail?: string): HttpResult {
  const status = statusOf(code)
  return {
    statusCode: status,
    headers: {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      ...((code === 'unavailable' || code === 'rate_limited') && { 'retry-after': '2' }),
    },
    body: JSON.stringify({ title: says(code), status, code, ...(detail !== undefined && { detail }) }),
  }
}

const answer = (statusCode: 200 | 202, status: string): HttpResult => ({
  statusCode,
  headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
  body: `{"status":"${status}"}`,
})

const answers: Record<Accepted, HttpResult> = {
  accepted: answer(202, 'accepted'),
  duplicate: answer(200, 'duplicate'),
  unavailable: refuse('unavailable'),
}
