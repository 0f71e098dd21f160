// Gives the access token for credentials of OAuth2: from memory, from the table, or renewed by the one worker that holds the lease.
import type { Failure } from './a2a/trouble.ts'
import { unreachableMs } from './breaker.ts'
import { pause } from './deadline.ts'
import { idOf } from './hash.ts'
import type { OAuth } from './model.ts'
import { askForToken, type Refused } from './oauth.ts'
import { tellOperations } from './operations.ts'
import { troubleMs } from './policy.ts'
import type { Relay } from './relay.ts'
import { seal, unseal } from './seal.ts'
import {
  failGrant,
  forgetTold,
  type Grant,
  type GrantOwner,
  getGrant,
  keepRefresh,
  leaseGrant,
  noteRefused,
  removeGrant,
  saveGrant,
} from './store/grants.ts'
import type { Table } from './store/table.ts'

/** What granting needs of the world. */
export type Granting = Pick<Relay, 'table' | 'now' | 'net' | 'log' | 'queues'> & {
  config: Pick<Relay['config'], 'rootKeys'>
}

/** Credentials of OAuth2, opened. */
export type Held = {
  owner: GrantOwner
  /** Names them: other credentials have another name. */
  of: string
  /** The names that they have had under other root keys. */
  formerly: string[]
  oauth: OAuth
  /** Whether the owner still has them, read now: they may have been replaced since the look read them. */
  stands: () => Promise<boolean>
}

export type Token = { ok: true; token: string } | Failure

/** Longer than asking and saving can take: whoever takes over has it alone. */
const leaseMs = 20_000
/** How long another worker's renewal is waited for, before the work is put off. */
const waits = { times: 8, eachMs: 250 } as const
/** Client credentials may be good again once their server is mended; a refresh token that was refused never is. */
const spentMs = 15 * 60 * 1000
/** For how long a token endpoint must have given no token before a subscription's own credentials count as run out. */
const lostMs = 10 * 60 * 1000
/**
 * How long a token is kept that was renewed because the agent refused the one before, though it is refused, too: twice as
 * long each time, at most the second number. Who refuses every token is not to have one made at each look.
 */
const sparedMs = 30_000
const mostSparedMs = 15 * 60 * 1000
/** How often what a server gave is tried to be saved: a rotated refresh token that is lost is lost for good. */
const saveTries = 3

/** A token, until when it is used without a thought, and until when while another worker renews it. */
type Kept = { token: string; until: number; ends: number }

type Memory = { kept: Map<string, Kept>; asked: Map<string, Promise<Token>> }

/** What this process knows: tokens in use by owner and credentials, and who is asking just now. */
const memories = new WeakMap<Table, Memory>()
const mostKept = 1000

function memoryOf({ table }: Granting): Memory {
  const known = memories.get(table) ?? { kept: new Map(), asked: new Map() }
  memories.set(table, known)
  return known
}

/**
 * @param refused the token that the agent just answered 401 to: it is not used again, but renewed once, unless it came of
 * such a refusal a moment ago
 */
export function tokenFor(relay: Granting, held: Held, refused?: string): Promise<Token> {
  const { kept, asked } = memoryOf(relay)
  const known = kept.get(nameOf(held))
  if (known !== undefined && relay.now() < known.until && known.token !== refused)
    return Promise.resolve({ ok: true, token: known.token })
  // Of many that miss it at once in this process one asks.
  const name = `${nameOf(held)} ${refused === undefined ? '' : idOf(refused)}`
  const asking = asked.get(name) ?? find(relay, held, refused, waits.times).finally(() => asked.delete(name))
  asked.set(name, asking)
  return asking
}

async function find(
  relay: Granting,
  held: Held,
  refused: string | undefined,
  waitsLeft: number,
): Promise<Token> {
  const now = relay.now()
  const found = await getGrant(relay.table, held.owner)
  const ours = found !== undefined && [held.of, ...held.formerly].includes(found.of)
  const grant = ours ? found : undefined
  const stored = grant && (await open(relay, held, grant))
  const usable = stored === undefined || stored.token === refused ? undefined : stored
  if (usable !== undefined && now < usable.until) return keep(relay, held, usable)
  const isRefused = stored !== undefined && usable === undefined
  if (isRefused && grant !== undefined && now < stored.until && now < (grant.sparedUntil ?? 0)) {
    if (grant.doubles === undefined) await noteRefused(relay.table, held.owner, grant)
    return refusedAgain
  }
  if (grant !== undefined && now < grant.nextTry)
    return usable && now < usable.ends ? using(usable) : standing(held, grant, now)
  // Read after the grant: of credentials that follow ours nothing is overwritten, their refresh token would be lost. Nor
  // is anything left behind for those that ended.
  if (!ours && !(await held.stands())) return busy
  const leased = await leaseGrant(relay.table, held.owner, held.of, found, ours, {
    now,
    until: now + leaseMs,
  })
  if (leased !== undefined) return renew(relay, held, leased, grant, isRefused)
  if (usable !== undefined && now < usable.ends) return using(usable)
  if (waitsLeft === 0) return busy
  await pause(waits.eachMs)
  return find(relay, held, refused, waitsLeft - 1)
}

const busy: Token = {
  ok: false,
  elsewhere: true,
  busy: true,
  trouble: 'unreachable',
  detail: 'Its token is being renewed, or its credentials were replaced.',
  retryAfterMs: 2000,
}

/** As the agent itself said, and would say again. */
const refusedAgain: Token = {
  ok: false,
  trouble: 'unauthorized',
  detail: 'The agent refuses the access tokens that are granted for these credentials.',
}

const using = ({ token }: Kept): Token => ({ ok: true, token })

async function renew(
  relay: Granting,
  held: Held,
  leased: Grant,
  before: Grant | undefined,
  isRefused: boolean,
): Promise<Token> {
  const { oauth } = held
  const latest =
    leased.refresh && (await unseal(relay.config.rootKeys, 'grant', ownerOf(held), leased.refresh))
  const first = oauth.grant === 'refresh_token' ? oauth.refreshToken : undefined
  const answer = await askForToken(relay.net, oauth, latest ?? first, relay.now())
  if (!answer.ok) return fail(relay, held, leased, before, answer)
  const { accessToken: token, lifeMs, refreshToken } = answer
  // Early, because clocks differ and the exchange takes time.
  const ends = relay.now() + lifeMs - Math.min(5000, lifeMs / 10)
  const until = ends - Math.min(60_000, lifeMs / 5)
  const rotated = oauth.grant === 'refresh_token' ? refreshToken : undefined
  const renewed = {
    access: await sealed(relay, held, token),
    ...{ until, ends },
    // One that was not rotated is sealed again, too: the root key it was sealed under may be taken away one day.
    refresh: (rotated ?? latest) && (await sealed(relay, held, rotated ?? latest ?? '')),
    spared: sparedOf(leased.doubles ?? (isRefused ? 0 : undefined), relay.now()),
  }
  await insist(() => saveGrant(relay.table, held.owner, leased, renewed))
  relay.log({ step: 'grant.renewed', ...namesOf(held), rotated: rotated !== undefined })
  await tellRecovered(relay, held.owner, leased)
  return keep(relay, held, { token, until, ends })
}

const sparedOf = (doubled: number | undefined, now: number) =>
  doubled === undefined
    ? undefined
    : { sparedUntil: now + Math.min(sparedMs * 2 ** doubled, mostSparedMs), doubled }

async function fail(
  relay: Granting,
  held: Held,
  leased: Grant,
  before: Grant | undefined,
  { spent, detail, retryAfterMs, refreshToken }: Refused,
): Promise<Token> {
  const now = relay.now()
  const rotates = held.oauth.grant === 'refresh_token'
  if (rotates && refreshToken !== undefined) {
    const refresh = await sealed(relay, held, refreshToken)
    await insist(() => keepRefresh(relay.table, held.owner, leased, refresh))
  }
  // Whoever held it before never came to an end: what he was given may be lost with him.
  const orphaned = spent && rotates && before?.holder !== undefined && before.lease > 0
  const fault = orphaned ? `${detail} (a renewal before this one was cut off)` : detail
  const wait = spent
    ? rotates
      ? Number.MAX_SAFE_INTEGER - now
      : spentMs
    : // "At once" says nothing of when it will be better.
      retryAfterMs || troubleMs(leased.failures, 1)
  const failingSince = leased.failingSince ?? now
  const failed = { fault, nextTry: now + wait, spent, failingSince }
  await tellLost(relay, held, leased, failed)
  await failGrant(relay.table, held.owner, leased, failed)
  relay.log({ step: 'grant.refused', level: 'error', ...namesOf(held), fault, spent })
  return standing(held, { ...leased, ...failed }, now)
}

/**
 * An agent's own token endpoint that gives none for long is its tenant's news, once. Told before it is noted: a crash
 * between tells it twice under one id.
 */
async function tellLost(
  relay: Granting,
  { owner }: Held,
  leased: Grant,
  failed: { fault: string; spent: boolean; failingSince: number; told?: number },
): Promise<void> {
  const { fault, spent, failingSince } = failed
  // What is spent is told by the looks, as credentials that ran out.
  if ('ref' in owner || spent || leased.told !== undefined || relay.now() - failingSince < unreachableMs)
    return
  const data = { reason: wordsOf(fault), failingSince }
  const type = 'agent.unreachable'
  await tellOperations(relay, owner.tenant, { agent: owner.agent }, { type, since: failingSince, data })
  failed.told = failingSince
}

/** Told after the save: nothing may stand between a rotated refresh token and the table. */
async function tellRecovered(
  relay: Granting,
  owner: GrantOwner,
  { told }: Pick<Grant, 'told'>,
): Promise<void> {
  if ('ref' in owner || told === undefined) return
  await tellOperations(relay, owner.tenant, { agent: owner.agent }, { type: 'agent.recovered', since: told })
  await forgetTold(relay.table, owner, told)
}

/** Forgets what was granted to an agent whose credentials are of another kind now, and takes back what was told of it. */
export async function dropGrant(
  relay: Granting,
  owner: Extract<GrantOwner, { agent: string }>,
): Promise<void> {
  const grant = await getGrant(relay.table, owner)
  if (grant === undefined) return
  await tellRecovered(relay, owner, grant)
  await removeGrant(relay.table, owner)
}

/** What a grant says that may not be renewed now. Whose credentials serve him no more is told so, be it for good or not. */
function standing({ owner }: Held, grant: Grant, now: number): Token {
  const { spent = false, fault = '', failingSince = now } = grant
  const lost = 'ref' in owner && now - failingSince >= lostMs
  return {
    ok: false,
    elsewhere: true,
    trouble: spent || lost ? 'credentials_expired' : 'unreachable',
    detail: wordsOf(fault),
  }
}

const wordsOf = (fault: string): string => `The token endpoint: ${fault}`

async function open(relay: Granting, held: Held, { access, until, ends }: Grant): Promise<Kept | undefined> {
  if (access === undefined || until === undefined || ends === undefined) return undefined
  return { token: await unseal(relay.config.rootKeys, 'grant', ownerOf(held), access), until, ends }
}

function keep(relay: Granting, held: Held, known: Kept): Token {
  const { kept } = memoryOf(relay)
  const [oldest] = kept.keys()
  if (kept.size >= mostKept && oldest !== undefined) kept.delete(oldest)
  kept.set(nameOf(held), known)
  return using(known)
}

async function insist(save: () => Promise<unknown>): Promise<void> {
  for (let tried = 1; ; tried++) {
    try {
      await save()
      return
    } catch (error) {
      if (tried === saveTries) throw error
    }
  }
}

const sealed = (relay: Granting, held: Held, text: string): Promise<string> =>
  seal(relay.config.rootKeys, 'grant', ownerOf(held), text)

const ownerOf = ({ owner }: Held): string => ('ref' in owner ? owner.ref : `${owner.tenant}/${owner.agent}`)
const nameOf = (held: Held): string => `${ownerOf(held)} ${held.of}`
const namesOf = ({ owner }: Held) => ('ref' in owner ? { sub: owner.ref } : owner)
