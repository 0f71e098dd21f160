// Runs jobs in processes of their own, side by side, and reads what they print.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Job, Result } from './main.ts'

const main = fileURLToPath(new URL('main.ts', import.meta.url))

/** Runs some jobs one after the other in one process, which loads the doors anew. */
export async function runJobs(jobs: readonly Job[]): Promise<Result[]> {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [main, JSON.stringify(jobs)], {
    maxBuffer: 64 * 1024 * 1024,
  })
  process.stderr.write(stderr)
  return stdout
    .trim()
    .split('\n')
    .map((line): Result => JSON.parse(line))
}

/** The same on both cores; the answers stand in the order of the jobs. */
export async function runBeside(jobs: readonly Job[]): Promise<Result[]> {
  const halves = [0, 1].map(half => jobs.filter((_, at) => at % 2 === half))
  const [even = [], odd = []] = await Promise.all(
    halves.map(half => (half.length === 0 ? [] : runJobs(half))),
  )
  return jobs.flatMap((_, at) => (at % 2 === 0 ? even : odd)[Math.floor(at / 2)] ?? [])
}
