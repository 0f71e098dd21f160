// Draws repeatable numbers from a seed: each part of the world has a stream of its own, so that none disturbs another. Pure.
import { sha256 } from '../../../shared/hash.ts'

export type Random = {
  /** At least 0, below 1. */
  next: () => number
  /** A whole number, both ends included. */
  int: (from: number, to: number) => number
  /** True with this probability. */
  chance: (probability: number) => boolean
  /** One of a list that is not empty. */
  pick: <T>(list: readonly T[]) => T
  /** A stream of its own. */
  stream: (name: string) => Random
}

/** @param seed any text; the same seed gives the same numbers */
export function randomOf(seed: string): Random {
  let state = Buffer.from(sha256(seed)).readUInt32LE()
  // mulberry32 by Tommy Ettinger, in the public domain.
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1))
  return {
    next,
    int,
    chance: probability => next() < probability,
    pick: list => {
      const picked = list[int(0, list.length - 1)]
      if (picked === undefined) throw new Error('There is nothing to pick from')
      return picked
    },
    stream: name => randomOf(`${seed}/${name}`),
  }
}
