// Route of an agent's health: what its pushes came to and why they were refused, how calls of it go, and the state of its published keys.
import { Hono } from 'hono'
import {
  type BreakerState,
  type Calls,
  limitOf,
  stateOf,
  takenSlots,
  waitingMs,
} from '../../shared/breaker.ts'
import { RouseError } from '../../shared/errors.ts'
import type { Agent } from '../../shared/model.ts'
import { explain } from '../../shared/reasons.ts'
import type { Relay } from '../../shared/relay.ts'
import { getAgent } from '../../shared/store/agents.ts'
import { getCalls } from '../../shared/store/calls.ts'
import { type Grant, getGrant } from '../../shared/store/grants.ts'
import { type Counts, getCounts, type Wrong } from '../../shared/store/health.ts'
import { keyStore, type StoredKeys } from '../../shared/store/keysets.ts'
import { versionOf } from '../../shared/versions.ts'
import { type Env, tenantOf } from './auth.ts'
import { onlyQuery, pathId } from './input.ts'

export function health(relay: Relay): Hono<Env> {
  return new Hono<Env>().get('/agents/:agent/health', async c => {
    onlyQuery(c)
    const tenant = tenantOf(c.get('caller'), 'read')
    const name = pathId(c, 'agent')
    const agent = await getAgent(relay.table, tenant, name)
    if (agent === undefined) throw new RouseError('not_found')
    const [counts, calls, keys, grant] = await Promise.all([
      getCounts(relay.table, tenant, name),
      getCalls(relay.table, agent),
      keyStore(relay.table).load({ tenant, agent: name }),
      agent.tokenOrigin === undefined ? undefined : getGrant(relay.table, { tenant, agent: name }),
    ])
    const { jwksUrl } = agent.verification.jwt ?? {}
    return c.json({
      agent: name,
      pushes: shownCounts(counts),
      calls: {
        ...shownCalls(calls, limitOf(agent), relay.now()),
        version: shownVersion(agent, calls, relay.now()),
        wrongAnswers: shownWrong(counts),
      },
      ...(agent.tokenOrigin !== undefined && { token: shownToken(grant) }),
      ...(jwksUrl !== undefined && {
        keys: shownKeys(keys?.url === jwksUrl ? keys : undefined, relay.now()),
      }),
    })
  })
}

/** A slot may be held for some seconds after its call ended, so what is in flight is the most that can be. */
function shownCalls(calls: Calls, limit: number, now: number) {
  const state = stateOf(calls, now)
  const { failures = 0, failedSince, openUntil, asked = false, fault } = calls
  const waits = calls.oldest !== undefined && now - (calls.oldestSeen ?? 0) < waitingMs
  return {
    breaker: state,
    says: breakerSays[state],
    failures,
    failingSince: failedSince ?? null,
    fault: fault ?? null,
    openUntil: openUntil ?? null,
    toldUnreachable: calls.told !== undefined,
    askedByRetryAfter: state !== 'closed' && asked,
    inFlightAtMost: takenSlots(calls, limit, now).length,
    maxConcurrentCalls: limit,
    oldestWaitingSeconds: waits ? Math.round((now - (calls.oldest ?? now)) / 1000) : null,
  }
}

/** How the token endpoint of the agent's own credentials does. */
function shownToken(grant: Grant | undefined) {
  // What was before these credentials were put says nothing of them, as long as nobody asked with them.
  const { fault, failingSince, nextTry, spent, failures }: Partial<Grant> =
    grant === undefined || grant.nextTry === 0 ? {} : grant
  return {
    fault: fault ?? null,
    failures: failures ?? 0,
    failingSince: failingSince ?? null,
    /** Null when none is waited for: it is asked when a token is needed, or, if it is spent, not before it is put again. */
    nextTryAt: nextTry === Number.MAX_SAFE_INTEGER ? null : (nextTry ?? null),
    spent: spent ?? false,
  }
}

const shownVersion = (agent: Agent, calls: Calls, now: number) => {
  const spoken = versionOf(agent, calls, now)
  const differs = spoken !== agent.version
  return { registered: agent.version, spoken, askedFirstUntil: differs ? calls.spoken?.until : null }
}

/** Answers about another task than the one asked for: they were dropped, for they may be another customer's. */
const shownWrong = ({ wrong, lastWrong }: Wrong) => ({ count: wrong, lastAt: lastWrong ?? null })

const breakerSays: Record<BreakerState, string> = {
  closed: 'The agent is called whenever a look is due.',
  open: 'The agent did not answer, or asked to be left alone: looks wait until the time stated.',
  half_open: 'The next look tries the agent; if it answers, all go on.',
}

/** Instances tell what they counted at most every 10 s, one agent at a time, so the numbers are rough. */
const shownCounts = (counts: Counts) => ({
  approximate: true,
  accepted: counts.accepted,
  duplicates: counts.duplicate,
  unexpected: counts.unexpected,
  bodyDigests: { asReceived: counts.raw, compact: counts.compact },
  lastAcceptedAt: counts.lastAccepted ?? null,
  refused: Object.fromEntries(
    Object.entries(counts.refused).map(([reason, count]) => [reason, { count, says: wordsOf(reason) }]),
  ),
  lastRefusals: counts.recent.map(({ at, reason }) => ({ at, reason, says: wordsOf(reason) })),
})

/** A reason that an older version counted may have no words any more. */
const wordsOf = (reason: string): string | null => explain(reason) ?? null

const shownKeys = (keys: StoredKeys | undefined, now: number) => ({
  fetchedAt: keys?.keys === undefined ? null : keys.settledAt,
  ageSeconds: keys?.keys === undefined ? null : Math.round((now - keys.settledAt) / 1000),
  freshUntil: keys?.freshUntil ?? null,
  failures: keys?.failures ?? 0,
  fault: keys?.fault ?? null,
  /** What the owner should mend: a private or symmetric key in the set, and the like. */
  flags: keys?.flags ?? [],
})
