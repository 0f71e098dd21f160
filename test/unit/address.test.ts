// Which addresses may be called: the lists of known disguises, each with the case it comes from. A further case costs a line.
import { describe, expect, test } from 'vitest'
import { isName, isPublic, networkOf, parseAddress, readRanges } from '../../shared/address.ts'
import { createNet } from '../../shared/net.ts'

const strict = createNet({ allowHttp: false, allowAddresses: [], allowPorts: [443] })
const laptop = createNet({ allowHttp: true, allowAddresses: ['127.0.0.0/8', '::1/128'], allowPorts: '*' })

const refused: [why: string, ...urls: string[]][] = [
  ['45: plain http', 'http://agent.example/jwks'],
  ['45: a metadata address', 'https://169.254.169.254/jwks'],
  ['45: a file', 'file:///etc/passwd'],
  ['120: IPv4 as one number', 'https://2130706433/', 'https://0x7f000001/', 'https://017700000001/'],
  ['120: IPv4 in hex, octal and short forms', 'https://0x7f.1/', 'https://0177.0.0.1/', 'https://127.1/'],
  ['120: IPv4 with a dot at its end', 'https://127.0.0.1./'],
  ['120: IPv4 as zero', 'https://0/', 'https://0.0/', 'https://0x0/'],
  ['120: a metadata address in hex', 'https://0xa9fea9fe/', 'https://0xA9.0xFE.0xA9.0xFE/'],
  ['121: loopback of IPv6', 'https://[::1]/', 'https://[0:0:0:0:0:0:0:1]/'],
  ['121: IPv4 mapped into IPv6', 'https://[::ffff:127.0.0.1]/', 'https://[::FFFF:7f00:1]/'],
  ['121: a public IPv4 mapped into IPv6', 'https://[::ffff:8.8.8.8]/'],
  ['121: IPv4-compatible IPv6', 'https://[::127.0.0.1]/', 'https://[::a00:1]/', 'https://[::8.8.8.8]/'],
  ['121: IPv4-translated IPv6', 'https://[::ffff:0:127.0.0.1]/'],
  ['121: NAT64', 'https://[64:ff9b::7f00:1]/', 'https://[64:ff9b::8.8.8.8]/', 'https://[64:ff9b:1::a00:1]/'],
  ['121: 6to4', 'https://[2002:7f00:1::]/', 'https://[2002:a9fe:a9fe::1]/'],
  ['121: Teredo', 'https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/'],
  ['121: unique local, multicast, discard', 'https://[fd00::1]/', 'https://[ff02::1]/', 'https://[100::1]/'],
  ['121: documentation and SRv6', 'https://[2001:db8::1]/', 'https://[3fff::1]/', 'https://[5f00::1]/'],
  ['121: a zone', 'https://[fe80::1%25eth0]/'],
  ['122: this network', 'https://0.0.0.0/', 'https://0.1.2.3/'],
  ['122: loopback beyond .1', 'https://127.0.0.2/', 'https://127.255.255.255/'],
  [
    '122: private',
    'https://10.0.0.5/',
    'https://172.16.0.1/',
    'https://172.31.255.255/',
    'https://192.168.1.1/',
  ],
  ['122: shared by carriers', 'https://100.64.0.1/', 'https://100.127.255.255/', 'https://100.100.100.200/'],
  ['122: metadata and credentials', 'https://169.254.169.254/', 'https://169.254.170.2/'],
  ['122: metadata elsewhere', 'https://192.0.0.192/', 'https://[fd00:ec2::254]/', 'https://168.63.129.16/'],
  ['122: benchmarks', 'https://198.18.0.1/', 'https://198.19.255.255/'],
  ['122: documentation', 'https://192.0.2.1/', 'https://198.51.100.1/', 'https://203.0.113.1/'],
  [
    '122: multicast, reserved, broadcast',
    'https://224.0.0.1/',
    'https://240.0.0.1/',
    'https://255.255.255.255/',
  ],
  ['122: unspecified, link-local, site-local', 'https://[::]/', 'https://[fe80::1]/', 'https://[fec0::1]/'],
  [
    '123: localhost',
    'https://localhost/',
    'https://LOCALHOST/',
    'https://a.localhost/',
    'https://ip6-localhost/',
  ],
  ['123: localhost with a dot at its end', 'https://localhost./', 'https://a.localhost./'],
  ['123: metadata names', 'https://metadata.google.internal/', 'https://metadata.google.internal./'],
  ['123: single labels', 'https://intranet/', 'https://instance-data/', 'https://metadata/'],
  [
    '123: names of the surroundings',
    'https://printer.local/',
    'https://nas.lan/',
    'https://a.home.arpa/',
    'https://home.arpa/',
  ],
  [
    '123: names of a company',
    'https://a.internal/',
    'https://a.intranet/',
    'https://a.corp/',
    'https://a.private/',
  ],
  ['123: more names of the surroundings', 'https://localhost.localdomain/', 'https://a.home/'],
  ['123: a public name with a dot at its end', 'https://client.example./'],
  ['123: no name at all', 'https://./', 'https://a..example/', 'https://-a.example/', 'https://a,b.example/'],
  ['124: Unicode digits', 'https://①②⑦.⓪.⓪.①/', 'https://１２７.0.0.1/'],
  ['124: Unicode dots', 'https://127。0。0。1/', 'https://localhost。/'],
  ['124: Unicode letters', 'https://ⓛocalhost/', 'https://ｌocalhost/'],
  [
    '125: credentials',
    'https://user:pw@client.example/',
    'https://user@client.example/',
    'https://:pw@client.example/',
    'https://@client.example/',
    'https://:@client.example/',
  ],
  ['125: a name as the credentials of an address', 'https://client.example@169.254.169.254/'],
  ['126: a tab', 'https://cli\tent.example/'],
  ['126: a line break', 'https://client.example/\r\nX-A: b', 'https://client.example/\nX-A: b'],
  ['126: blanks around', ' https://client.example/', 'https://client.example/ '],
  [
    '126: other controls',
    'https://client.example/\u0000',
    'https://client.example/\u007f',
    '\u0085https://client.example/',
  ],
  [
    '127: other schemes',
    'ftp://client.example/',
    'gopher://client.example/',
    'ws://client.example/',
    'wss://client.example/',
  ],
  [
    '127: schemes without a host',
    'data:text/plain,a',
    'javascript:alert(1)',
    'about:blank',
    'blob:https://client.example/1',
  ],
  [
    '127: other ports',
    'https://client.example:0/',
    'https://client.example:22/',
    'https://client.example:25/',
  ],
  [
    '127: more ports',
    'https://client.example:6379/',
    'https://client.example:8443/',
    'https://client.example:65536/',
  ],
  ['127: the port of http', 'https://client.example:80/'],
  ['not a URL', '', 'client.example', '//client.example/', 'https://', 'https://a b/'],
]

describe('may not be called', () => {
  for (const [why, ...urls] of refused)
    for (const url of urls)
      test(`${why}: ${JSON.stringify(url)}`, () => {
        expect(() => strict.check(url)).toThrow(expect.objectContaining({ fault: 'not_allowed' }))
      })
})

const allowed: [why: string, url: string, normal: string][] = [
  ['a public name', 'https://client.example/a?b=c', 'https://client.example/a?b=c'],
  ['a public address', 'https://8.8.8.8/', 'https://8.8.8.8/'],
  ['a public address of IPv6', 'https://[2606:4700:4700::1111]/', 'https://[2606:4700:4700::1111]/'],
  ['upper case and the usual port', 'HTTPS://Client.Example:443', 'https://client.example/'],
  ['a service name', 'https://_a.client.example/', 'https://_a.client.example/'],
  ['neighbours of private ranges', 'https://172.32.0.1/', 'https://172.32.0.1/'],
  ['124: another alphabet, shown for what it is', 'https://раypal.com/', 'https://xn--ypal-43d9g.com/'],
  [
    '125: a backslash is a slash',
    'https://client.example\\@169.254.169.254/',
    'https://client.example/@169.254.169.254/',
  ],
  ['125: slashes left out', 'https:client.example', 'https://client.example/'],
  ['125: one slash more', 'https:///client.example', 'https://client.example/'],
  ['125: a fragment is not sent', 'https://client.example#@10.0.0.1/', 'https://client.example/'],
  [
    '126: encoded line breaks stay encoded',
    'https://client.example/%0d%0aX-A:b',
    'https://client.example/%0d%0aX-A:b',
  ],
]

describe('may be called, in normal form', () => {
  for (const [why, url, normal] of allowed)
    test(`${why}: ${JSON.stringify(url)}`, () => {
      expect(strict.check(url).href).toBe(normal)
    })
})

describe('a laptop', () => {
  for (const url of [
    'http://localhost:3000/',
    'http://127.0.0.1:80/',
    'https://[::1]:8443/',
    'http://127.1/',
  ])
    test(`may call ${url}`, () => {
      expect(laptop.check(url).protocol).toMatch(/^http/)
    })

  for (const url of [
    'http://10.0.0.1/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::127.0.0.1]/',
    'http://localhost./',
    'http://a:b@localhost/',
    'http://127.0.0.1:0/',
    'ftp://localhost/',
  ])
    test(`may still not call ${url}`, () => {
      expect(() => laptop.check(url)).toThrow(expect.objectContaining({ fault: 'not_allowed' }))
    })
})

/** First and last address of each blocked range, and the public neighbours where there are some. */
const edges: [before: string | undefined, first: string, last: string, after: string | undefined][] = [
  [undefined, '0.0.0.0', '0.255.255.255', '1.0.0.0'],
  ['9.255.255.255', '10.0.0.0', '10.255.255.255', '11.0.0.0'],
  ['100.63.255.255', '100.64.0.0', '100.127.255.255', '100.128.0.0'],
  ['126.255.255.255', '127.0.0.0', '127.255.255.255', '128.0.0.0'],
  ['168.63.129.15', '168.63.129.16', '168.63.129.16', '168.63.129.17'],
  ['169.253.255.255', '169.254.0.0', '169.254.255.255', '169.255.0.0'],
  ['172.15.255.255', '172.16.0.0', '172.31.255.255', '172.32.0.0'],
  ['191.255.255.255', '192.0.0.0', '192.0.0.255', '192.0.1.0'],
  ['192.0.1.255', '192.0.2.0', '192.0.2.255', '192.0.3.0'],
  ['192.31.195.255', '192.31.196.0', '192.31.196.255', '192.31.197.0'],
  ['192.52.192.255', '192.52.193.0', '192.52.193.255', '192.52.194.0'],
  ['192.88.98.255', '192.88.99.0', '192.88.99.255', '192.88.100.0'],
  ['192.167.255.255', '192.168.0.0', '192.168.255.255', '192.169.0.0'],
  ['192.175.47.255', '192.175.48.0', '192.175.48.255', '192.175.49.0'],
  ['198.17.255.255', '198.18.0.0', '198.19.255.255', '198.20.0.0'],
  ['198.51.99.255', '198.51.100.0', '198.51.100.255', '198.51.101.0'],
  ['203.0.112.255', '203.0.113.0', '203.0.113.255', '203.0.114.0'],
  ['223.255.255.255', '224.0.0.0', '255.255.255.255', undefined],
  [undefined, '::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2000::'],
  [
    '2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001::',
    '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001:200::',
  ],
  [
    '2001:db7:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001:db8::',
    '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001:db9::',
  ],
  ['2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2003::'],
  [
    '2620:4f:7fff:ffff:ffff:ffff:ffff:ffff',
    '2620:4f:8000::',
    '2620:4f:8000:ffff:ffff:ffff:ffff:ffff',
    '2620:4f:8001::',
  ],
  [
    '3ffd:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '3ffe::',
    '3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '3fff:1000::',
  ],
  [
    '3ffd:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '3fff::',
    '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff',
    '3fff:1000::',
  ],
  ['3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '4000::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', undefined],
]

describe('blocked ranges end where they end', () => {
  const passes = (text: string | undefined): boolean => {
    const address = parseAddress(text ?? '')
    return address !== undefined && isPublic(address)
  }
  for (const [before, first, last, after] of edges)
    test(`122: ${first} to ${last}`, () => {
      expect([first, last].map(passes)).toEqual([false, false])
      for (const neighbour of [before, after]) expect(passes(neighbour)).toBe(neighbour !== undefined)
    })
})

describe('addresses', () => {
  const values: [text: string, value: bigint | undefined][] = [
    ['0.0.0.0', 0n],
    ['1.2.3.4', 0x01020304n],
    ['255.255.255.255', 0xffffffffn],
    ['::', 0n],
    ['::1', 1n],
    ['1::', 1n << 112n],
    ['1:2:3:4:5:6:7:8', 0x00010002000300040005000600070008n],
    ['1::8', (1n << 112n) | 8n],
    ['::ffff:1.2.3.4', 0xffff01020304n],
    ['64:ff9b::255.0.0.1', (0x64n << 112n) | (0xff9bn << 96n) | 0xff000001n],
    ['::127.0.0.1%1', undefined],
    ['fe80::1%eth0', undefined],
    ['1.2.3', undefined],
    ['01.2.3.4', undefined],
    ['1.2.3.256', undefined],
    ['1::2::3', undefined],
    ['', undefined],
  ]
  for (const [text, value] of values)
    test(`${text || 'nothing'} is ${value === undefined ? 'no address' : `0x${value.toString(16)}`}`, () => {
      expect(parseAddress(text)?.value).toBe(value)
    })

  for (const cidr of [
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/',
    '10.0.0.0/-1',
    'localhost',
    '10.0/8',
    '10.0.0.0/8x',
    '',
  ])
    test(`${cidr || 'nothing'} is no range, and settings that name it do not start`, () => {
      expect(() => readRanges([cidr])).toThrow('no address range')
      expect(() => createNet({ allowHttp: false, allowAddresses: [cidr], allowPorts: [443] })).toThrow()
    })

  test('names are bounded as DNS bounds them', () => {
    expect(isName(`${'a'.repeat(63)}.example`)).toBe(true)
    expect(isName(`${'a'.repeat(64)}.example`)).toBe(false)
    expect(isName(`${'a.'.repeat(125)}abc`)).toBe(true)
    expect(isName(`${'a.'.repeat(125)}abcd`)).toBe(false)
  })
})

test('all addresses of one /64 are one source, and anything else is itself', () => {
  expect(networkOf('2001:db8:1:1::7')).toBe(networkOf('2001:db8:1:1:ffff::1'))
  expect(networkOf('2001:db8:1:1::7')).not.toBe(networkOf('2001:db8:1:2::7'))
  expect(networkOf('192.0.2.7')).toBe('192.0.2.7')
  expect(networkOf('unknown')).toBe('unknown')
})
