// What `npm run cost` is asked for is there, or it says what is.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

test('a load that there is not fails and names those that there are', () => {
  const program = fileURLToPath(new URL('../bench/cost/run.ts', import.meta.url))
  const { status, stderr, stdout } = spawnSync(process.execPath, [program, '--only', 'nope'], {
    encoding: 'utf8',
  })
  expect(status).toBe(1)
  expect(stdout).not.toContain('Playing')
  expect(stderr).toContain('There is no load nope; there are trip,flood,door,silence')
})
