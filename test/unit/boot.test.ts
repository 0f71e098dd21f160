// What happens before `npm start` and `npm test`: infra/local/boot.mjs, run as a program in a folder of its own, with a stand-in for npm.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

const boot = join(import.meta.dirname, '../../infra/local/boot.mjs')
const zod = { version: '4.0.0', integrity: 'sha512-zod' }
const wanted = {
  '': { name: 'rouse' },
  'node_modules/zod': zod,
  'node_modules/zod-linux': { version: '4.0.0', integrity: 'sha512-linux', optional: true },
}

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rouse-boot-'))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ packages: wanted }))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** What npm leaves behind when it is done. */
function installed(note: string): void {
  mkdirSync(join(folder, 'node_modules'), { recursive: true })
  writeFileSync(join(folder, 'node_modules/.package-lock.json'), note)
}

/** Writes the program that stands in for npm, and gives what makes {@link boot} run it. */
function standIn(program: string) {
  const npm = join(folder, 'npm.cjs')
  writeFileSync(npm, program)
  return { cwd: folder, env: { npm_execpath: npm, npm_node_execpath: process.execPath } }
}

/** Runs it; the stand-in writes down that it ran and ends with the given status. */
function run(npmStatus = 0): { status: number | null; said: string; installs: boolean } {
  const options = standIn(
    `require('node:fs').writeFileSync('ran', process.argv[2]); process.exitCode = ${npmStatus}`,
  )
  const { status, stdout, stderr } = spawnSync(process.execPath, [boot], { ...options, encoding: 'utf8' })
  return { status, said: stdout + stderr, installs: existsSync(join(folder, 'ran')) }
}

test('a fresh clone is installed, in one line', () => {
  const { status, said, installs } = run()
  expect({ status, installs }).toEqual({ status: 0, installs: true })
  expect(said).toMatch(/^Installing .*\n$/)
})

test('what is installed already is left alone, without a word', () => {
  installed(JSON.stringify({ packages: { 'node_modules/zod': zod } }))
  expect(run()).toEqual({ status: 0, said: '', installs: false })
})

test.each([
  ['was interrupted before npm wrote its note', undefined],
  ['was interrupted while npm wrote its note', '{"packages":{"node_mod'],
  [
    'is of an older lock file',
    JSON.stringify({ packages: { 'node_modules/zod': { ...zod, version: '3.0.0' } } }),
  ],
  [
    'holds other bytes',
    JSON.stringify({ packages: { 'node_modules/zod': { ...zod, integrity: 'sha512-x' } } }),
  ],
  ['lacks a package', JSON.stringify({ packages: {} })],
  [
    'has a package too many',
    JSON.stringify({ packages: { 'node_modules/zod': zod, 'node_modules/x': zod } }),
  ],
])('an install that %s is repaired', (_, note) => {
  mkdirSync(join(folder, 'node_modules'))
  if (note !== undefined) installed(note)
  expect(run()).toMatchObject({ status: 0, installs: true })
})

test('a failed install stops what comes after and says that the next run tries again', () => {
  const { status, said } = run(7)
  expect(status).toBe(7)
  expect(said).toMatch(/did not finish; the next run starts it again/)
})

test('Ctrl-C ends an install at once, with what npm started', async () => {
  const options = standIn(`
    process.on('SIGINT', () => {})
    const inherit = { stdio: 'inherit' }
    require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], inherit)
    console.error('begun')
    setInterval(() => {}, 1000)`)
  const child = spawn(process.execPath, [boot], options)
  await once(child.stderr, 'data')
  child.kill('SIGINT')
  // "close" waits for all who hold the other end of its output, which each of them inherited.
  expect(await once(child, 'close')).toEqual([1, null])
})
