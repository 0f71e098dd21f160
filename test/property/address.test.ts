// No address of a blocked range passes, however it is written and wherever it comes from.
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'
import {
  isPublic,
  parseAddress,
  type Range,
  readRanges,
  specialRanges4,
  specialRanges6,
} from '../../shared/address.ts'
import { createNet } from '../../shared/net.ts'

const rules = { allowHttp: false, allowAddresses: [], allowPorts: [443] }

/** All of IPv6 that is not 2000::/3, as ranges. */
const outside = readRanges(['::/3', '4000::/2', '8000::/1'])

const within = ({ bits, value, prefix }: Range): fc.Arbitrary<bigint> => {
  const size = 1n << BigInt(bits - prefix)
  const base = (value / size) * size
  // Edges first: that is where a range is off by one.
  return fc.oneof(fc.constant(base), fc.constant(base + size - 1n), fc.bigInt(base, base + size - 1n))
}

const anyOf = (ranges: Range[]): fc.Arbitrary<bigint> => fc.oneof(...ranges.map(within))

const octets = (value: bigint): number[] => [24n, 16n, 8n, 0n].map(shift => Number((value >> shift) & 255n))

const number = fc.constantFrom(
  (part: number) => String(part),
  (part: number) => `0${part.toString(8)}`,
  (part: number) => `000${part.toString(8)}`,
  (part: number) => `0x${part.toString(16)}`,
  (part: number) => `0X${part.toString(16).toUpperCase()}`,
)

/** Every spelling of an IPv4 address that URL parsers know: one to four parts, each in decimal, octal or hex. */
const spelling4 = (value: bigint): fc.Arbitrary<string> =>
  fc
    .tuple(fc.integer({ min: 1, max: 4 }), fc.array(number, { minLength: 4, maxLength: 4 }))
    .map(([count, as]) => {
      const parts = octets(value).slice(0, count - 1)
      const rest = Number(value & ((1n << BigInt(8 * (5 - count))) - 1n))
      return [...parts, rest].map((part, index) => as[index]?.(part) ?? String(part)).join('.')
    })

const groups = (value: bigint): string[] =>
  Array.from({ length: 8 }, (_, index) => ((value >> BigInt(112 - 16 * index)) & 0xffffn).toString(16))

/** Spellings of an IPv6 address: whole, padded, shortened, upper case, with a dotted quad at its end. */
const spelling6 = (value: bigint): fc.Arbitrary<string> => {
  const whole = groups(value)
  const quad = octets(value & 0xffffffffn).join('.')
  const short = ipaddr.parse(whole.join(':')).toString()
  return fc.constantFrom(
    whole.join(':'),
    whole.map(group => group.padStart(4, '0')).join(':'),
    whole.join(':').toUpperCase(),
    short,
    [...whole.slice(0, 6), quad].join(':'),
  )
}

const standard = (bits: 32 | 128, value: bigint): string =>
  bits === 32 ? octets(value).join('.') : groups(value).join(':')

const refuses = expect.objectContaining({ fault: 'not_allowed' })

describe('blocked ranges', () => {
  test('no spelling of a blocked IPv4 address passes in a URL', () => {
    const spelled = anyOf(specialRanges4).chain(spelling4)
    fc.assert(
      fc.property(spelled, text => {
        expect(() => createNet(rules).check(`https://${text}/`)).toThrow(refuses)
      }),
      { numRuns: 2000 },
    )
  })

  test('no spelling of a blocked IPv6 address passes in a URL', () => {
    const spelled = anyOf([...specialRanges6(), ...outside]).chain(spelling6)
    fc.assert(
      fc.property(spelled, text => {
        expect(() => createNet(rules).check(`https://[${text}]/`)).toThrow(refuses)
      }),
      { numRuns: 2000 },
    )
  })

  test('no IPv4 address passes inside an IPv6 address that only wraps it', () => {
    const wraps = ['::', '::ffff:', '::ffff:0:', '64:ff9b::', '64:ff9b:1::', 'fe80::5efe:']
    const wrapped = fc.tuple(fc.constantFrom(...wraps), fc.bigInt(0n, 0xffffffffn))
    fc.assert(
      fc.property(wrapped, ([wrap, value]) => {
        const text = `${wrap}${octets(value).join('.')}`
        expect(() => createNet(rules).check(`https://[${text}]/`)).toThrow(refuses)
      }),
    )
  })

  test('no name passes that resolves to a blocked address, be it one among good ones', async () => {
    const bad = fc.oneof(
      anyOf(specialRanges4).map(value => standard(32, value)),
      anyOf([...specialRanges6(), ...outside]).map(value => standard(128, value)),
    )
    const good = fc.subarray(['8.8.8.8', '2606:4700:4700::1111'])
    await fc.assert(
      fc.asyncProperty(bad, good, fc.boolean(), async (address, others, first) => {
        const found = (first ? [address, ...others] : [...others, address]).map(text => ({
          address: text,
          family: text.includes(':') ? 6 : 4,
        }))
        const net = createNet(rules, { lookup: async () => found })
        const asked = net.request({ url: 'https://client.example/', timeoutMs: 1000, maxBytes: 1 })
        await expect(asked).rejects.toThrow(refuses)
      }),
    )
  })

  test('whatever another library calls special is not public here', () => {
    const any = fc.oneof(
      fc.bigInt(0n, (1n << 32n) - 1n).map(value => standard(32, value)),
      fc.bigInt(0n, (1n << 128n) - 1n).map(value => standard(128, value)),
      fc.bigInt(1n << 125n, (1n << 126n) - 1n).map(value => standard(128, value)),
      fc.bigInt(0x2001n << 112n, (0x2003n << 112n) - 1n).map(value => standard(128, value)),
    )
    fc.assert(
      fc.property(any, text => {
        const address = parseAddress(text)
        const special = ipaddr.parse(text).range() !== 'unicast'
        expect(special && address !== undefined && isPublic(address)).toBe(false)
      }),
      { numRuns: 5000 },
    )
  })

  test('an address is read as the number it is', () => {
    const any = fc.oneof(
      fc.bigInt(0n, (1n << 32n) - 1n).map(value => [standard(32, value), value] as const),
      fc.bigInt(0n, (1n << 128n) - 1n).chain(value => spelling6(value).map(text => [text, value] as const)),
    )
    fc.assert(
      fc.property(any, ([text, value]) => {
        expect(parseAddress(text)?.value).toBe(value)
      }),
    )
  })
})
