// Keeps the documents true where they repeat what the code states: settings, limits, files and tests that they name.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { CancelRequest } from '../functions/api/cancel.ts'
import { RotateRequest as TargetRotateRequest } from '../functions/api/mending.ts'
import { RedriveRequest } from '../functions/api/redrive.ts'
import { AgentRequest, JwtRequest } from '../functions/api/registering.ts'
import { ReplayRequest } from '../functions/api/replay.ts'
import { RotateRequest } from '../functions/api/rotating.ts'
import { SubscriptionRequest } from '../functions/api/subscribing.ts'
import { TargetRequest } from '../functions/api/targets.ts'
import { KeyRequest } from '../functions/api/tenants.ts'
import { settings } from '../shared/config.ts'
import { limits, rates, tenantLimits } from '../shared/limits.ts'
import { routes } from './support/api.ts'
import { breaks } from './support/race/rules.ts'

const read = (name: string): string => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')

const exists = (path: string): boolean => existsSync(new URL(`../${path}`, import.meta.url))

/** The cells of every table row in a document. */
const rowsOf = (text: string): string[][] =>
  text
    .split('\n')
    .filter(line => line.startsWith('| '))
    .map(line =>
      line
        .split('|')
        .slice(1, -1)
        .map(cell => cell.trim()),
    )

describe('the README', () => {
  const text = read('README.md')
  const rows = rowsOf(text)
  const count = (many: number): string => many.toLocaleString('en')

  test.each(Object.entries(settings))('states the setting %s as the code does', (name, setting) => {
    const fallback = 'fallback' in setting && setting.fallback !== '' ? `\`${setting.fallback}\`` : ''
    expect(rows).toContainEqual([`\`${name}\``, fallback, setting.says])
  })

  test.each(Object.entries(rates))('states the rate %s as the code does', (name, { perSecond, burst }) => {
    expect(
      rows.some(([first = '', rate]) => first.includes(name) && rate === `${perSecond}/s, ${burst} at once`),
    ).toBe(true)
  })

  test.each(Object.entries(tenantLimits))('states the limit of %s as the code does', (name, limit) => {
    expect(
      rows.some(([first = '', number]) => first.startsWith(name) && number === limit.toLocaleString('en')),
    ).toBe(true)
  })

  /** A limit without a row here is a fault of type. */
  const stated: Record<keyof typeof limits, [what: string, most: string]> = {
    subscriptionsOfTask: ['subscriptions on one task as one principal', count(limits.subscriptionsOfTask)],
    targetsOfSubscription: ['targets of one subscription', count(limits.targetsOfSubscription)],
    targetsOfOperations: ['operational targets', count(limits.targetsOfOperations)],
    originsOfAgent: ['origins that a registration names', count(limits.originsOfAgent)],
    callsOfAgent: ['looks that call one agent at a time', count(limits.callsOfAgent)],
    mostCallsOfAgent: ['the same, as `maxConcurrentCalls` may ask', count(limits.mostCallsOfAgent)],
    attemptsAtTarget: ['attempts at one target at a time', count(limits.attemptsAtTarget)],
    mostAttemptsAtTarget: ['the same, as `maxConcurrency` may ask', count(limits.mostAttemptsAtTarget)],
    attemptsInSecond: [
      'attempts in a second, as `ratePerSecond` may ask; none unless it does',
      count(limits.attemptsInSecond),
    ],
    secretsOfTarget: ['secrets of a target that sign along', count(limits.secretsOfTarget)],
    agentsSearched: ['agents of a tenant that are searched for a task', count(limits.agentsSearched)],
    pushBytes: ["a push's body", `${limits.pushBytes / 1e6} MB`],
    requestBytes: ["a request's body", `${limits.requestBytes / 1024} KB`],
    answerBytes: ["an agent's answer, inflated", `${limits.answerBytes / 1024 ** 2} MB`],
    snapshotBytes: ["a task's body that is kept, gzipped", `${limits.snapshotBytes / 1024} KB`],
    keySetBytes: ['a key set, inflated', `${limits.keySetBytes / 1024} KB`],
    keysOfSet: ['members of a key set that are looked at', count(limits.keysOfSet)],
    jwtCharacters: ["a push's JWT", `${count(limits.jwtCharacters)} characters`],
    taskIdBytes: ["an agent's task id", `${limits.taskIdBytes} bytes`],
    idCharacters: ['an id that callers choose', `${limits.idCharacters} characters`],
    itemsOfPage: ['a page of a list', `${limits.itemsOfPage} items`],
  }

  test.each(Object.entries(stated))('states the limit %s as the code does', (_name, row) => {
    expect(rows.map(cells => cells.slice(0, 2))).toContainEqual(row)
  })

  test('states all limits in one table', () => {
    const [, after = ''] = text.split('## Limits')
    const [section = ''] = after.split('\n## ')
    expect(section.match(/^\| --- /gm)).toHaveLength(1)
    const all = [rates, tenantLimits, limits].flatMap(Object.keys)
    expect(rowsOf(section).length - 2).toBe(all.length)
  })
})

describe('the API’s page', () => {
  const text = read('API.md')
  const keys = {
    ...{ operator: 'operator', keys: 'operator, admin', mend: 'operator, write' },
    ...{ admin: 'admin', write: 'write', read: 'read' },
  }

  test('lists every route and the key that it needs', () => {
    const listed = rowsOf(text).filter(([route = '', key]) => route.includes(' /v1/') && key !== undefined)
    const stated = routes.map(({ method, path, needs }) => [`\`${method} ${path}\``, keys[needs]])
    expect(listed.filter(row => row.length === 3).map(([route, key]) => [route, key])).toEqual(stated)
  })

  /** What a schema makes of a field that is left out, as the page writes it. */
  const written = (value: unknown): string =>
    typeof value === 'number' ? value.toLocaleString('en') : `\`${inline(value)}\``
  const inline = (value: unknown): string =>
    typeof value === 'string' ? value : JSON.stringify(value).replaceAll('","', '", "')

  test.each([
    ['agents', AgentRequest],
    ['their JWTs', JwtRequest],
    ['subscriptions', SubscriptionRequest],
    ['targets', TargetRequest],
  ] as const)('states each field of %s, and what it is unless given', (_name, { shape }) => {
    for (const [name, field] of Object.entries(shape)) {
      if (name === 'timestampHeader') continue
      const rows = rowsOf(text).filter(([first]) => first === `\`${name}\``)
      const { success, data } = field.safeParse(undefined)
      const isStated = ([, unless]: string[]): boolean =>
        !success || data === undefined || unless === written(data) || unless?.startsWith('all ') === true
      expect(rows.some(isStated), name).toBe(true)
    }
  })

  test.each([
    ['POST /v1/keys', KeyRequest],
    ['POST …/cancel', CancelRequest],
    ['POST /v1/redrive', RedriveRequest],
    ['POST /v1/inbox/replay', ReplayRequest],
    ['POST /v1/subscriptions/:id/rotate', RotateRequest],
    ['POST /v1/targets/:target/rotate', TargetRotateRequest],
  ] as const)('states the fields of %s, and what they are unless given', (request, { shape }) => {
    const row = rowsOf(text).find(([first, , more]) => first === `\`${request}\`` && more === undefined)
    const fields = row?.[1] ?? ''
    expect(
      [...fields.replaceAll(/\([^()]*\)/g, '').matchAll(/`(\w+)`/g)].map(([, name]) => name).sort(),
    ).toEqual(Object.keys(shape).sort())
    for (const [name, field] of Object.entries(shape)) {
      const { success, data } = field.safeParse(undefined)
      if (success && data !== undefined) expect(fields).toContain(`\`${name}\` (${written(data)}`)
    }
  })
})

/** The texts of a union in the code. @param begins what stands before it */
function unionAfter(path: string, begins: string): string[] {
  const [, union = ''] = read(path).split(begins)
  return [...(/^(?:\s*\|?\s*'\w+')+/.exec(union)?.[0] ?? '').matchAll(/'(\w+)'/g)].map(
    ([, text = '']) => text,
  )
}

test('the API’s page tells of every trouble that a look meets, and of no other', () => {
  const [, section = ''] = read('API.md').split('### Trouble\n')
  const rows = rowsOf(section.split('\n### ')[0] ?? '').slice(2)
  const troubles = unionAfter('shared/model.ts', 'export type Trouble =')
  expect(troubles).toContain('unreachable')
  expect(rows.map(([code]) => code).sort()).toEqual(troubles.map(name => `\`${name}\``).sort())
})

test('the README tells of every source of a timeline, and of no other; each is written somewhere', () => {
  const sources = unionAfter('shared/model.ts', '  source:')
  const [, text = ''] = read('README.md').split('with its `source` (')
  const [told = ''] = text.split(', as `note` says')
  expect([...told.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual(sources)
  const writers = ['shared/recording.ts', 'shared/canceling.ts'].map(read).join('\n')
  const writes = [...writers.matchAll(/source(?::| =) .*/g)].join('\n')
  expect(sources.filter(name => !writes.includes(`'${name}'`))).toEqual([])
})

test('the README tells of every type that anybody is told, and of no other', () => {
  const told = readdirSync(new URL('../shared', import.meta.url))
    .filter(name => name.endsWith('.ts') && name !== 'log.ts')
    .map(name => read(`shared/${name}`).replaceAll(/step: '[\w.]+'/g, ''))
    .join('\n')
  const types = [...told.matchAll(/'((?:task|subscription|target|agent)\.[a-z_]+)'/g)].map(([, type]) => type)
  const [, section = ''] = read('README.md').split('## What you are told')
  const rows = rowsOf(section.split('\n## ')[0] ?? '').map(
    ([first = '']) => /^`((?:task|subscription|target|agent|rouse)\.\w+)`$/.exec(first)?.[1],
  )
  const listed = new Set(rows.filter(type => type !== undefined))
  expect([...listed].sort()).toEqual([...new Set([...types, 'rouse.test'])].sort())
})

test('the README tells what to do about everything that operations are told, and names only steps that there are', () => {
  const [, section = ''] = read('README.md').split('## Operating it')
  const rows = rowsOf(section.split('\n## ')[0] ?? '').map(([first = '']) => first)
  const union = /type OperationalType =([^/]*)/.exec(read('shared/operations.ts'))?.[1] ?? ''
  for (const [, type] of union.matchAll(/'([\w.]+)'/g))
    if (type !== 'agent.recovered' && type !== 'target.recovered') expect(rows).toContain(`\`${type}\``)
  const files = ['functions', 'functions/api', 'shared'].flatMap(room =>
    readdirSync(new URL(`../${room}`, import.meta.url))
      .filter(name => name.endsWith('.ts'))
      .map(name => read(`${room}/${name}`)),
  )
  const named = rows.flatMap(row => [...row.matchAll(/`([a-z]+\.[a-z_]+)`/g)].map(([, name = '']) => name))
  expect(named.filter(name => !files.some(file => file.includes(`'${name}'`)))).toEqual([])
})

describe('the invariants of the architecture', () => {
  const [, after = ''] = read('ARCHITECTURE.md').split('## Invariants')
  const [section = ''] = after.split('\n## ')
  const rows = rowsOf(section).slice(2)

  test('name every rule that the race shows to be needed, and no other', () => {
    const named = rows.flatMap(([, , tests = '']) => /race, ([\w, ]+)/.exec(tests)?.[1]?.split(', ') ?? [])
    expect(named.toSorted()).toEqual(Object.keys(breaks).toSorted())
  })

  test.each(rows)('are held where it is said: %s', (_says, where = '') => {
    expect(unheld(where)).toEqual([])
  })

  test.each(rows)('have tests that are there: %s', (_says, _where, tests = '') => {
    expect(untested(tests)).toEqual([])
  })

  test.each([
    ['each door awaits what it begins'],
    ['`store/nowhere.ts` acceptNotice'],
    ['`store/notices.ts` acceptNothing'],
    ['`store/notices.ts` acceptNotice, refuseNotice'],
    ['`store/looks.ts` saveLook, `lookAt = :end`'],
  ])('would show that nothing holds one by: %s', where => {
    expect(unheld(where)).toHaveLength(1)
  })

  test.each([
    ['nothing'],
    ['chaos: nowhere'],
    ['chaos: sharing, nowhere'],
    ['trip: copies, door-proof'],
    ['chaos: killed right after it'],
    ['chaos: race, nothing'],
    ['property: inbox; chaos: race, gapsAge, countsNone'],
    ['chaos: rules, `dyingNever`'],
    ['chaos: race, trailing; rules, dyingWait'],
  ])('would show that one has no such test: %s', tests => {
    expect(untested(tests)).toHaveLength(1)
  })
})

/** What is said to hold an invariant, and does not stand there: files, what is named after each, and pieces of its text. */
function unheld(where: string): string[] {
  const parts = [...where.matchAll(/`([\w/]+\.ts)`((?:,? \w+)*)((?:, `[^`.]+`)*)/g)]
  if (parts.length === 0) return [`no file in: ${where}`]
  return parts.flatMap(([, file = '', names = '', texts = '']) => {
    const path = /^(?:shared|functions)\//.test(file) ? file : `shared/${file}`
    if (!exists(path)) return [path]
    const code = read(path)
    const isMade = (name: string): boolean => new RegExp(`(?:function|const) ${name}\\b`).test(code)
    return [
      ...(names.match(/\w+/g) ?? []).filter(name => !isMade(name)),
      ...[...texts.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text).filter(text => !code.includes(text)),
    ].map(name => `${path} ${name}`)
  })
}

/** What stands behind the name of a file whose tests are many: rules of the race, scenes of the rules. */
function partsOf(kind: string, file: string): string[] | undefined {
  if (kind !== 'chaos') return undefined
  if (file === 'race') return Object.keys(breaks)
  if (file !== 'rules') return undefined
  const scenes = read('test/chaos/world/scenes.ts').matchAll(/^const (\w+): Scene =/gm)
  return [...scenes].map(([, name]) => `\`${name}\``)
}

/** The tests that an invariant names and that are not there: files of a kind, rules of the race, scenes of the rules. */
function untested(tests: string): string[] {
  let kind = ''
  return tests.split('; ').flatMap(part => {
    const [, given, names = ''] = /^(?:(\w+): )?(.*)$/.exec(part) ?? []
    kind = given ?? kind
    const [first = '', ...more] = names.split(', ')
    const isNone = (name: string): boolean => kind === '' || !exists(`test/${kind}/${name}.test.ts`)
    const parts = partsOf(kind, first)
    if (parts === undefined) return [first, ...more].filter(isNone)
    return [...[first].filter(isNone), ...more.filter(name => !parts.includes(name))]
  })
}

test.each(['README.md', 'API.md', 'ARCHITECTURE.md', 'SECURITY.md', 'CONTRIBUTING.md'])(
  '%s names only files that are there',
  document => {
    const named = read(document).matchAll(/`((?:functions|shared|infra|test)\/[\w./-]+\.\w+)`/g)
    expect([...named].map(([, path = '']) => path).filter(path => !exists(path))).toEqual([])
  },
)
