// Tells a time that can be moved forward, the same in every thread; it touches nothing but its own file.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

export type Clock = {
  /** Milliseconds since 1970: the system's time plus all advances. */
  now: () => number
  /** Moves the time forward by this many milliseconds; it cannot go back. */
  advance: (milliseconds: number) => void
  /** The offset as one 64-bit integer, for a thread that must tell the same time. */
  offset: SharedArrayBuffer
}

/**
 * Makes a clock.
 * @param file keeps the offset, so that a restart does not fall back in time; without one it starts at the system's time
 */
export function createClock(file?: string): Clock {
  const offset = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT)
  const cell = new BigInt64Array(offset)
  if (file !== undefined && existsSync(file)) cell[0] = BigInt(readFileSync(file, 'utf8'))
  return {
    offset,
    now: () => bentNow(offset),
    advance: milliseconds => {
      if (!(milliseconds >= 0)) throw new RangeError('A clock is only moved forward.')
      const bent = Atomics.load(cell, 0) + BigInt(Math.round(milliseconds))
      // On disk first: a kill in between may lose the advance for this process, never for the next one only.
      if (file !== undefined) {
        writeFileSync(`${file}.new`, String(bent))
        renameSync(`${file}.new`, file)
      }
      Atomics.store(cell, 0, bent)
    },
  }
}

const systemNow = Date.now

/** The time of a clock, told from its offset alone. */
export const bentNow = (offset: SharedArrayBuffer): number =>
  systemNow() + Number(Atomics.load(new BigInt64Array(offset), 0))
