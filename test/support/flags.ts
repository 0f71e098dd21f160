// Reads what a program of ours is asked for: shows its usage, and refuses what it does not know before anything begins.
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'

/**
 * The flags of this process. Ends it with its usage if that is asked for, and with 2 if one of them is not known.
 * @param usage shown to people
 */
export function readFlags<const Options extends ParseArgsOptionsConfig>(usage: string, options: Options) {
  if (process.argv.slice(2).some(flag => flag === '--help' || flag === '-h')) {
    process.stdout.write(`${usage}\n`)
    process.exit(0)
  }
  try {
    return parseArgs({ options }).values
  } catch (error) {
    return refuse(usage, error instanceof Error ? error.message : String(error))
  }
}

/** Ends this process over what it was asked for. @param why names the flag */
export function refuse(usage: string, why: string): never {
  process.stderr.write(`${why}\n\n${usage}\n`)
  process.exit(2)
}

/** The number that a flag gives; NaN for what is none, an empty text too. */
export const numberIn = (text: string): number => (text.trim() === '' ? Number.NaN : Number(text))
