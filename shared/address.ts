// Judges addresses and host names by their value, never by how they are written. Pure: resolves nothing and calls nothing.
import { isIPv4, isIPv6 } from 'node:net'

/** An IP address as the number it is. */
export type Address = { bits: 32 | 128; value: bigint }

/** A CIDR: all addresses that share the first `prefix` bits with `value`. */
export type Range = Address & { prefix: number }

/**
 * Reads an address in standard form: dotted decimal, or RFC 4291 section 2.2 without a zone.
 * Other spellings of IPv4 (octal, hex, short) are the URL parser's business: it rewrites all of them.
 */
export function parseAddress(text: string): Address | undefined {
  if (isIPv4(text)) return { bits: 32, value: join(text.split('.').map(Number), 8) }
  if (!isIPv6(text) || text.includes('%')) return undefined
  const [head = '', tail] = text.split('::')
  const left = groupsOf(head)
  const right = groupsOf(tail ?? '')
  const gap = tail === undefined ? 0 : 8 - left.length - right.length
  return { bits: 128, value: join([...left, ...Array<number>(gap).fill(0), ...right], 16) }
}

/** Whoever has one IPv6 address has its whole /64 (RFC 6177): those count as one. Anything else is itself. */
export function networkOf(source: string): string {
  const address = parseAddress(source)
  return address?.bits === 128 ? `${(address.value >> 64n).toString(16)}::/64` : source
}

/** The 16-bit groups of one side of `::`; a dotted quad at the end counts as two. */
function groupsOf(side: string): number[] {
  if (side === '') return []
  return side.split(':').flatMap(group => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)]
    const quad = Number(join(group.split('.').map(Number), 8))
    return [Math.floor(quad / 0x10000), quad % 0x10000]
  })
}

const join = (parts: number[], bits: number): bigint =>
  parts.reduce((value, part) => (value << BigInt(bits)) | BigInt(part), 0n)

/**
 * Reads CIDRs; an address alone is a range of one.
 * @throws Error naming the one that is none
 */
export const readRanges = (cidrs: readonly string[]): Range[] =>
  cidrs.map(cidr => {
    const [text = '', length, ...more] = cidr.split('/')
    const address = parseAddress(text)
    const prefix = length === undefined ? address?.bits : /^\d{1,3}$/.test(length) ? Number(length) : -1
    if (
      address === undefined ||
      prefix === undefined ||
      prefix < 0 ||
      prefix > address.bits ||
      more.length > 0
    )
      throw new Error(`${cidr} is no address range such as 10.0.0.0/8`)
    return { ...address, prefix }
  })

/** True when the address lies in one of the ranges. An IPv4 range never covers an IPv6 address that embeds IPv4. */
export const isIn = (address: Address, ranges: readonly Range[]): boolean =>
  ranges.some(({ bits, value, prefix }) => {
    const rest = BigInt(bits - prefix)
    return bits === address.bits && value >> rest === address.value >> rest
  })

/** Ranges that are read when first asked for: Node's first look at an IPv6 address costs 8 ms, and a cold start has better use for them. */
function lazily(read: () => Range[]): () => Range[] {
  let ranges: Range[] | undefined
  return () => {
    ranges ??= read()
    return ranges
  }
}

/** What is not the public Internet in IPv4 (IANA IPv4 Special-Purpose Address Registry, RFC 6890). */
export const specialRanges4 = readRanges([
  '0.0.0.0/8', // this network; reaches the local machine on Linux
  '10.0.0.0/8', // private, RFC 1918
  '100.64.0.0/10', // shared by carriers, RFC 6598; holds a cloud's metadata address, 100.100.100.200
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's wire server: looks public, is the host
  '169.254.0.0/16', // link-local; holds the metadata and credential addresses of the clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // IETF protocol assignments; holds 192.0.0.192, a metadata address
  '192.0.2.0/24', // documentation, RFC 5737
  '192.31.196.0/24', // AS112, RFC 7535
  '192.52.193.0/24', // AMT, RFC 7450
  '192.88.99.0/24', // 6to4 relays, RFC 7526
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112, RFC 7534
  '198.18.0.0/15', // benchmarks, RFC 2544
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
])

/**
 * Global unicast is all of IPv6 that may be public (RFC 4291 section 2.4). Loopback, link-local, unique local,
 * site-local, multicast, IPv4-mapped and -compatible (`::/96`), NAT64 (`64:ff9b::/96`), discard and SRv6 lie outside.
 */
const globalUnicast = lazily(() => readRanges(['2000::/3']))

/** What is not public inside global unicast (IANA IPv6 Special-Purpose Address Registry). */
export const specialRanges6 = lazily(() =>
  readRanges([
    '2001::/23', // IETF protocol assignments: Teredo, benchmarks, AMT, ORCHID
    '2001:db8::/32', // documentation, RFC 3849
    '2002::/16', // 6to4, with each IPv4 address in it, RFC 3056
    '2620:4f:8000::/48', // AS112
    '3ffe::/16', // the 6bone, given back (RFC 3701)
    '3fff::/20', // documentation, RFC 9637
  ]),
)

/** True for addresses of the public Internet. */
export const isPublic = (address: Address): boolean =>
  address.bits === 32
    ? !isIn(address, specialRanges4)
    : isIn(address, globalUnicast()) && !isIn(address, specialRanges6())

/** Top-level names that mean a place near us: RFC 6761, RFC 6762, RFC 8375, ICANN's `.internal`, and habits. */
const localSuffixes = [
  'localhost',
  'localdomain',
  'local',
  'internal',
  'intranet',
  'private',
  'corp',
  'home',
  'lan',
  'home.arpa',
]

/** True for names of this machine or its surroundings: single labels, `*.localhost`, metadata hosts and the like. */
export const isLocalName = (name: string): boolean =>
  !name.includes('.') || localSuffixes.some(suffix => `.${name}`.endsWith(`.${suffix}`))

const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/

/** True for a host name as DNS knows it, lower case, without a dot at its end (RFC 1123 section 2.1, and `_`). */
export const isName = (name: string): boolean =>
  name.length <= 253 && name.split('.').every(part => label.test(part))
