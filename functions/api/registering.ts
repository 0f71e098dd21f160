// What registering an agent asks for, and how the agent is found and judged before anything is stored.
import * as z from 'zod'
import { type Choice, chooseInterface, fetchCard, readCard } from '../../shared/a2a/card.ts'
import { sealCredentials } from '../../shared/calling.ts'
import { invalidField, RouseError } from '../../shared/errors.ts'
import { idOf } from '../../shared/hash.ts'
import { algorithms } from '../../shared/jwks.ts'
import { limits } from '../../shared/limits.ts'
import type { Agent, Verification } from '../../shared/model.ts'
import { NetError } from '../../shared/net.ts'
import type { Relay } from '../../shared/relay.ts'
import { CredentialsRequest, judged } from './credentials.ts'
import { Id, TaskId, Text } from './input.ts'
import { allowedUrl } from './targets.ts'

export const JwtRequest = z.strictObject({
  jwksUrl: z.string().max(2048),
  issuer: Text.min(1).max(2048).optional(),
  audience: Text.min(1).max(2048).optional(),
  algorithms: z
    .array(z.enum(algorithms))
    .min(1)
    .max(algorithms.length)
    .default([...algorithms]),
  digest: z.enum(['required', 'optional']).default('optional'),
  windowSeconds: z.number().int().min(30).max(3600).default(300),
  skewSeconds: z.number().int().min(0).max(300).default(60),
})

/** No header is inside what a JWT signs, so none can tell how old a push is; whoever asks for one is told. */
const timestampHeader = z
  .never('Not taken: a header is not inside what is signed; iat and exp of the JWT tell the age')
  .optional()

const VerificationRequest = z.strictObject({
  timestampHeader,
  jwt: JwtRequest.extend({ timestampHeader }).optional(),
  token: z.boolean().optional(),
  authorization: z.enum(['Bearer', 'Basic']).optional(),
})

const longestUrl = 2048

/** A2A's tenant as a card may name it: it becomes a segment of a path. */
const CardTenant = TaskId.refine(name => name !== '.' && name !== '..')

const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text

export const AgentRequest = z.strictObject({
  cardUrl: z.string().max(longestUrl).optional(),
  card: z.looseObject({}).optional(),
  url: z.string().max(longestUrl).optional(),
  binding: z.enum(['JSONRPC', 'HTTP+JSON']).optional(),
  version: z.enum(['1.0', '0.3']).optional(),
  pushNotifications: z.boolean().optional(),
  agentTenant: Id.optional(),
  origins: z
    .array(z.string().max(300).refine(isOrigin, 'Expected an origin such as https://agent.example'))
    .max(limits.originsOfAgent)
    .default([]),
  credentials: CredentialsRequest.nullable().optional(),
  verification: VerificationRequest.optional(),
  floorSeconds: z
    .number()
    .int()
    .min(60)
    .max(6 * 60 * 60)
    .optional(),
  maxConcurrentCalls: z.number().int().min(1).max(limits.mostCallsOfAgent).optional(),
  offline: z.boolean().default(false),
})

export type AgentRequest = z.infer<typeof AgentRequest>

export async function makeAgent(
  relay: Relay,
  name: Pick<Agent, 'tenant' | 'agent'>,
  asked: AgentRequest,
  before: Agent | undefined,
): Promise<Agent> {
  const verification = verificationOf(relay, asked.verification)
  const found = await findAgent(relay, asked)
  const url = allowedUrl(relay, found.url, found.pointer)
  const kept = await credentialsOf(relay, name, asked, before)
  const { jwksUrl } = verification.jwt ?? {}
  const origins = pinned(relay, name, asked, before, [url, found.cardUrl, jwksUrl, kept.tokenOrigin])
  stayHome(url, asked, before)
  const now = relay.now()
  const agentTenant = asked.agentTenant ?? found.agentTenant
  const pushes = asked.pushNotifications ?? found.pushes
  return {
    ...name,
    etag: idOf('etag', now, Buffer.from(relay.random(9)).toString('base64url')),
    createdAt: before?.createdAt ?? now,
    updatedAt: now,
    // A cut may leave half of a surrogate pair.
    ...(found.name !== undefined && { name: found.name.slice(0, 200).toWellFormed() }),
    ...(found.cardUrl !== undefined && { cardUrl: found.cardUrl }),
    url,
    binding: found.binding,
    version: found.version,
    ...(agentTenant !== undefined && { agentTenant }),
    origins,
    pushes,
    streams: found.streams,
    road: pushes ? 'push' : 'poll',
    ...(asked.floorSeconds !== undefined && { floorSeconds: asked.floorSeconds }),
    ...(asked.maxConcurrentCalls !== undefined && { maxConcurrentCalls: asked.maxConcurrentCalls }),
    ...kept,
    verification,
  }
}

/** The credentials that the agent is called with from now on: those that stand unless others are asked for, or none. */
async function credentialsOf(
  relay: Relay,
  name: Pick<Agent, 'tenant' | 'agent'>,
  asked: AgentRequest,
  before: Agent | undefined,
): Promise<Pick<Agent, 'credentials' | 'tokenOrigin'>> {
  if (asked.credentials === null) return {}
  if (asked.credentials !== undefined) {
    const { credentials, ...at } = judged(relay, asked.credentials, '/credentials')
    return { credentials: await sealCredentials(relay, { agent: name }, credentials), ...at }
  }
  return {
    ...(before?.credentials !== undefined && { credentials: before.credentials }),
    ...(before?.tokenOrigin !== undefined && { tokenOrigin: before.tokenOrigin }),
  }
}

/** Credentials that stand were given for where the agent was: whoever moves it must know them, or take them away by `null`. */
function stayHome(url: string, { credentials }: AgentRequest, before: Agent | undefined): void {
  if (credentials !== undefined || before?.credentials === undefined) return
  const { origin } = new URL(url)
  if (before.origins.includes(origin)) return
  throw invalidField('/credentials', `Required anew, or null: those that stand were not given for ${origin}`)
}

type Found = Choice & { name?: string; pushes: boolean; streams: boolean; cardUrl?: string; pointer: string }

/** Finds the agent one of three ways: by its card's address, by its card, or by hand. */
async function findAgent(relay: Relay, asked: AgentRequest): Promise<Found> {
  const ways = [asked.cardUrl, asked.card, asked.url].filter(way => way !== undefined)
  if (ways.length !== 1)
    throw invalidField('', 'Expected one of cardUrl, card, or url with binding and version')
  for (const field of ['binding', 'version'] as const)
    if (asked.url === undefined && asked[field] !== undefined)
      throw invalidField(`/${field}`, 'Only together with url: a card says it itself')
  if (asked.cardUrl !== undefined) {
    const fetched = await fetchCard(relay.net, allowedUrl(relay, asked.cardUrl, '/cardUrl'))
    if (!fetched.ok)
      throw new RouseError(fetched.code, { fields: [{ pointer: '/cardUrl', detail: wordsOf(fetched) }] })
    return { ...chosen(fetched.card, '/cardUrl'), cardUrl: fetched.cardUrl }
  }
  if (asked.card !== undefined) {
    const read = readCard(asked.card)
    if (!read.ok)
      throw new RouseError('agent_card_unreadable', { fields: [{ pointer: '/card', detail: read.why }] })
    const found = chosen(read.card, '/card')
    await reach(relay, found.url, '/card', asked.offline)
    return found
  }
  const { url = '', binding, version, pushNotifications = true } = asked
  if (binding === undefined) throw invalidField('/binding', 'Required together with url')
  if (version === undefined) throw invalidField('/version', 'Required together with url')
  await reach(relay, url, '/url', asked.offline)
  return { url, binding, version, pushes: pushNotifications, streams: false, pointer: '/url' }
}

/** Whoever registers an address learns no more than that it may not be called or does not answer. */
const wordsOf = (fetched: { code: string; why: string }): string =>
  fetched.code === 'agent_card_unreadable' ? fetched.why : 'Not allowed or not reachable'

function chosen(card: Parameters<typeof chooseInterface>[0], pointer: string): Found {
  const choice = chooseInterface(card)
  if (!choice.ok) throw new RouseError('agent_card_unreadable', { fields: [{ pointer, detail: choice.why }] })
  const { url, agentTenant } = choice.choice
  const why =
    url.length > longestUrl
      ? `The URL of its interface has more than ${longestUrl} characters.`
      : agentTenant !== undefined && !CardTenant.safeParse(agentTenant).success
        ? 'The tenant of its interface is no name of 1 to 256 bytes.'
        : undefined
  if (why !== undefined) throw new RouseError('agent_card_unreadable', { fields: [{ pointer, detail: why }] })
  const { pushes, streams, name } = card
  return { ...choice.choice, ...(name !== undefined && { name }), pushes, streams, pointer }
}

/** An agent given by hand must answer something, unless the caller says that it is off line. */
async function reach(relay: Relay, url: string, pointer: string, offline: boolean): Promise<void> {
  const address = allowedUrl(relay, url, pointer)
  if (offline) return
  try {
    await relay.net.request({ url: address, timeoutMs: 5000, maxBytes: 64 * 1024 })
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    if (error.fault === 'too_large') return
    const code = error.fault === 'not_allowed' ? 'address_not_allowed' : 'agent_unreachable'
    throw new RouseError(code, { fields: [{ pointer, detail: 'Not allowed or not reachable' }] })
  }
}

function verificationOf(relay: Relay, asked: AgentRequest['verification']): Verification {
  const { jwt, token, authorization } = asked ?? { token: true, authorization: 'Bearer' as const }
  if (jwt === undefined) {
    if (token !== true && authorization === undefined)
      throw invalidField('/verification', 'Expected jwt, token or authorization')
    return { ...(token === true && { token }), ...(authorization !== undefined && { authorization }) }
  }
  if (token === true || authorization !== undefined)
    throw invalidField('/verification', 'With jwt no token and no authorization is handed out')
  if (jwt.digest !== 'required' && jwt.issuer === undefined)
    throw invalidField('/verification/jwt/issuer', 'Required unless digest is required')
  const { issuer, audience, timestampHeader: _, ...rest } = jwt
  return {
    jwt: {
      ...rest,
      jwksUrl: allowedUrl(relay, jwt.jwksUrl, '/verification/jwt/jwksUrl'),
      ...(issuer !== undefined && { issuer }),
      ...(audience !== undefined && { audience }),
    },
  }
}

/**
 * Pins the origins. One that is new to a registered agent is refused unless the request names it: credentials never
 * move by a card's word. Whoever names origins at the first registration means no others.
 */
function pinned(
  relay: Relay,
  name: Pick<Agent, 'tenant' | 'agent'>,
  asked: AgentRequest,
  known: Agent | undefined,
  urls: (string | undefined)[],
): string[] {
  const used = new Set(urls.filter(url => url !== undefined).map(url => new URL(url).origin))
  const before = known?.origins ?? []
  if (known === undefined && asked.origins.length === 0) return [...used]
  const strange = [...used].filter(origin => !before.includes(origin) && !asked.origins.includes(origin))
  if (strange.length === 0) return [...used]
  relay.log({ step: 'agent.origin_refused', ...name, origins: strange, pinned: before })
  throw new RouseError('origin_changed', {
    detail: `Not pinned: ${strange.join(', ')}. Name them in origins to move the agent there.`,
    fields: [{ pointer: '/origins', detail: `Pinned are ${before.join(', ') || 'those named here'}` }],
  })
}
