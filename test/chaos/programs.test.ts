// The programs that npm runs judge what they are asked for before they begin.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { makeFolder } from '../support/folder.ts'
import { outcomeOf } from './world/print.ts'

const run = (path: string, ...flags: string[]) => {
  const program = fileURLToPath(new URL(`../../${path}`, import.meta.url))
  return spawnSync(process.execPath, [program, ...flags], { encoding: 'utf8' })
}

const programs: [name: string, path: string][] = [
  ['chaos', 'test/chaos/run.ts'],
  ['chaos:door', 'test/chaos/door.ts'],
  ['race', 'test/chaos/race.ts'],
  ['fuzz', 'test/fuzz/run.ts'],
  ['bench', 'test/bench/run.ts'],
  ['cost', 'test/bench/cost/run.ts'],
]

test.each(programs)(
  'npm run %s shows its usage to whoever asks for it, and does nothing else',
  (name, path) => {
    const { status, stdout, stderr } = run(path, '--help')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(new RegExp(`^npm run ${name} -- \\[flags\\]\n\n(  -.*\n)+$`))
  },
)

test.each(programs)(
  'npm run %s refuses a flag that it does not know, and shows those that it does',
  (name, path) => {
    const { status, stdout, stderr } = run(path, '--nope')
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toMatch(/^Unknown option '--nope'/)
    expect(stderr).toContain(`npm run ${name} -- [flags]`)
  },
)

test.each([
  ['race', '--runs takes a whole number from 1 on, not "0"', 'test/chaos/race.ts', ['--runs', '0']],
  ['race', '--story takes a whole number from 0 on, not "x"', 'test/chaos/race.ts', ['--story', 'x']],
  ['race', '--odds takes one of rough, mild, not "x"', 'test/chaos/race.ts', ['--odds', 'x']],
  ['race', '--pace takes one of brief, mixed, brisk, flapping', 'test/chaos/race.ts', ['--pace', 'x']],
  ['fuzz', '--runs takes a whole number above 0, not "x"', 'test/fuzz/run.ts', ['--runs', 'x']],
  ['fuzz', '--seed takes a whole number, not ""', 'test/fuzz/run.ts', ['--seed', '']],
  ['bench', 'There is no part nope; there are calls,cold', 'test/bench/run.ts', ['--only', 'nope']],
  ['cost', 'There is no load nope; there are trip,flood', 'test/bench/cost/run.ts', ['--only', 'nope']],
])('npm run %s does nothing and says: %s', (_name, says, path, flags) => {
  const { status, stderr, stdout } = run(path, ...flags)
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr).toContain(says)
})

test('what npm start is to allow comes to the doors after the loopback, which they judge', () => {
  const { status, stderr } = run(
    'infra/local/start.ts',
    ...['--once', '--dir', makeFolder(), '--allow', '10.0.0.0/8,nope'],
  )
  expect(status).toBe(1)
  expect(stderr).toContain('ALLOW_ADDRESSES: entry 4 is no address range')
})

test.each([
  ['--minutes takes a number above 0, not "abc"', ['--minutes', 'abc']],
  ['--minutes takes a number above 0, not "0"', ['--minutes', '0']],
  ['--minutes takes a number above 0, not "-1"', ['--minutes=-1']],
  ['--minutes and --short exclude each other', ['--minutes', '1', '--short']],
  ['--at takes a step that the doors log, not "no.such.step": agent.', ['--at', 'no.such.step']],
  ['--without takes one of: dropped because', ['--without', 'nope']],
])('npm run chaos plays nothing and says: %s', (says, flags) => {
  const { status, stderr, stdout } = run('test/chaos/run.ts', ...flags)
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr).toContain(says)
})

test.each([
  ['events', { events: 0, kills: 0 }, 'no event was played'],
  ['kills', { events: 9, kills: 0 }, 'no process was killed'],
])('a chaos run without %s shows nothing', (_what, figures, says) => {
  const outcome = outcomeOf(figures, [])
  expect(outcome.holds).toBe(false)
  expect(outcome.says).toContain(says)
})

test('a chaos run in which much happened and nothing went wrong says that every promise held', () => {
  expect(outcomeOf({ events: 9, kills: 1 }, [])).toEqual({ says: 'every promise held', holds: true })
})
