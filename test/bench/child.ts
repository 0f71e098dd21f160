// Runs one variant in this process, which runs nothing else: as many blocks of calls as the parent says, then tells what a call cost.
import { readFileSync } from 'node:fs'
import type { Scene } from './scene.ts'
import { type Variant, variants } from './variants.ts'

const callsEach = 40

const [name = '', path = ''] = process.argv.slice(2)
const scene: Scene = JSON.parse(readFileSync(path, 'utf8'))
Object.assign(process.env, scene.env)
const known: Record<string, Variant> = variants
const call = await known[name]?.(scene)
if (call === undefined) throw new Error(`There is no variant ${name}`)
let done = 0

/** CPU time of one call in µs, over some calls. */
async function measure(): Promise<number> {
  const before = process.cpuUsage()
  for (let n = 0; n < callsEach; n++) await call?.(done++)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / callsEach
}

process.on('message', async (blocks: number) => {
  const costs: number[] = []
  for (let block = 0; block < blocks; block++) costs.push(await measure())
  costs.sort((a, b) => a - b)
  // The lower quartile: the slowest blocks tell of other programs on the machine.
  process.send?.(costs[Math.floor(blocks / 4)])
})
// The parent is gone: nobody waits for an answer.
process.on('disconnect', () => process.exit())
process.send?.('ready')
