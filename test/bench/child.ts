// Measures one variant in this process, which runs nothing else: CPU per call, after warming up. The result goes to the parent.
import { readFileSync } from 'node:fs'
import { kinds, type Scene } from './scene.ts'
import { variants } from './variants.ts'

const [name = '', file = ''] = process.argv.slice(2)
const scene: Scene = JSON.parse(readFileSync(file, 'utf8'))
Object.assign(process.env, scene.env)
const warm = 1500
const blocks = 10
const each = 150
const variant = variants[name]
if (variant === undefined) throw new Error(`No variant ${name} among ${Object.keys(variants)} ${kinds}`)
const call = variant(scene)
for (let n = 0; n < warm; n++) await call(n)
const costs: number[] = []
for (let block = 0; block < blocks; block++) {
  const before = process.cpuUsage()
  for (let n = 0; n < each; n++) await call(n)
  const { user, system } = process.cpuUsage(before)
  costs.push((user + system) / each)
}
costs.sort((a, b) => a - b)
process.send?.({ microseconds: costs[Math.floor(costs.length / 2)] })
process.disconnect?.()
