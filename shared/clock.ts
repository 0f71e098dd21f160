// The one file that tells the time and draws random bytes when nobody hands them in.
import { randomBytes } from 'node:crypto'

/** Milliseconds since 1970, in UTC. */
export const systemNow = (): number => Date.now()

/** Cryptographically strong bytes. */
export const systemRandom = (length: number): Uint8Array => new Uint8Array(randomBytes(length))
