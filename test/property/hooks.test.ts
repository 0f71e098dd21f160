// No hook that we did not make is taken for ours, whatever bits are changed.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isHook, makeHook } from '../../shared/hooks.ts'

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const version = fc.integer({ min: 0, max: 255 })

test('a hook is ours, and with one bit changed anywhere it is not', () => {
  fc.assert(
    fc.property(bytes(32), version, bytes(16), fc.integer({ min: 0, max: 199 }), (root, at, random, bit) => {
      const keys = new Map([[at, root]])
      const hook = makeHook(keys, random)
      expect(isHook(keys, hook)).toBe(true)
      const changed = Buffer.from(hook, 'base64url')
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(isHook(keys, changed.toString('base64url'))).toBe(false)
      // Nor does it help to hold keys of all versions.
      const all = new Map(Array.from({ length: 256 }, (_, n) => [n, root]))
      expect(isHook(all, changed.toString('base64url'))).toBe(false)
    }),
  )
})

test('a hook of another root key is refused', () => {
  fc.assert(
    fc.property(bytes(32), bytes(32), version, bytes(16), (mine, other, at, random) => {
      fc.pre(Buffer.compare(mine, other) !== 0)
      expect(isHook(new Map([[at, mine]]), makeHook(new Map([[at, other]]), random))).toBe(false)
    }),
  )
})

test('a hook lives as long as the root key of its version is held, whatever versions come and go', () => {
  fc.assert(
    fc.property(
      fc.dictionary(version.map(String), bytes(32), { minKeys: 1, maxKeys: 5 }),
      fc.dictionary(version.map(String), bytes(32), { maxKeys: 5 }),
      bytes(16),
      (before, others, random) => {
        const held = new Map(Object.entries(before).map(([at, root]) => [Number(at), root]))
        const hook = makeHook(held, random)
        const own = Math.max(...held.keys())
        const after = new Map([
          ...Object.entries(others).map(([at, root]) => [Number(at), root] as const),
          ...held,
        ])
        expect(isHook(after, hook)).toBe(true)
        after.delete(own)
        expect(isHook(after, hook)).toBe(false)
      },
    ),
  )
})

test('arbitrary text is never a hook and never throws', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.base64String()), text => {
      expect(isHook(new Map([[1, new Uint8Array(32)]]), text)).toBe(false)
    }),
  )
})
