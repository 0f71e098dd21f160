// Runs one variant in this process, which runs nothing else: so many calls as the parent says, then tells the CPU time that one took.
import { readFileSync } from 'node:fs'
import type { Scene } from './scene.ts'
import type { Variant } from './variants.ts'

const [file = '', name = '', path = ''] = process.argv.slice(2)
const scene: Scene = JSON.parse(readFileSync(path, 'utf8'))
Object.assign(process.env, scene.env)
const { variants }: { variants: Record<string, Variant> } = await import(file)
const call = await variants[name]?.(scene)
if (call === undefined) throw new Error(`There is no variant ${name}`)
let done = 0

process.on('message', async (blocks: number) => {
  const costs: number[] = []
  for (let block = 0; block < blocks; block++) {
    const before = process.cpuUsage()
    for (let n = 0; n < 40; n++) await call(done++)
    const { user, system } = process.cpuUsage(before)
    costs.push((user + system) / 40)
  }
  process.send?.(costs.sort((a, b) => a - b)[Math.floor(blocks / 4)])
})
process.send?.('ready')
