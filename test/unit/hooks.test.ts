// Hook ids and the secrets derived from them: what is refused without a read, what survives a rotation of root keys.
import { expect, test } from 'vitest'
import { hookSecret, isHook, makeHook, refOf } from '../../shared/hooks.ts'

const root = (fill: number): Uint8Array => new Uint8Array(32).fill(fill)
const first = new Map([[1, root(1)]])
const rotated = new Map([...first, [2, root(2)]])
const random = Uint8Array.from({ length: 16 }, (_, n) => n * 15)
const hook = makeHook(first, random)

test('a hook is 34 characters of a URL and ours', () => {
  expect(hook).toMatch(/^[\w-]{34}$/)
  expect(isHook(first, hook)).toBe(true)
})

test('a hook of an old root key lives on while that key is held, and no longer', () => {
  expect(isHook(rotated, hook)).toBe(true)
  expect(isHook(new Map([[2, root(2)]]), hook)).toBe(false)
})

test('new hooks are made with the newest root key', () => {
  const newer = makeHook(rotated, random)
  expect(isHook(first, newer)).toBe(false)
  expect(isHook(new Map([[2, root(2)]]), newer)).toBe(true)
})

test.each([
  '',
  'x',
  '../../etc/passwd',
  `${hook}A`,
  hook.slice(1),
  `${hook}=`,
  ` ${hook}`,
  hook.toLowerCase(),
  'A'.repeat(34),
  'A'.repeat(100_000),
])('a guess is refused without a read: number %#', guess => {
  expect(isHook(first, guess)).toBe(false)
})

test('another spelling of the same bytes is refused', () => {
  // 34 characters hold 204 bits, a hook has 200: the last character has spare bits.
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const at = alphabet.indexOf(hook.slice(-1))
  const twin = hook.slice(0, -1) + alphabet.charAt(at ^ 1)
  expect(Buffer.from(twin, 'base64url')).toEqual(Buffer.from(hook, 'base64url'))
  expect(isHook(first, twin)).toBe(false)
})

test('secrets stay the same when a root key is added', () => {
  expect(hookSecret(rotated, hook, 't', 1, 'token')).toBe(hookSecret(first, hook, 't', 1, 'token'))
})

test('every hook, tenant, generation and use has a secret of its own', () => {
  const other = makeHook(
    first,
    random.map(byte => byte ^ 1),
  )
  const secrets = [
    hookSecret(first, hook, 't', 1, 'token'),
    hookSecret(first, hook, 't', 2, 'token'),
    hookSecret(first, hook, 't2', 1, 'token'),
    hookSecret(first, hook, 't', 1, 'credentials'),
    hookSecret(first, other, 't', 1, 'token'),
    hookSecret(new Map([[1, root(9)]]), hook, 't', 1, 'token'),
  ]
  expect(new Set(secrets).size).toBe(secrets.length)
  for (const secret of secrets) expect(secret).toMatch(/^[\w-]{43}$/)
})

test('the ref of a subscription gives nothing of the hook away', () => {
  expect(refOf(hook)).toMatch(/^[\w-]{24}$/)
  expect(hook).not.toContain(refOf(hook).slice(0, 6))
  expect(refOf(hook)).not.toBe(refOf(makeHook(rotated, random)))
})
