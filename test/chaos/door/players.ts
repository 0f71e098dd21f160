// Plays rounds here or in processes beside this one, so that a whole matrix takes all cores.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Cell } from './cells.ts'
import { type Options, playRound, type Round } from './round.ts'

export type Job = { cells: readonly Cell[]; options: Options }

export type Player = { play: (job: Job) => Promise<Round>; stop: () => void }

/** Plays in this process. */
export const here: Player = { play: ({ cells, options }) => playRound(cells, options), stop: () => {} }

/** Plays in a process of its own. */
export function startPlayer(): Player {
  const child = fork(new URL('./player.ts', import.meta.url))
  const gone = once(child, 'exit').then(([code]): never => {
    throw new Error(`A player ended with ${code}`)
  })
  gone.catch(() => {})
  return {
    play: async job => {
      child.send(job)
      const [round] = await Promise.race([once(child, 'message'), gone])
      return round
    },
    stop: () => {
      child.kill()
    },
  }
}
