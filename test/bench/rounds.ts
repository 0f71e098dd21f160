// Measures in rounds: every variant has a process of its own, and in each round each has its turn, so that a busy machine is busy for all of them.
import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Scene } from './scene.ts'
import type { VariantName } from './variants.ts'

/** CPU time of a call in µs, one value a round. */
export type Costs = (name: VariantName) => number[]

const warmBlocks = 30
const blocks = 8
const roundsAtLeast = 5
const roundsAtMost = 25

/**
 * Measures variants side by side.
 * @param folder for the scene, which every process reads
 * @param milliseconds after which no further round begins, but for the few that there must be
 */
export async function measure(
  names: readonly VariantName[],
  scene: Scene,
  folder: string,
  milliseconds: number,
): Promise<Costs> {
  const file = join(folder, 'scene.json')
  writeFileSync(file, JSON.stringify(scene))
  const runners = await Promise.all(names.map(name => startRunner(name, file)))
  try {
    for (const { run } of runners) await run(warmBlocks)
    const costs = runners.map((): number[] => [])
    const end = performance.now() + milliseconds
    for (let round = 0; round < roundsAtMost; round++) {
      if (round >= roundsAtLeast && performance.now() > end) break
      for (const [at, { run }] of runners.entries()) costs[at]?.push(await run(blocks))
    }
    return name => costs[names.indexOf(name)] ?? []
  } finally {
    for (const { stop } of runners) stop()
  }
}

type Runner = { run: (blocks: number) => Promise<number>; stop: () => void }

/** Starts the process of one variant. Its output goes nowhere: only our door writes any, its log lines. */
async function startRunner(name: VariantName, scene: string): Promise<Runner> {
  const child = fork(join(import.meta.dirname, 'child.ts'), [name, scene], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const answer = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const ended = (): void => reject(new Error(`The process of "${name}" ended`))
      child.once('exit', ended)
      child.once('message', message => {
        child.off('exit', ended)
        resolve(Number(message))
      })
    })
  await answer()
  return {
    run: count => {
      child.send(count)
      return answer()
    },
    stop: () => child.kill(),
  }
}
