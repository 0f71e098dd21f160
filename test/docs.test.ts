// Keeps the documents true where they repeat what the code states: settings, limits, files and tests that they name.
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { settings } from '../shared/config.ts'
import { rates, tenantLimits } from '../shared/limits.ts'

const read = (name: string): string => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')

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
  const rows = rowsOf(read('README.md'))

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
      rows.some(([first = '', number]) => first.includes(name) && number === limit.toLocaleString('en')),
    ).toBe(true)
  })
})

test.each(['README.md', 'ARCHITECTURE.md', 'SECURITY.md', 'CONTRIBUTING.md'])(
  '%s names only files that are there',
  document => {
    const named = read(document).matchAll(/`((?:functions|shared|infra|test)\/[\w./-]+\.\w+)`/g)
    expect(
      [...named]
        .map(([, path = '']) => path)
        .filter(path => !existsSync(new URL(`../${path}`, import.meta.url))),
    ).toEqual([])
  },
)
