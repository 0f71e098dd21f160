// Runs the fuzzer in a thread of its own, so that an input that never ends can be told from outside. Talks to watch.ts only.
import { parentPort, workerData } from 'node:worker_threads'
import fc from 'fast-check'
import { door } from '../../functions/receive.ts'
import { createRelay } from '../../shared/relay.ts'
import { standIn } from './aws.ts'
import { inputsFor } from './inputs.ts'
import { judge, type Watched } from './judge.ts'
import { begin, makeScene, type Scene } from './scene.ts'

/** What the thread is told. `beat` counts the inputs that were begun. */
export type Order = { runs: number; seed: number; beat: SharedArrayBuffer }

/** What it tells in the end. */
export type Report = { runs: number; outcomes: Record<string, number>; fault?: string }

/** Inputs given to one door, whose clock goes on by a millisecond each. */
const shift = 50_000

const { runs, seed, beat }: Order = workerData
const begun = new Int32Array(beat)
const outcomes: Record<string, number> = {}

function openDoor({ env, items }: Scene): Watched & { next: () => void } {
  let at = begin
  let lines: string[] = []
  const world = { now: () => at, write: (line: string) => lines.push(line) }
  const relay = createRelay('receive', env, world)
  const calls = standIn(relay, items)
  return {
    handler: door(relay),
    calls,
    lines: () => {
      const since = lines
      lines = []
      return since
    },
    next: () => {
      at += 1
    },
  }
}

/** @returns what went wrong first, made as small as it goes */
async function fuzz(count: number, from: number): Promise<string | undefined> {
  const scene = makeScene()
  const watched = openDoor(scene)
  const property = fc.asyncProperty(inputsFor(scene), async input => {
    Atomics.add(begun, 0, 1)
    watched.next()
    const outcome = await judge(watched, input)
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  })
  const details = await fc.check(property, { numRuns: count, seed: from })
  return details.failed ? fc.defaultReportMessage(details) : undefined
}

let fault: string | undefined
for (let done = 0; done < runs && fault === undefined; done += shift)
  fault = await fuzz(Math.min(shift, runs - done), seed + done)
const report: Report = { runs: Atomics.load(begun, 0), outcomes, ...(fault !== undefined && { fault }) }
parentPort?.postMessage(report)
