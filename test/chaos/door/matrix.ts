// Plays a matrix against both kinds of sender, in rounds of a size that the local ground bears, and judges it.
import { type Cell, dry, planned, type Row } from './cells.ts'
import { isBad, judge, type Verdict } from './judge.ts'
import type { Job, Player } from './players.ts'
import { isTaken, type Options } from './round.ts'
import { kindOf } from './steps.ts'

export type Played = {
  verdicts: Verdict[]
  /** Messages that were received too often: each is one that nobody could handle. */
  dead: number
  /** How often cells were played again. */
  repeated: number
}

const mostAtOnce = 40
const mostRepeats = 2

/** A matrix whose awaits were found by running the door. */
export type Explored = Played & {
  /** What the door was seen waiting for and was never struck at: the matrix does not cover it. */
  unplayed: string[]
}

/** Runs the door in each place with nothing wrong but the weather, then strikes at all that it was seen waiting for. */
export async function explore(
  players: readonly Player[],
  rows: readonly Row[],
  door = 'receive',
): Promise<Explored> {
  const calm = await playMatrix(players, dry(rows), door)
  const calls = new Map(calm.verdicts.map(verdict => [placeOf(verdict.cell), verdict.calls]))
  const cells = planned(rows, place => calls.get(placeOf(place)) ?? [])
  const struck = await playMatrix(players, cells, door)
  const played = joined([calm, struck])
  return { ...played, unplayed: unplayedIn(played.verdicts) }
}

/** What any door was seen waiting for, also after something went wrong, at which no cell strikes. */
export function unplayedIn(verdicts: readonly Pick<Verdict, 'cell' | 'calls'>[]): string[] {
  const seen = new Set(verdicts.flatMap(({ calls }) => calls).map(kindOf))
  for (const { cell } of verdicts) seen.delete(kindOf(cell.step ?? ''))
  return [...seen]
}

const placeOf = ({ scene, weather, subject }: Cell): string => [scene, weather, subject].join()

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
  const played = joined([once, { verdicts: same, dead: 0, repeated: 0 }, again])
  return { ...played, verdicts: inOrder(played.verdicts, cells) }
}

/** As the cells were given, one kind of sender after the other. */
function inOrder(verdicts: readonly Verdict[], cells: readonly Cell[]): Verdict[] {
  const places = new Map(cells.map((cell, at) => [JSON.stringify(cell), at]))
  const placeOf = ({ cell }: Verdict): number => places.get(JSON.stringify(cell)) ?? 0
  return verdicts.toSorted((a, b) => placeOf(a) - placeOf(b) || b.sender.localeCompare(a.sender))
}

const isTakenAtOnce = ({ answers: [first = 0] }: Verdict): boolean => isTaken(first)

async function play(players: readonly Player[], cells: readonly Cell[], options: Options): Promise<Played> {
  const parts = Math.ceil(cells.length / mostAtOnce)
  // Dealt out like cards, so that slow neighbours do not all sit in one round.
  const jobs = Array.from({ length: parts }, (_, part) => cells.filter((_, at) => at % parts === part))
  const played: Played[] = []
  let next = 0
  const work = async (player: Player): Promise<void> => {
    for (let at = next++; at < parts; at = next++)
      played[at] = await playSteadily(player, { cells: jobs[at] ?? [], options }, mostRepeats)
  }
  await Promise.all(players.map(work))
  return joined(played)
}

/** What went wrong while the machine was strained is played again by itself: a door that loses does so each time. */
async function playSteadily(player: Player, job: Job, repeats: number): Promise<Played> {
  const { seen, dead, strained } = await player.play(job)
  const verdicts = seen.map(judge)
  const bad = verdicts.filter(isBad)
  if (!strained || bad.length === 0 || repeats === 0) return { verdicts, dead, repeated: 0 }
  const cells = bad.map(({ cell }) => cell)
  const again = await playSteadily(player, { ...job, cells }, repeats - 1)
  return joined([
    { verdicts: verdicts.filter(verdict => !isBad(verdict)), dead: 0, repeated: cells.length },
    again,
  ])
}

const joined = (parts: readonly Played[]): Played => ({
  verdicts: parts.flatMap(({ verdicts }) => verdicts),
  dead: parts.reduce((sum, { dead }) => sum + dead, 0),
  repeated: parts.reduce((sum, { repeated }) => sum + repeated, 0),
})
