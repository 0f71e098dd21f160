// Proves the walls of the house by reading every import and every line: who may know whom, what occurs in one file only.
import { describe, expect, test } from 'vitest'
import { doors } from '../infra/topology.ts'
import { type Import, reach, readSources, type Source, sourceOf } from './support/sources.ts'

type Rule = {
  /** The guarantee, as the test's name. */
  name: string
  /** What in a file, one of all, breaks the rule; nothing if it keeps it. */
  breaks: (source: Source, all: readonly Source[]) => string[]
  /** Files that break the rule and are caught, by path, each with its text. */
  caught: Record<string, string>
  /** Another file that must stand there for them to break it. */
  beside?: Record<string, string>
}

const product = readSources('functions', 'shared', 'infra')
const doorFiles = Object.values(doors).map(door => door.handler.replace(/\.\w+$/, '.ts'))

const actsNot = ({ from, names }: Import): boolean => {
  const safe = packages[from]?.pure ?? []
  return safe === 'all' || (names.length > 0 && names.every(name => safe.includes(name)))
}

const inside = (path: string, places: readonly string[]): boolean =>
  places.some(place => (place.endsWith('/') ? path.startsWith(place) : path === place))

const imports =
  (wrong: (found: Import, source: Source, all: readonly Source[]) => boolean): Rule['breaks'] =>
  (source, all) =>
    source.imports.filter(found => wrong(found, source, all)).map(found => `imports ${found.from}`)

const ours = (wrong: (to: string, from: string, all: readonly Source[]) => boolean): Rule['breaks'] =>
  imports((found, source, all) => found.ours && wrong(found.from, source.path, all))

/** What doors have in common: how Lambda calls them. */
const shape = ['functions/lambda.ts', 'functions/request.ts']

/** How many doors and rooms import a file of ours. */
const importers = (all: readonly Source[], path: string): number =>
  all.filter(({ imports: found }) => found.some(({ from }) => from === path)).length

/** From the first matching place: what files there may import of ours. */
const layers: [place: string, mayImport: string[]][] = [
  ['shared/', ['shared/']],
  ['functions/', ['functions/', 'shared/']],
  ['infra/local/', ['infra/local/', 'infra/topology.ts', 'functions/', 'shared/']],
  ['infra/topology.ts', []],
  ['infra/', ['infra/']],
]

/** Rooms that the local ground may not know: it runs the doors, it does not do their work. */
const work = [
  'shared/store/',
  'shared/policy.ts',
  'shared/verify.ts',
  'shared/publish.ts',
  'shared/channels/',
]

/** Rooms that must be pure, whatever they say themselves; any other that says so must be, too. */
const pure = [
  'errors hash hooks jwks jwt messages model policy reasons seal verify',
  'a2a/read a2a/task channels/channel channels/standard store/keys',
].flatMap(names => names.split(' ').map(name => `shared/${name}.ts`))
const saysPure = (source: Source | undefined): boolean =>
  /\bPure\b/.test(source?.text.split('\n', 1)[0] ?? '')
const isPure = (path: string): boolean =>
  pure.includes(path) || saysPure(product.find(source => source.path === path))

/** Every package that doors and rooms use, where, and what in it acts on nothing by itself: all of it or some names. */
const packages: Record<string, { in: string[]; pure?: 'all' | string[] }> = {
  '@aws-sdk/client-dynamodb': { in: ['shared/relay.ts', 'shared/store/table.ts'] },
  '@aws-sdk/client-sqs': { in: ['shared/dead.ts', 'shared/queue.ts', 'shared/relay.ts'] },
  '@aws-sdk/util-dynamodb': { in: ['shared/store/table.ts'] },
  'aws-lambda': { in: ['functions/'] },
  hono: { in: ['functions/api/'] },
  jose: { in: ['shared/'], pure: 'all' },
  zod: { in: ['functions/', 'shared/messages.ts'], pure: 'all' },
  'node:buffer': { in: ['functions/', 'shared/'], pure: 'all' },
  'node:crypto': { in: ['functions/', 'shared/'], pure: 'all' },
  'node:dns': { in: ['shared/net.ts'] },
  'node:http': { in: ['shared/net.ts'] },
  'node:https': { in: ['shared/net.ts'] },
  'node:net': { in: ['shared/net.ts', 'shared/address.ts'], pure: ['BlockList', 'isIP', 'isIPv4', 'isIPv6'] },
  'node:stream': { in: ['shared/net.ts'] },
  'node:timers': { in: ['shared/keysets.ts'] },
  'node:tls': { in: ['shared/net.ts'] },
  'node:zlib': { in: ['shared/net.ts', 'shared/store/snapshots.ts'] },
}

/** Words that doors and rooms may use in the files named only. */
const words: { word: RegExp; in: string[] }[] = [
  { word: /\bDate\.now\b|\bnew Date\(\)|\bperformance\b|\bhrtime\b/g, in: ['shared/clock.ts'] },
  {
    word: /\bMath\.random\b|\bgetRandomValues\b|\brandom(Bytes|UUID|Int|Fill|FillSync)\b/g,
    in: ['shared/clock.ts'],
  },
  { word: /\bprocess\.env\b/g, in: ['functions/lambda.ts'] },
  { word: /\bprocess\.stdout\b/g, in: ['shared/relay.ts'] },
  {
    word: /(?<![.\w])fetch\(|\bglobalThis\.fetch\b|\bXMLHttpRequest\b|\bWebSocket\b|\bcreateRemoteJWKSet\b/g,
    in: [],
  },
  { word: /\bset(Timeout|Interval|Immediate)\(/g, in: ['shared/deadline.ts', 'shared/net.ts'] },
  { word: /\bconsole\.\w+/g, in: [] },
  { word: /\bScanCommand\b|\bTransactWriteItemsCommand\b/g, in: [] },
]

const rules: Rule[] = [
  {
    name: 'the local ground knows doors, doors know rooms, and nobody looks back',
    breaks: ours((to, from) => !inside(to, layers.find(([place]) => inside(from, [place]))?.[1] ?? [])),
    caught: {
      'shared/policy.ts': "import { onLambda } from '../functions/lambda.ts'",
      'functions/tick.ts': "import { startLocal } from '../infra/local/run.ts'",
      'infra/door.ts': "import { handler } from '../functions/tick.ts'",
      'infra/topology.ts': "import { door } from './door.ts'",
      'infra/local/run.ts': "import { door } from '../door.ts'",
    },
  },
  {
    name: 'no door imports a door',
    breaks: ours((to, from) => doorFiles.includes(to) && !inside(from, ['infra/local/'])),
    caught: { 'functions/look.ts': "import { handler } from './receive.ts'" },
  },
  {
    name: 'doors share the shape of Lambda, and any other file beside a door serves that door alone',
    breaks: ours(
      (to, from, all) =>
        inside(from, ['functions/']) &&
        inside(to, ['functions/']) &&
        !inside(to, ['functions/api/', ...shape]) &&
        (inside(from, ['functions/api/']) || importers(all, to) > 1),
    ),
    caught: {
      'functions/api/app.ts': "import { sweep } from '../sweep.ts'",
      'functions/tick.ts': "import { sweep } from './sweep.ts'",
    },
    beside: { 'functions/look.ts': "import { sweep } from './sweep.ts'" },
  },
  {
    name: 'what belongs to the API stays with the API',
    breaks: ours(
      (to, from) => inside(to, ['functions/api/']) && !inside(from, ['functions/api/', 'infra/local/']),
    ),
    caught: { 'functions/tick.ts': "import { page } from './api/page.ts'" },
  },
  {
    name: 'the local ground runs the doors and does none of their work',
    breaks: ours((to, from) => inside(from, ['infra/local/']) && inside(to, work)),
    caught: { 'infra/local/run.ts': "import { put } from '../../shared/store/table.ts'" },
  },
  {
    name: 'a pure room imports nothing that acts',
    breaks: (source, all) =>
      inside(source.path, ['functions/', 'shared/']) && (isPure(source.path) || saysPure(source))
        ? imports(found => !found.typeOnly && !(found.ours ? isPure(found.from) : actsNot(found)))(
            source,
            all,
          )
        : [],
    caught: { 'shared/verify.ts': "import { createNet } from './net.ts'" },
  },
  {
    name: 'every package is used where it belongs and nowhere else',
    breaks: imports(
      (found, { path }) =>
        inside(path, ['functions/', 'shared/']) &&
        !found.ours &&
        !inside(path, packages[found.from]?.in ?? []),
    ),
    caught: { 'shared/policy.ts': "import { DynamoDBClient } from '@aws-sdk/client-dynamodb'" },
  },
  {
    name: 'only the store knows how a key of the table is made',
    breaks: ({ path, code, imports: found }) =>
      inside(path, ['functions/', 'shared/']) && !inside(path, ['shared/store/'])
        ? [
            ...found
              .filter(({ from }) => from === 'shared/store/keys.ts')
              .flatMap(({ names }) => names.filter(name => /(Key|Prefix|[sS]lot|slotOf)$/.test(name))),
            ...(code.match(/\b[ps]k\b/g) ?? []),
          ]
        : [],
    caught: {
      'functions/look.ts': "import { watchKey } from '../shared/store/keys.ts'",
      'shared/publish.ts': 'const pk = item.pk',
    },
  },
  {
    name: 'in the store, only its key map spells a key',
    breaks: ({ path, text }) =>
      inside(path, ['shared/store/']) && path !== 'shared/store/keys.ts'
        ? (text.match(/['`][A-Za-z]#/g) ?? [])
        : [],
    caught: { 'shared/store/wakes.ts': 'const pk = `K#abc`' },
  },
  {
    name: 'environment, clock, randomness, network and output have one file each',
    breaks: ({ path, code }) =>
      inside(path, ['functions/', 'shared/'])
        ? words.flatMap(({ word, in: places }) => (inside(path, places) ? [] : (code.match(word) ?? [])))
        : [],
    caught: {
      'shared/log.ts': 'const at = Date.now()',
      'shared/publish.ts': 'const now = new Date()',
      'functions/look.ts': 'const id = randomUUID()',
      'shared/relay.ts': 'const env = process.env',
      'shared/queue.ts': 'process.stdout.write(line)',
      'shared/a2a/client.ts': 'const answer = await fetch(url)',
      'shared/verify.ts': 'const keys = createRemoteJWKSet(url)',
      'functions/tick.ts': 'setInterval(tick, 1000)',
      'functions/api/app.ts': 'console.log(request)',
      'shared/store/table.ts': 'client.send(new ScanCommand({}))',
    },
  },
  {
    name: 'the receive door carries no schema library, no router and nothing that calls or wakes',
    breaks: ({ path }, all) =>
      reach(all, 'functions/receive.ts').has(path)
        ? [...reach(all, path)].filter(name =>
            inside(name, [
              'zod',
              'hono',
              '@a2a-js/sdk',
              'shared/publish.ts',
              'shared/channels/',
              'shared/a2a/client.ts',
            ]),
          )
        : [],
    caught: {
      'functions/receive.ts': "import { sendWebhook } from '../shared/channels/webhook.ts'",
      'shared/verify.ts': "import * as z from 'zod/mini'",
    },
  },
  {
    name: 'no file imports itself by a detour',
    breaks: ({ path, imports: found }, all) =>
      found
        .filter(({ ours: own, typeOnly }) => own && !typeOnly)
        .filter(({ from }) => reach(all, from).has(path))
        .map(({ from }) => `through ${from}`),
    caught: { 'shared/hash.ts': "import { makeHook } from './hooks.ts'" },
  },
  {
    name: 'a file is called by one lower-case word and lies at most two folders deep',
    breaks: ({ path }) => (/^(\w+\/){1,3}[a-z0-9]+\.(ts|mjs)$/.test(path) ? [] : [path]),
    caught: { 'shared/retryPolicy.ts': '' },
  },
  {
    name: 'there are no barrels and no drawers for odds and ends',
    breaks: ({ path, text }) => [
      ...(/(^|\/)(index|utils?|helpers?|common|types|misc)[./]/.test(path) ? [path] : []),
      ...(text.match(/^export (\*|\{[^}]*\}) from .*$/gm) ?? []),
    ],
    caught: {
      'shared/store/all.ts': "export * from './wakes.ts'",
      'shared/a2a/task.ts': "export { readTask } from './read.ts'",
      'shared/utils.ts': '',
      'functions/api/index.ts': '',
    },
  },
  {
    name: 'a file opens with a sentence on what it does',
    breaks: ({ text }) => (/^\/\/ \p{Lu}.*\.\n/u.test(text) ? [] : [`line 1: ${text.split('\n', 1)[0]}`]),
    caught: { 'shared/hash.ts': "import { createHash } from 'node:crypto'\n" },
  },
  {
    name: 'a file has at most 400 lines',
    breaks: ({ lines }) => (lines <= 400 ? [] : [`${lines} lines`]),
    caught: { 'shared/policy.ts': 'x\n'.repeat(401) },
  },
  {
    name: 'exports are named, classes are errors, doubts are not cast away, nothing is left for later',
    breaks: ({ text, code }) => [
      ...(code.match(/\bexport default\b/g) ?? []),
      ...(code.match(/\bclass (?!\w+Error extends )\w+/g) ?? []),
      ...(code.match(/(\bas|[:<|&(,]|=>)\s*any\b(?!\s*[:(=])/g) ?? []),
      ...(text.match(/@ts-\w+|\b(TODO|FIXME|XXX)\b/g) ?? []),
    ],
    caught: {
      'shared/net.ts': 'export const read = (value: any) => value',
      'functions/look.ts': 'export default door',
      'shared/log.ts': 'class Logger {}',
      'shared/queue.ts': '// TODO: batches',
      'shared/seal.ts': '// @ts-expect-error',
    },
  },
]

describe.each(rules)('$name', ({ breaks, caught, beside = {} }) => {
  test('every file keeps it', () => {
    expect(product.flatMap(source => breaks(source, product).map(what => `${source.path}: ${what}`))).toEqual(
      [],
    )
  })

  test.each(Object.entries(caught))('%s is caught when it breaks it', (path, text) => {
    const culprit = sourceOf(path, text)
    const others = Object.entries(beside).map(entry => sourceOf(...entry))
    const all = [...product.filter(source => source.path !== path), ...others, culprit]
    expect(breaks(culprit, all)).not.toEqual([])
  })
})

test('half of the files have at most 90 lines', () => {
  const lines = product.map(source => source.lines).sort((a, b) => a - b)
  expect(lines[Math.floor(lines.length / 2)]).toBeLessThanOrEqual(90)
})

test('no test is skipped, runs alone, or replaces a module of ours', () => {
  const tricks = /\b(test|it|describe)\.(only|skip|todo|fails)\b|\bvi\.(mock|doMock)\(/g
  expect(
    readSources('test').flatMap(({ path, code }) =>
      (code.match(tricks) ?? []).map(trick => `${path}: ${trick}`),
    ),
  ).toEqual([])
})
