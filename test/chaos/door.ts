// The crash matrix of the receive door: every await that a dry run finds fails, is cut off or is where the process ends; prints a table, and its exit status says whether the promises hold.
import { availableParallelism } from 'node:os'
import { readFlags } from '../support/flags.ts'
import { full, quick, writes } from './door/cells.ts'
import { isBad } from './door/judge.ts'
import { explore, playMatrix } from './door/matrix.ts'
import { naive } from './door/naive.ts'
import { startPlayer } from './door/players.ts'
import { lineOf, tableOf } from './door/print.ts'

const usage = `npm run chaos:door -- [flags]

  --quick     a part of it
  -h, --help  shows this`

const values = readFlags(usage, { quick: { type: 'boolean', default: false } })
const say = (line: string) => process.stdout.write(`${line}\n`)

const begun = performance.now()
const players = Array.from({ length: Math.min(4, availableParallelism()) }, startPlayer)
try {
  const { verdicts, dead, repeated, unplayed } = await explore(players, values.quick ? quick() : full())
  const bad = verdicts.filter(isBad)
  say(`${tableOf(verdicts)}\n`)
  for (const verdict of bad) say(lineOf(verdict))
  if (dead > 0) say(`${dead} messages that nobody could handle`)
  if (repeated > 0) say(`${repeated} cells were played again, for this machine was too slow for them`)

  if (unplayed.length > 0) say(`awaits that no cell strikes at: ${unplayed.join(', ')}`)

  let blind = false
  for (const name of Object.keys(naive)) {
    const caught = (await playMatrix(players, writes(), name)).verdicts.filter(isBad)
    const lost = caught.filter(verdict => verdict.lost).length
    say(`A door that ${name}: caught in ${caught.length} cells, lost ${lost}`)
    blind ||= lost === 0
  }

  const failed = bad.length > 0 || dead > 0 || unplayed.length > 0 || blind
  const seconds = Math.round((performance.now() - begun) / 1000)
  const outcome = failed ? 'the promises do NOT hold' : 'lost 0, doubled 0, wrong 0'
  say(`${verdicts.length} cells in ${seconds} s: ${outcome}`)
  process.exitCode = failed ? 1 : 0
} finally {
  for (const player of players) player.stop()
}
