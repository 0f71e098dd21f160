// The one file that tells the time and draws random bytes when nobody hands them in.
import { randomBytes } from 'node:crypto'

/** Milliseconds since 1970, in UTC. */
export const systemNow = (): number => Date.now()

/** Cryptographically strong bytes. */
export const systemRandom = (length: number): Uint8Array => new Uint8Array(randomBytes(length))

/** A number from 0 to below 1, drawn in steps of 1/256: it spreads what would otherwise come at once. */
export const drawShare = ({ random }: { random: (length: number) => Uint8Array }): number =>
  (random(1)[0] ?? 0) / 256
