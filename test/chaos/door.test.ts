// The crash matrix of the receive door in short: what `npm run chaos:door` plays at every await, here at the two writes.
import { expect, test } from 'vitest'
import { type Cell, type Row, short, writes } from './door/cells.ts'
import { isBad, judge } from './door/judge.ts'
import { explore, playMatrix, unplayedIn } from './door/matrix.ts'
import { naive } from './door/naive.ts'
import { here } from './door/players.ts'
import { lineOf } from './door/print.ts'
import type { Seen } from './door/round.ts'
import { message } from './door/steps.ts'

test('wherever receive fails or is killed, no push is lost, doubled, or answered 2xx without a record or a message', async () => {
  const { verdicts, dead } = await playMatrix([here], short())
  expect(verdicts.length).toBe(2 * short().length)
  expect(verdicts.filter(isBad).map(lineOf)).toEqual([])
  expect(dead).toBe(0)
})

/** Where a door with its writes in the wrong order shows it. */
const telling = writes().filter(({ how, subject }) => how === 'kill before' && subject === 'completed')

test.each(Object.keys(naive))('a door that %s is caught losing pushes', async name => {
  const { verdicts } = await playMatrix([here], telling, name)
  expect(verdicts.some(({ lost }) => lost)).toBe(true)
})

const failing: Row = {
  ...{ scene: 'cold', subjects: ['completed'], known: [] },
  fresh: [{ hows: ['fail before'], subjects: ['completed'] }],
}

test('an await that receive gains is struck at though nobody listed it', async () => {
  const { verdicts, unplayed } = await explore([here], [failing], 'longer')
  const struck = verdicts.map(verdict => verdict.cell.step).filter(step => step !== undefined)
  const awaits = ['GetItem X', 'GetItem S', 'GetItem A', 'PutItem N', 'SendMessage', 'UpdateItem A health']
  expect([...new Set(struck)]).toEqual(awaits)
  expect(verdicts.filter(isBad).map(verdict => verdict.cell.step)).toContain('GetItem X')
  expect(unplayed).toEqual([])
})

test('an await that is only reached when something else fails, and at which no cell strikes, is named', () => {
  const verdicts = [{ cell, calls: ['PutItem N', 'PutItem N 2', 'SendMessage', 'UpdateItem N'] }]
  expect(unplayedIn(verdicts)).toEqual(['PutItem N', 'UpdateItem N'])
})

const cell: Cell = {
  ...{ scene: 'cold', weather: 'clear', step: message, how: 'fail before', subject: 'completed' },
}
const good: Seen = {
  ...{ cell, sender: 'once', answers: [202], struck: true, owned: true, uncovered: false, calls: [] },
  looks: { first: 0, ticked: 1, last: 1 },
  told: { ticked: ['completed'], last: ['completed'] },
}

test.each<[string, Partial<Seen>]>([
  ['a wake that comes twice', { told: { ticked: ['completed'], last: ['completed', 'completed'] } }],
  ['a state that is not the true one', { told: { ticked: ['working'], last: ['working'] } }],
  ['a look that nothing asked for', { looks: { first: 2, ticked: 2, last: 2 } }],
  ['news that only the floor finds', { looks: { first: 0, ticked: 0, last: 1 } }],
  ['a look that tells nobody', { told: { ticked: [], last: [] } }],
  ['2xx with nothing written', { uncovered: true }],
  ['an honest push refused for good', { answers: [401] }],
  ['a first push taken for a copy', { answers: [200] }],
  ['a sender that repeats in vain', { sender: 'again', answers: [503, 503, 503] }],
  ['a fault that never came', { struck: false }],
])('the matrix calls it wrong: %s', (_what, change) => {
  expect(isBad(judge(good))).toBe(false)
  expect(isBad(judge({ ...good, ...change }))).toBe(true)
})
