// Plays the rounds that its parent sends, one after the other.
import type { Job } from './players.ts'
import { playRound } from './round.ts'

process.on('message', async ({ cells, options }: Job) => {
  process.send?.(await playRound(cells, options))
})
