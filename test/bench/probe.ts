// Imports one bundle in a fresh process and calls it some times with one push, and tells the CPU time of each step in ms.
import { readFileSync } from 'node:fs'
import type { Scene } from './scene.ts'

const [bundle = '', path = '', calls = '0'] = process.argv.slice(2)
const { pushes }: Scene = JSON.parse(readFileSync(path, 'utf8'))
const costs: number[] = []

async function timed<T>(step: () => Promise<T>): Promise<T> {
  const before = process.cpuUsage()
  const result = await step()
  const { user, system } = process.cpuUsage(before)
  costs.push((user + system) / 1000)
  return result
}

type Bundle = { handler: (event: unknown) => Promise<{ statusCode: number }> }

const { handler } = await timed((): Promise<Bundle> => import(bundle))
for (let call = 0; call < Number(calls); call++) {
  const { statusCode } = await timed(() => handler(pushes.RS256[0]))
  if (statusCode !== 202) throw new Error(`The bundle answered ${statusCode}`)
}
process.send?.(costs, () => process.exit())
