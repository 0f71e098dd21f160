// Every failure case of the door, and those of queues and targets, by its number in the project's list, is held by a test that names it.
import { expect, test } from 'vitest'
import { readSources, type Source, sourceOf } from './support/sources.ts'

/** The list was cut down: these numbers stand for nothing. */
const unused = [
  10, 12, 13, 25, 39, 40, 41, 42, 52, 54, 55, 60, 61, 62, 75, 76, 88, 89, 101, 104, 113, 116, 117, 121, 128,
  129, 130, 131,
]
/** What a queue that we do not use forgets (94), and Web Push, which is not there yet. */
const elsewhere = [94, 133]
/** What happens behind the door: queues and targets. */
const behind = [91, 92, 93, 164, 166, 167, 171]

const last = 134
const wanted = [...new Set([...Array.from({ length: last }, (_, at) => at + 1), ...behind])].filter(
  number => !unused.includes(number) && !elsewhere.includes(number),
)

/** In a test's name: `case 7: …`, `cases 4 and 27: …` or `7: …`. */
const inWords = /\bcases? (\d+(?:(?:, | and )\d+)*)/g
const inFront = /['"`](\d{1,3}): /g
/** In a table of rows: `[7, 'says', …]`. */
const inRow = /\[\s*(\d{1,3}),\s*['"`]/g

function namedIn({ text, imports }: Source): number[] {
  const rows = imports.some(({ names }) => names.includes('judged') || names.includes('played'))
  return [inWords, inFront, ...(rows ? [inRow] : [])]
    .flatMap(pattern => [...text.matchAll(pattern)])
    .flatMap(([, numbers = '']) => (numbers.match(/\d+/g) ?? []).map(Number))
}

const missingIn = (sources: Source[]): number[] => {
  const named = new Set(sources.flatMap(namedIn))
  return wanted.filter(number => !named.has(number))
}

const tests = readSources('test').filter(
  ({ path }) => path.endsWith('.test.ts') && path !== 'test/cases.test.ts',
)

test('no case is without a test', () => {
  expect(missingIn(tests)).toEqual([])
})

test('no case is left to the rooms that reaches the door', () => {
  const door = tests.filter(({ path }) => path.startsWith('test/trip/door'))
  const inside = [...behind, 45, 120, 122, 123, 124, 125, 126, 127, 132]
  expect(missingIn(door).filter(number => !inside.includes(number))).toEqual([])
})

test('a number is found in names and rows, and nowhere else', () => {
  const table = "import { played } from '../support/door.ts'\n"
  const found = (text: string): number[] => namedIn(sourceOf('test/trip/x.test.ts', text))
  expect(found("test('case 7: x', () => {})")).toEqual([7])
  expect(found("test('cases 4, 8 and 27: x', () => {})")).toEqual([4, 8, 27])
  expect(found("test('15: x', () => {})")).toEqual([15])
  expect(found(`${table}[\n  9,\n  'x',\n]`)).toEqual([9])
  expect(found("[9, 'x']")).toEqual([])
  expect(found(`${table}expect(9).toBe(10) // in 11 cases`)).toEqual([])
  expect(missingIn([])).toEqual(wanted)
})

test('no case of asking agents is without a test', () => {
  const asking = [...Array.from({ length: 18 }, (_, at) => 135 + at), 171]
  const named = new Set(tests.flatMap(namedIn))
  expect(asking.filter(number => ![138, 139, 147].includes(number) && !named.has(number))).toEqual([])
})
