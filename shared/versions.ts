// Calls an agent in the A2A version that it speaks now: the registered one, or once the other when it says that it does not know that.
import type { Endpoint } from './a2a/endpoint.ts'
import { codes, type Failure } from './a2a/trouble.ts'
import type { Calls } from './breaker.ts'
import { callAs, type Tries, type Turns } from './calling.ts'
import type { Agent, ProtocolVersion, Subscription } from './model.ts'
import { learnFrom } from './permits.ts'
import { isRefusal, type Whose } from './refusals.ts'
import type { Relay } from './relay.ts'
import { noteSpoken } from './store/calls.ts'

/** For how long another version than the registered one is asked for first. Registering the agent anew ends it at once. */
const spokenMs = 24 * 60 * 60 * 1000

/** The version that the next call begins with. */
export const versionOf = (
  { version, etag }: Pick<Agent, 'version' | 'etag'>,
  { spoken }: Calls,
  now: number,
) => (spoken !== undefined && spoken.etag === etag && spoken.until > now ? spoken.version : version)

type Answer = { ok: true } | Failure
type World = Parameters<typeof callAs>[0] & Pick<Relay, 'table' | 'now' | 'log' | 'permits'>

/**
 * Calls an agent as {@link callAs} does. One that does not know the version (A2A 1.0 section 3.6) is called once more in
 * the other one; if it answers then, that is remembered. While it is, a refusal that names no error of A2A may be all
 * that is left at an address of old: the registered version is asked before it counts.
 * @param callee.calls what is known of calls to it
 */
export async function callInVersion<T extends Answer>(
  relay: World,
  { agent, calls }: { agent: Agent; calls: Calls },
  subs: Subscription[],
  call: (endpoint: Endpoint, own: Whose) => Promise<T>,
  turns?: Turns<T>,
): Promise<(T | Failure) & Tries<T>> {
  const now = relay.now()
  const version = versionOf(agent, calls, now)
  const answer = await callAs(relay, { ...agent, version }, subs, call, turns)
  const said = answer.tries.map(one => one.answer)
  if (answer.ok || (!said.some(isMismatch) && (version === agent.version || !said.some(isBare))))
    return answer
  const other: ProtocolVersion = version === '1.0' ? '0.3' : '1.0'
  const second = await callAs(relay, { ...agent, version: other }, subs, call, turns)
  if (!second.tries.some(one => isUnderstood(one.answer)))
    // Whoever does not know the version at all may know it in the other one, but not whom it would serve.
    return said.every(isMismatch) && second.tries.some(one => isRefused(one.answer)) ? second : answer
  const { etag } = agent
  const spoken = other === agent.version ? undefined : { version: other, etag, until: now + spokenMs }
  learnFrom(relay, agent, await noteSpoken(relay.table, agent, spoken))
  relay.log({ step: 'agent.speaks', level: 'info', tenant: agent.tenant, agent: agent.agent, version: other })
  return second
}

/** What only an agent says that knows the operation. A bare 404 or 403 may be any router's word of an address it lacks. */
const isUnderstood = (answer: Answer): boolean =>
  answer.ok || answer.code === codes.taskNotFound || answer.code === codes.taskNotCancelable

/** A refusal that may be a router's. */
const isBare = (answer: Answer): boolean =>
  !answer.ok && (answer.trouble === 'not_found' || answer.trouble === 'forbidden') && !isUnderstood(answer)

const isRefused = (answer: Answer): boolean => !answer.ok && isRefusal(answer.trouble)

const isMismatch = (answer: Answer): boolean =>
  !answer.ok && (answer.code === codes.versionNotSupported || answer.code === codes.methodNotFound)
