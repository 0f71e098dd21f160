// Plays a matrix against both kinds of sender, in rounds of a size that the local ground bears, and judges it.
import type { Cell } from './cells.ts'
import { judge, type Verdict } from './judge.ts'
import type { Player } from './players.ts'
import { isTaken, type Options, type Round } from './round.ts'

export type Played = {
  verdicts: Verdict[]
  dead: number
  /** Rounds that were played once more. */
  repeated: number
}

const mostAtOnce = 40
const mostRepeats = 2

/**
 * A sender that repeats does the same as one that does not until it is refused: where the first push was taken, what
 * came of it stands for both.
 */
export async function playMatrix(
  players: readonly Player[],
  cells: readonly Cell[],
  door = 'receive',
): Promise<Played> {
  const once = await play(players, cells, { sender: 'once', door })
  const taken = once.verdicts.filter(isTakenAtOnce)
  const refused = once.verdicts.filter(verdict => !isTakenAtOnce(verdict))
  const again = await play(
    players,
    refused.map(({ cell }) => cell),
    { sender: 'again', door },
  )
  const same = taken.map(verdict => ({ ...verdict, sender: 'again' as const }))
  return {
    verdicts: [...once.verdicts, ...same, ...again.verdicts],
    dead: once.dead + again.dead,
    repeated: once.repeated + again.repeated,
  }
}

const isTakenAtOnce = ({ answers: [first = 0] }: Verdict): boolean => isTaken(first)

async function play(players: readonly Player[], cells: readonly Cell[], options: Options): Promise<Played> {
  const parts = Math.ceil(cells.length / mostAtOnce)
  // Dealt out like cards, so that slow neighbours do not all sit in one round.
  const jobs = Array.from({ length: parts }, (_, part) => cells.filter((_, at) => at % parts === part))
  const rounds: Round[] = []
  let next = 0
  let repeated = 0
  const work = async ({ play: playOne }: Player): Promise<void> => {
    for (let at = next++; at < parts; at = next++) {
      const job = { cells: jobs[at] ?? [], options }
      let round = await playOne(job)
      // What the ground lost hold of would count as lost by the door. A door that loses does so each time.
      for (let tries = 0; round.held > 0 && tries < mostRepeats; tries++) {
        repeated += 1
        round = await playOne(job)
      }
      rounds[at] = round
    }
  }
  await Promise.all(players.map(work))
  return {
    verdicts: rounds.flatMap(({ seen }) => seen.map(judge)),
    dead: rounds.reduce((sum, { dead }) => sum + dead, 0),
    repeated,
  }
}
