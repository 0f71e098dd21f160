// Rouse's nouns as they are kept and passed around. Types only: no room acts from here.

import type { TaskState } from './a2a/task.ts'
import type { TaskAlarm } from './alarms.ts'
import type { DigestMatch } from './digest.ts'

export type Scope = 'admin' | 'write' | 'read'

export type ApiKey = {
  /** Public id, for lists and deletion. The key itself is never stored. */
  id: string
  tenant: string
  scopes: Scope[]
  label?: string
  createdAt: number
}

export type Tenant = { tenant: string; label?: string; createdAt: number }

export type Binding = 'JSONRPC' | 'HTTP+JSON'
export type ProtocolVersion = '1.0' | '0.3'

/** How pushes by signed JWT prove themselves (A2A docs, "asymmetric key flow"; the 2025 samples' body digest). */
export type JwtRule = {
  jwksUrl: string
  issuer?: string
  /** Expected `aud`; the hook's own URL unless given. */
  audience?: string
  algorithms: string[]
  digest: 'required' | 'optional'
  windowSeconds: number
  skewSeconds: number
}

/** Which proofs an agent's pushes may carry; at least one is set. */
export type Verification = {
  jwt?: JwtRule
  token?: boolean
  authorization?: 'Bearer' | 'Basic'
}

/** How to call an agent: GetTask must run as the principal that created the task. */
export type Credentials =
  | { type: 'bearer'; token: string }
  | { type: 'basic'; username: string; password: string }
  | { type: 'apiKey'; in: 'header' | 'query'; name: string; value: string }
  | OAuth

/** Access tokens are asked for at the token endpoint (RFC 6749), when one is needed. */
export type OAuth = {
  type: 'oauth2'
  tokenUrl: string
  clientId: string
  /** How the client proves itself: by a Basic header, or in the body. */
  auth: 'basic' | 'post'
  scope?: string | undefined
} & (
  | {
      grant: 'client_credentials'
      clientSecret: string
      audience?: string | undefined
      resource?: string | undefined
    }
  | { grant: 'refresh_token'; clientSecret?: string | undefined; refreshToken: string }
)

export type Agent = {
  tenant: string
  agent: string
  etag: string
  createdAt: number
  updatedAt: number
  name?: string
  cardUrl?: string
  url: string
  binding: Binding
  version: ProtocolVersion
  /** A2A's own tenant, echoed in every request (A2A 1.0 section 8.3.2). */
  agentTenant?: string
  /** Origins pinned at registration; nothing is ever called or trusted outside them. */
  origins: string[]
  pushes: boolean
  streams: boolean
  road: 'push' | 'poll'
  /** Longest wait between two looks at a silent task; the floor is half the silence within 60 s and this. */
  floorSeconds?: number
  /** How many looks may call it at a time; see breaker for the usual number. */
  maxConcurrentCalls?: number
  /** JWE of {@link Credentials}, and the origin of their token endpoint if they have one. */
  credentials?: string
  tokenOrigin?: string
  verification: Verification
}

export type Registration = {
  status: 'handed_out' | 'registered' | 'unsupported' | 'failed'
  /** The agent's own words when it refused. */
  detail?: string
  /** What refused it may pass: the agent is asked again for a day, which begins with the first refusal of these secrets, ms. */
  again?: true
  since?: number
}

/** A task of an agent, registered or not, on whose behalf another one runs. */
export type ParentTask = { agent: string; taskId: string }

export type Subscription = {
  /** Hash of the hook: names the subscription in table, queues and logs without giving the hook away. */
  ref: string
  hook: string
  tenant: string
  id: string
  agent: string
  principal: string
  scope: 'task' | 'agent'
  taskId?: string
  states: TaskState[]
  client?: string
  targets: string[]
  agentTenant?: string
  /** JWE of {@link Credentials}; wins over the agent's own. */
  credentials?: string
  credentialsAt?: number
  /** When those were given of which it was told, for a push that was to bind it, that they are refused; and by which watch. */
  refusedTold?: { of: number; by: string }
  /** Origin of their token endpoint, if they have one. */
  tokenOrigin?: string
  /** Generation of the derived hook token, and until when pushes by the one before it are still accepted. */
  generation: number
  previousUntil?: number
  status: 'active' | 'expired' | 'deleted'
  registration: Registration
  /** W3C trace context in which all of it is done: the caller's, or one of our own. Missing in those made before there was one. */
  traceparent?: string
  /** The task that this one was delegated from. */
  parentTask?: ParentTask
  /** Whether the content of work that was never finished may be read. */
  partialWork?: 'expose' | 'withhold'
  /** Time budgets of a task, in seconds: without a change, waiting for somebody (24 h unless given), and in all. */
  hopTimeoutSeconds?: number
  pauseTimeoutSeconds?: number
  endToEndSeconds?: number
  /** What happens when one is used up; it is told in any case. */
  onOverdue?: 'tell' | 'cancel'
  /** Fingerprint of the request that made it: the same request again is a repeat, another one a conflict. */
  asked: string
  createdAt: number
  expiresAt: number
  /** Until when an unbound subscription may still bind. */
  bindBy?: number
  /** When an agent-wide subscription is swept next by ListTasks. */
  sweepAt?: number
  /** How far the last list that was gone through reached. */
  sweptAt?: number
  /**
   * The page that the next sweep goes on with, when that list was begun, and how many pages in a row showed nothing new.
   * `alone` if the first page is not to be read before it.
   */
  sweepPage?: { token: string; began: number; barren: number; alone?: boolean }
  /** Sweeps in a row whose credentials were refused: which, since when, how often, and whether that was told. */
  sweepRefused?: { of: string; since: number; times: number; told: boolean }
}

/** One accepted push: dedupe record and work item in one. */
export type Notice = {
  key: string
  sub: string
  group: string
  taskId: string
  state?: TaskState
  at: number
  seenUntil: number
  /** Over which form of the body the signed digest was right, where there was one. */
  digest?: DigestMatch
  /** That digest (hex): what the sender is bound to. */
  sha256?: string
}

/** Why the last look did not give a task. */
export type Trouble =
  | 'unreachable'
  | 'rate_limited'
  | 'unauthorized'
  | 'credentials_expired'
  | 'forbidden'
  | 'not_found'
  | 'wrong_task'
  | 'unreadable'
  | 'too_large'
  | 'unsupported_version'
  | 'failed'

/**
 * A trouble that asking again does not mend: since when looks met it or one akin, how often, and in what row of such
 * looks. Troubles that pass may lie between.
 */
export type Lasting = { trouble: Trouble; since: number; times: number; row: number }

/**
 * What credentials came to: whose, and when those were given; at which trouble they ended last, how often they were refused,
 * how many answers in a row said nothing of them or the task, and until when the agent asked a subscription's own to wait.
 */
export type Tried = { of: string; trouble: Trouble; times: number; vain?: number; until?: number }

/** Our record of one task as one principal sees it. It is written at every look, so it holds nothing large: under 1 KB with a few subscriptions. */
export type Watch = {
  key: string
  tenant: string
  agent: string
  principal: string
  taskId: string
  contextId?: string
  created: number
  /** Refs of the subscriptions on this task, and those among them that were not told the present state yet. */
  subs: string[]
  fresh: string[]
  /** Steps that are true and were not told yet, as steps.ts writes them. */
  owed: string[]
  state?: TaskState
  /** Digest of what a client could see, and the last digests with the agent's timestamp (see policy). */
  digest?: string
  ring: string[]
  /** Our revision: raised only on a change a client could see. `woken` is the last one published. */
  rev: number
  woken: number
  changed: number
  /** Start of the last look that completed, start of the last that was leased, and until when it holds. */
  looked: number
  lookAt: number
  lease: number
  /** When the trailing look already queued will start. */
  again: number
  /** Whose push that look is for, by ref: others of the same subscription ride on it though it is not bound yet. */
  againFor?: string
  due?: number
  /** How often in a row tick had to queue it. */
  holds: number
  trouble?: Trouble
  troubleSince?: number
  lasting?: Lasting
  /** What each was told of that last, by ref; those whose own credentials do not say so were told nothing. */
  alarms?: Record<string, TaskAlarm>
  /** What its tenant was told of it last: `agent` and the etag of an agent whose credentials ran out, or `agent.unusable`. */
  raised?: string
  /** Refs of the subscriptions on it that were told that their credentials ran out, each with when those were given. */
  expired?: string[]
  /** Those of them that were told the state again since, for others saw the task. */
  restored?: string[]
  /** What each one's credentials came to since nobody sees the task, and whose saw it last if not the newest (see refusals.ts). */
  tried?: Tried[]
  served?: { by: string; at: number }
  /** When the agent last showed nothing of a task that it lists to those who were taken off it for that, by ref. */
  lost?: Record<string, number>
  /** Looks in a row that gave no task. */
  failures?: number
  /** The agent's own time of the state that is known. */
  stamp?: string
  /** Another time that the agent gave since to the same question; one that it gives twice makes it a new one. */
  restamp?: string
  restampSince?: number
  /** The question that is known was told by its time alone, and was not answered again a minute later: the time of the next one is doubted. */
  anew?: true
  /** Somebody who subscribed, and may have left since, wants the content of unfinished work withheld. */
  withheld?: boolean
  /** The task that this one was delegated from, as `agent/task`: of several that subscriptions name, the first. */
  parent?: string
  /** Transitions since the last snapshot, packed (see timeline). */
  tail?: string[]
  /** The newest revision of each state that is news: older ones need not be told any more (see policy.ts). */
  news?: Partial<Record<TaskState, number>>
  /** Digest of the artifacts, and the revision of the last snapshot that this watch put. */
  works?: string
  snap?: number
  /** The agent's answer was too large: of this revision only its state is known. */
  tooLarge?: boolean
  /** Since when looks have been answering a digest of the ring. */
  backSince?: number
  /** Until when budgets that ran out were told to each subscription, by ref (see budgets.ts). */
  overdue?: Record<string, number>
  /** When the agent last refused to cancel the task: the budgets of those who were on it do not ask for it again. */
  refusedAt?: number
  /** The task is to be canceled at the agent by the next look: a client asked, or budgets that ran out (see wishes.ts). */
  cancel?: Cancel
  overdueCancel?: Cancel
}

/** Who had a task canceled, why and when. */
export type Cancel = {
  by: 'policy' | 'client'
  why: string
  at: number
  /** Public id of the API key that asked. */
  key?: string
  /** Public ids of the subscriptions whose budgets ask: with the last of them the wish ends. */
  subscriptions?: string[]
  /** Credentials that may not have it canceled, by what the agent said, and why it would not. */
  denied?: string[]
  reason?: string
  /** Those with which it was asked for in vain since the last try, and whether the agent was asked to cancel then. */
  failed?: string[]
  sent?: boolean
  /** How often it was tried with everybody's in vain, and when it is tried again (ms). */
  tries?: number
  notBefore?: number
  /** Set once the agent was asked to cancel. */
  asked?: boolean
}

/** An artifact by its size and SHA-256 (hex), both of its canonical JSON (RFC 8785) in UTF-8. */
export type Work = { id?: string; name?: string; bytes: number; sha256: string }

/** The artifacts of a task: the first of them one by one, and how many and how large all are. */
export type Works = { listed: Work[]; count: number; bytes: number }

/** One thing that happened to a task, as far as we saw it. */
export type Transition = {
  /** When we learned of it (ms). */
  at: number
  /** What made us learn it, or who had it canceled. */
  source: 'push' | 'look' | 'cancel' | 'policy'
  /** State before, and after; neither where it changed none. */
  from?: TaskState
  to?: TaskState
  rev: number
  /** How long after the agent's own timestamp (ms); negative when its clock is ahead of ours. */
  delay?: number
  /** Who did it and why, or what it was, in a few words. */
  note?: string
  /** Artifacts, where they changed; `changed` names those that did since the last snapshot. */
  works?: { count: number; bytes: number; changed?: Work[] }
  /** How many transitions this one stands for, and when the first of them was (ms). */
  folded?: number
  since?: number
}

/** Transitions that are told no more, by what caused them, and the span of time they fell in (ms). */
export type Earlier = { counts: Partial<Record<Transition['source'], number>>; since: number; until: number }

/** What happened to a task, oldest first. */
export type Story = { steps: Transition[]; earlier?: Earlier }

export type Snapshot = {
  /** The agent's task as JSON text; missing when it was too large to keep. */
  body?: string
  /** The agent's answer was too large to be read: neither its body nor its artifacts are known. */
  tooLarge?: boolean
  bytes: number
  start: number
  rev: number
  state: TaskState
  works: Works
  story: Story
}
