// Reads agent cards of both versions and chooses the interface to call. Fetches by the `net` it is given and keeps nothing.
import type { Binding, ProtocolVersion } from '../model.ts'
import { type Net, NetError } from '../net.ts'
import { isRecord, parseBody } from './read.ts'

/** One way to call an agent, as its card says it; `binding` and `version` may be ones that Rouse does not speak. */
type Interface = { url: string; binding: string; version: string; tenant?: string }

/** What Rouse needs of a card. */
export type Card = {
  name?: string
  pushes: boolean
  streams: boolean
  /** In the card's order of preference. */
  interfaces: Interface[]
}

/** The chosen way to call an agent. */
export type Choice = { url: string; binding: Binding; version: ProtocolVersion; agentTenant?: string }

type Refusal = { ok: false; why: string }

/**
 * Reads a card: v1.0 (`supportedInterfaces`, section 4.4.1), v0.3 (`url`, `preferredTransport`,
 * `additionalInterfaces`), or both in one document, as servers with a compatibility layer write it.
 */
export function readCard(json: unknown): { ok: true; card: Card } | Refusal {
  if (!isRecord(json)) return { ok: false, why: 'The card is no JSON object.' }
  const interfaces = [...readInterfaces(json.supportedInterfaces, '1.0'), ...readOlder(json)]
  if (interfaces.length === 0) return { ok: false, why: 'The card names no interface with a URL.' }
  const capabilities = isRecord(json.capabilities) ? json.capabilities : {}
  return {
    ok: true,
    card: {
      ...(isText(json.name) && { name: json.name }),
      pushes: capabilities.pushNotifications === true,
      streams: capabilities.streaming === true,
      interfaces,
    },
  }
}

/** Chooses v1.0 before v0.3 and, within a version, the first interface of the card that Rouse speaks (section 8.3.2). */
export function chooseInterface(card: Card): { ok: true; choice: Choice } | Refusal {
  for (const version of ['1.0', '0.3'] as const)
    for (const { url, binding, version: offered, tenant } of card.interfaces)
      if (offered === version && isSpoken(binding) && isHttp(url))
        return {
          ok: true,
          choice: { url, binding, version, ...(tenant !== undefined && { agentTenant: tenant }) },
        }
  const offers = [
    ...new Set(card.interfaces.map(({ binding, version }) => `${binding} ${version}`.slice(0, 60))),
  ]
  return {
    ok: false,
    why: `The card offers ${offers.slice(0, 5).join(', ')} only; Rouse speaks JSONRPC and HTTP+JSON of A2A 1.0 and 0.3.`,
  }
}

/** A card with the address it was found at, or the code of a refusal (shared/errors.ts) and why. */
export type Fetched =
  | { ok: true; card: Card; cardUrl: string }
  | { ok: false; code: 'agent_unreachable' | 'agent_card_unreadable' | 'address_not_allowed'; why: string }

/**
 * Fetches a card.
 * @param address the card's URL, or the agent's (no path, or one that ends in `/`), below which the well-known paths are tried
 */
export async function fetchCard(net: Net, address: string): Promise<Fetched> {
  let refusal: Fetched = unreadable('No card was found.')
  for (const cardUrl of candidates(address)) {
    const fetched = await fetchOne(net, cardUrl)
    if (fetched.ok || fetched.code !== 'agent_card_unreadable') return fetched
    refusal = fetched
  }
  return refusal
}

async function fetchOne(net: Net, cardUrl: string): Promise<Fetched> {
  try {
    const headers = { 'A2A-Version': '1.0', Accept: 'application/json, application/a2a+json' }
    const { status, body } = await net.request({ url: cardUrl, headers, ...limits })
    if (status >= 300 && status < 400) return unreadable('The card has moved; give its new address.')
    if (status !== 200) return unreadable(`The card's address answered HTTP ${status}.`)
    const parsed = parseBody(body)
    const read = parsed.ok ? readCard(parsed.value) : parsed
    return read.ok ? { ok: true, card: read.card, cardUrl } : unreadable(read.why)
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    if (error.fault === 'too_large') return unreadable('The card is too large.')
    const code = error.fault === 'not_allowed' ? 'address_not_allowed' : 'agent_unreachable'
    return { ok: false, code, why: error.message }
  }
}

const limits = { timeoutMs: 10_000, maxBytes: 1024 * 1024 }

const unreadable = (why: string): Fetched => ({ ok: false, code: 'agent_card_unreadable', why })

/** `agent-card.json` since 0.3.0, `agent.json` before. */
function candidates(address: string): string[] {
  if (!URL.canParse(address)) return [address]
  const url = new URL(address)
  if (!url.pathname.endsWith('/')) return [address]
  return ['agent-card.json', 'agent.json'].map(name => new URL(`.well-known/${name}`, url).href)
}

function readInterfaces(list: unknown, fallback: string): Interface[] {
  if (!Array.isArray(list)) return []
  return list.filter(isRecord).flatMap(({ url, protocolBinding, protocolVersion, tenant }) =>
    isText(url) && isText(protocolBinding)
      ? [
          {
            url,
            binding: protocolBinding.toUpperCase(),
            version: shorten(isText(protocolVersion) ? protocolVersion : fallback),
            // Proto's unset string is the empty one.
            ...(isText(tenant) && { tenant }),
          },
        ]
      : [],
  )
}

/** The v0.3 half: the main URL first, then the others. `preferredTransport` is JSONRPC unless said (v0.3 section 5.5). */
function readOlder(json: Record<string, unknown>): Interface[] {
  if (!isText(json.url)) return []
  const version = shorten(isText(json.protocolVersion) ? json.protocolVersion : '0.3')
  const main = { url: json.url, transport: json.preferredTransport ?? 'JSONRPC' }
  const others: unknown[] = Array.isArray(json.additionalInterfaces) ? json.additionalInterfaces : []
  return [main, ...others]
    .filter(isRecord)
    .flatMap(({ url, transport }) =>
      isText(url) && isText(transport) ? [{ url, binding: transport.toUpperCase(), version }] : [],
    )
}

/** Only major and minor count (section 3.6); the 0.2 series speaks the same JSON-RPC as 0.3. */
function shorten(version: string): string {
  const [major, minor = '0'] = version.trim().split('.')
  return major === '0' && minor === '2' ? '0.3' : `${major}.${minor}`
}

const isSpoken = (binding: string): binding is Binding => binding === 'JSONRPC' || binding === 'HTTP+JSON'

const isHttp = (url: string): boolean => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
