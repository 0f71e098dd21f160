// What whoever deploys may set: read by infra/settings.ts from the environment of `sst deploy`.
import { expect, test } from 'vitest'
import { readSettings } from '../../infra/settings.ts'

const own = { PUBLIC_ORIGIN: 'https://rouse.example', HOOK_ORIGIN: 'https://hooks.rouse.example' }
const borrowed = {
  PUBLIC_ORIGIN: 'https://abc.lambda-url.eu-west-1.on.aws',
  HOOK_ORIGIN: 'https://def.lambda-url.eu-west-1.on.aws',
}

test('origins of ones own are taken without a word', () => {
  expect(readSettings(own, 'production')).toMatchObject({ origins: own, warnings: [] })
})

test('a first deploy goes through and says what to do next', () => {
  const { origins, warnings } = readSettings({}, 'staging')
  expect(origins).toBeUndefined()
  expect(warnings).toEqual([expect.stringMatching(/PUBLIC_ORIGIN and HOOK_ORIGIN .* \.env\.staging/)])
})

test('Function URLs are fine for a trial and warned of in production', () => {
  expect(readSettings(borrowed, 'dev').warnings).toEqual([])
  expect(readSettings(borrowed, 'production').warnings).toEqual([
    expect.stringMatching(/PUBLIC_ORIGIN and HOOK_ORIGIN/),
  ])
  expect(readSettings({ ...borrowed, PUBLIC_ORIGIN: own.PUBLIC_ORIGIN }, 'production').warnings).toEqual([
    expect.stringMatching(/^HOOK_ORIGIN: /),
  ])
})

test.each([
  [
    'one origin without the other',
    { PUBLIC_ORIGIN: own.PUBLIC_ORIGIN },
    /both PUBLIC_ORIGIN and HOOK_ORIGIN/,
  ],
  ['a slash behind', { ...own, PUBLIC_ORIGIN: 'https://rouse.example/' }, /^PUBLIC_ORIGIN must be an origin/],
  ['a path', { ...own, HOOK_ORIGIN: 'https://rouse.example/hooks' }, /^HOOK_ORIGIN must be an origin/],
  ['plain http', { ...own, HOOK_ORIGIN: 'http://rouse.example' }, /^HOOK_ORIGIN must be an origin/],
  ['no address at all', { ...own, HOOK_ORIGIN: 'rouse.example' }, /^HOOK_ORIGIN must be an origin/],
  ['a reserved concurrency of none', { RECEIVE_CONCURRENCY: '0' }, /^RECEIVE_CONCURRENCY must be/],
  ['a reserved concurrency in words', { RECEIVE_CONCURRENCY: 'ten' }, /^RECEIVE_CONCURRENCY must be/],
])('a deploy with %s is refused by name', (_, env, says) => {
  expect(() => readSettings(env, 'production')).toThrow(says)
})

test('a deploy hands on only what doors may be told, and an empty setting is none', () => {
  const env = {
    ...own,
    LOG_LEVEL: 'debug',
    DUE_SHARDS: '',
    ALLOW_HTTP: 'true',
    HOME: '/root',
    RECEIVE_CONCURRENCY: '20',
  }
  expect(readSettings(env, 'dev')).toMatchObject({ others: { LOG_LEVEL: 'debug' }, receiveConcurrency: 20 })
  expect(Object.keys(readSettings(env, 'dev').others)).toEqual(['LOG_LEVEL'])
})
