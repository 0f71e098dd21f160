// The item `grant` beside credentials of OAuth2: the access token in use, the latest refresh token, both sealed, and who may renew them. Renews nothing.
import { agentGrantKey, type Key, subscriptionGrantKey } from './keys.ts'
import { get, put, remove, type Table, update, type Written } from './table.ts'

/** Whose credentials they are. */
export type GrantOwner = { tenant: string; agent: string } | { ref: string }

/** Times are ms since 1970. */
export type Grant = {
  /** Names the credentials it belongs to: other credentials begin anew. */
  of: string
  /** JWE of the access token, and until when it is used. */
  access?: string
  until?: number
  /** Until when it may be used while somebody else renews it. */
  ends?: number
  /**
   * Until when this token is not renewed though the agent refuses it, for it came of such a refusal; how often that time
   * was doubled, and, if the token was refused within it, how often it is for the next.
   */
  sparedUntil?: number
  doubled?: number
  doubles?: number
  /** JWE of the latest refresh token, where the server rotated it. */
  refresh?: string
  /** Who renews it now, and until when. It stays when he died. */
  holder?: string
  lease: number
  /** Why it could not be renewed, how often in a row, and before when it is not tried again. */
  fault?: string
  failures: number
  nextTry: number
  /** Since when it could not, and since when that was when it was told. */
  failingSince?: number
  told?: number
  /** These credentials are no good any more. */
  spent?: boolean
}

/** What a renewal came to. */
type Renewed = Required<Pick<Grant, 'access' | 'until' | 'ends'>> & {
  refresh: string | undefined
  spared: Required<Pick<Grant, 'sparedUntil' | 'doubled'>> | undefined
}

const keptSeconds = 90 * 24 * 60 * 60

const keyOf = (owner: GrantOwner): Key =>
  'ref' in owner ? subscriptionGrantKey(owner.ref) : agentGrantKey(owner.tenant, owner.agent)

export const getGrant = (table: Table, owner: GrantOwner): Promise<Grant | undefined> =>
  get<Grant>(table, keyOf(owner))

export const removeGrant = (table: Table, owner: GrantOwner): Promise<boolean> => remove(table, keyOf(owner))

/**
 * Takes the right to renew: of many workers one gets it, so that no refresh token is used twice.
 * @param seen the grant as it was read; undefined if there was none
 * @param ours whether it is of these credentials; one of others is replaced
 * @returns the grant under its new holder, or undefined when somebody else has it or renewed it meanwhile
 */
export async function leaseGrant(
  table: Table,
  owner: GrantOwner,
  of: string,
  seen: Grant | undefined,
  ours: boolean,
  at: { now: number; until: number },
): Promise<Grant | undefined> {
  const holder = table.nonce()
  const ttl = Math.ceil(at.now / 1000) + keptSeconds
  if (seen === undefined || !ours) {
    // What was told of those before it is taken back when these serve.
    const told = seen?.told === undefined ? {} : { told: seen.told }
    const fresh: Grant = { of, holder, lease: at.until, failures: 0, nextTry: 0, ...told }
    const made = await put<Grant>(
      table,
      { ...keyOf(owner), ...fresh, ttl },
      seen === undefined ? 'attribute_not_exists(#pk)' : '#of = :seen',
      { seen: seen?.of },
    )
    return made.ok ? fresh : undefined
  }
  const unchanged = seen.until === undefined ? 'attribute_not_exists(#until)' : '#until = :seen'
  const leased = await update<Grant>(
    table,
    keyOf(owner),
    'SET #of = :of, #holder = :holder, #lease = :until, #ttl = :ttl',
    { of, was: seen.of, holder, ttl, until: at.until, now: at.now, seen: seen.until },
    `#of = :was AND #lease < :now AND ${unchanged}`,
  )
  // Our own first attempt went through, and somebody wrote something else before the SDK's second.
  const item = leased.ok ? leased.item : leased.old
  return item !== undefined && item.holder === holder ? item : undefined
}

/** Saves what was renewed. A refresh token that did not change stays; `spared` is for a token that came of a refusal. */
export async function saveGrant(
  table: Table,
  owner: GrantOwner,
  { of, holder }: Grant,
  { spared, ...renewed }: Renewed,
): Promise<boolean> {
  const set = [
    '#access = :access, #until = :until, #ends = :ends, #lease = :zero, #failures = :zero, #nextTry = :zero',
    renewed.refresh === undefined ? '' : ', #refresh = :refresh',
    spared === undefined ? '' : ', #sparedUntil = :sparedUntil, #doubled = :doubled',
  ]
  const gone = [
    '#fault, #spent, #failingSince, #doubles',
    spared === undefined ? ', #sparedUntil, #doubled' : '',
  ]
  const { ok } = await update<Grant>(
    table,
    keyOf(owner),
    `SET ${set.join('')} REMOVE ${gone.join('')}`,
    { ...renewed, ...spared, zero: 0, of, holder },
    '#of = :of AND #holder = :holder',
  )
  return ok
}

/** Saves a refresh token that came with no access token of use. */
export const keepRefresh = (
  table: Table,
  owner: GrantOwner,
  { of, holder }: Grant,
  refresh: string,
): Promise<Written<Grant>> =>
  update<Grant>(
    table,
    keyOf(owner),
    'SET #refresh = :refresh',
    { refresh, of, holder },
    '#of = :of AND #holder = :holder',
  )

/** Notes, once a token, that the agent refuses it within the time for which it is not renewed. */
export const noteRefused = (
  table: Table,
  owner: GrantOwner,
  { of, until, doubled = 0 }: Grant,
): Promise<Written<Grant>> =>
  update<Grant>(
    table,
    keyOf(owner),
    'SET #doubles = :doubles',
    { doubles: doubled + 1, of, until },
    '#of = :of AND #until = :until AND attribute_not_exists(#doubles)',
  )

/** Records why it could not be renewed. */
export async function failGrant(
  table: Table,
  owner: GrantOwner,
  { of, holder, failures }: Grant,
  failed: { fault: string; nextTry: number; spent: boolean; failingSince: number; told?: number },
): Promise<boolean> {
  const { ok } = await update<Grant>(
    table,
    keyOf(owner),
    `SET #fault = :fault, #nextTry = :nextTry, #spent = :spent, #failingSince = :failingSince, #failures = :failures, #lease = :zero${failed.told === undefined ? '' : ', #told = :told'}`,
    { ...failed, failures: failures + 1, zero: 0, of, holder },
    '#of = :of AND #holder = :holder',
  )
  return ok
}

/** Notes that what was told of its failing was taken back. */
export const forgetTold = (table: Table, owner: GrantOwner, told: number): Promise<Written<Grant>> =>
  update<Grant>(table, keyOf(owner), 'REMOVE #told', { told }, '#told = :told')

/** Lets it be renewed again, because its credentials were put once more, perhaps the same. */
export const pardonGrant = (table: Table, owner: GrantOwner): Promise<Written<Grant>> =>
  update<Grant>(
    table,
    keyOf(owner),
    'SET #nextTry = :zero REMOVE #spent, #sparedUntil, #doubled, #doubles',
    { zero: 0 },
    'attribute_exists(#pk)',
  )
