// Sealed secrets: they open for their purpose and owner, under every root key still held, and for nothing else.
import { expect, test } from 'vitest'
import { seal, unseal } from '../../shared/seal.ts'

const root = (fill: number): Uint8Array => new Uint8Array(32).fill(fill)
const first = new Map([[1, root(1)]])
const rotated = new Map([...first, [7, root(7)]])
const secret = '{"type":"bearer","token":"gehäim-\u0000-秘密"}'
const sealed = await seal(first, 'agent', 'acme/a1', secret)

test('what was sealed opens again, letter for letter', async () => {
  expect(await unseal(first, 'agent', 'acme/a1', sealed)).toBe(secret)
  expect(await unseal(first, 'agent', 'acme/a1', await seal(first, 'agent', 'acme/a1', ''))).toBe('')
})

test('the sealed form shows nothing and is never the same twice', async () => {
  expect(sealed).not.toContain(Buffer.from(secret).toString('base64url').slice(0, 12))
  expect(await seal(first, 'agent', 'acme/a1', secret)).not.toBe(sealed)
})

test.each([
  ['another owner', 'agent', 'acme/a2'],
  ['another purpose', 'target', 'acme/a1'],
  ['a purpose and owner that join to the same text', 'agenta', 'cme/a1'],
])('a secret moved to %s does not open', async (_says, purpose, owner) => {
  await expect(unseal(first, purpose, owner, sealed)).rejects.toThrow()
})

test('a root key that was added seals what is new and leaves open what is old', async () => {
  expect(await unseal(rotated, 'agent', 'acme/a1', sealed)).toBe(secret)
  const newer = await seal(rotated, 'agent', 'acme/a1', secret)
  await expect(unseal(first, 'agent', 'acme/a1', newer)).rejects.toThrow('No root key of version 7')
})

test('without its root key, or under another of the same version, nothing opens', async () => {
  await expect(unseal(new Map([[7, root(7)]]), 'agent', 'acme/a1', sealed)).rejects.toThrow()
  await expect(unseal(new Map([[1, root(9)]]), 'agent', 'acme/a1', sealed)).rejects.toThrow()
})

test('a change in any part is noticed', async () => {
  const parts = sealed.split('.')
  for (const part of [0, 2, 3, 4]) {
    const changed = parts.map((text, at) => (at === part ? flip(text) : text)).join('.')
    await expect(unseal(first, 'agent', 'acme/a1', changed)).rejects.toThrow()
  }
})

/** Changes one bit in the middle. */
function flip(text: string): string {
  const bytes = Buffer.from(text, 'base64url')
  const at = bytes.length >> 1
  bytes[at] = (bytes[at] ?? 0) ^ 1
  return bytes.toString('base64url')
}

test.each(['', 'x', 'a.b.c.d.e', sealed.slice(0, -8)])(
  'what is no sealed text is an error, not an answer: number %#',
  async text => {
    await expect(unseal(first, 'agent', 'acme/a1', text)).rejects.toThrow()
  },
)
