// The ear of the tests: what it takes for a secret that was logged, and that every world of the tests is heard.
import { expect, test } from 'vitest'
import { createEar } from '../support/ear.ts'
import { readSources } from '../support/sources.ts'

const token = 'tok-4e1f-8a0c2b'

test('a secret is found in a line before and after it was used, once, and not repeated', () => {
  const ear = createEar()
  ear.line(`{"step":"push.refused","path":"/x/${token}"}`)
  expect(ear.leaks()).toEqual([])
  ear.secret(`Bearer ${token}`)
  expect(ear.leaks()).toEqual(['{"step":"push.refused","path":"/x/<a secret>"}'])
  ear.line(`{"step":"later","error":"no ${token}!"}`)
  expect(ear.leaks()).toEqual(['{"step":"later","error":"no <a secret>!"}'])
  ear.line('{"step":"push.refused"}')
  expect(ear.leaks()).toEqual([])
})

/** Their doors run in processes of their own. */
const unheard = ['test/support/child.ts', 'test/support/holder.ts', 'test/chaos/world/world.ts']

test('every ground that a test starts is heard', () => {
  const starting = readSources('test').filter(
    ({ path, text }) => /^test\/(?!bench|fuzz)/.test(path) && /\bstart(?:Local|Ground)\(/.test(text),
  )
  const deaf = starting.filter(({ path, text }) => !unheard.includes(path) && !/\bear\.line\b/.test(text))
  expect(deaf.map(({ path }) => path)).toEqual([])
})
