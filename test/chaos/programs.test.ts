// The programs that npm runs judge what they are asked for before they begin.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { makeFolder } from '../support/folder.ts'

const run = (path: string, ...flags: string[]) => {
  const program = fileURLToPath(new URL(`../../${path}`, import.meta.url))
  return spawnSync(process.execPath, [program, ...flags], { encoding: 'utf8' })
}

test('a load of npm run cost that there is not fails and names those that there are', () => {
  const { status, stderr, stdout } = run('test/bench/cost/run.ts', '--only', 'nope')
  expect(status).toBe(1)
  expect(stdout).not.toContain('Playing')
  expect(stderr).toContain('There is no load nope; there are trip,flood,door,silence')
})

test('what npm start is to allow comes to the doors after the loopback, which they judge', () => {
  const { status, stderr } = run(
    'infra/local/start.ts',
    ...['--once', '--dir', makeFolder(), '--allow', '10.0.0.0/8,nope'],
  )
  expect(status).toBe(1)
  expect(stderr).toContain('ALLOW_ADDRESSES: entry 4 is no address range')
})
