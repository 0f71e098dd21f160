// Loads doors over loopback HTTP, in turn, and measures requests a second and the CPU time of the server for each.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import type { LambdaFunctionURLEvent } from 'aws-lambda'
import { makeScene } from './scene.ts'
import { median, type Row } from './table.ts'

const slices = 5
const sliceMs = 1000
const warmMs = 2000
const connections = 8

type Server = { child: ChildProcess; port: number; perSecond: number[]; microseconds: number[] }

/** Rows for throughput and cost of our door, bare node:http and Express. */
export async function loadRows(folder: string): Promise<Row[]> {
  const scene = makeScene(Date.now())
  const file = join(folder, 'load.json')
  writeFileSync(file, JSON.stringify(scene))
  const start = (name: string) => startServer(name, file)
  const [ours, bare, express] = await Promise.all([start('ours'), start('bare'), start('express')])
  const all = [ours, bare, express]
  for (const server of all) await drive(server, scene.pushes.RS256, warmMs)
  for (let slice = 0; slice < slices; slice++)
    for (const server of all) {
      const { perSecond, microseconds } = await drive(server, scene.pushes.RS256, sliceMs)
      server.perSecond.push(perSecond)
      server.microseconds.push(microseconds)
    }
  for (const { child } of all) child.kill()
  const against = 'bare node:http, the two writes only'
  return [
    row('HTTP, our door', 'requests/s', ours.perSecond, against, bare.perSecond),
    row('HTTP, our door, CPU of the server', 'µs', ours.microseconds, against, bare.microseconds),
    row('HTTP, Express, jose, the two writes', 'requests/s', express.perSecond, against, bare.perSecond),
    row('HTTP, Express, CPU of the server', 'µs', express.microseconds, against, bare.microseconds),
  ]
}

const row = (what: string, unit: string, values: number[], against: string, base: number[]): Row => ({
  what,
  value: `${median(values).toFixed(0)} ${unit}`,
  against,
  base: `${median(base).toFixed(0)} ${unit}`,
  ratios: values.map((value, at) => value / (base[at] ?? Number.NaN)),
})

async function startServer(name: string, scene: string): Promise<Server> {
  const child = fork(join(import.meta.dirname, 'serve.ts'), [name, scene], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const [port] = await once(child, 'message')
  return { child, port, perSecond: [], microseconds: [] }
}

/** CPU time that a server has used so far, in µs. */
async function cpuOf({ child }: Server): Promise<number> {
  child.send('cpu')
  const [used] = await once(child, 'message')
  return used
}

/** Pushes for a while over some connections, each as fast as it is answered. */
async function drive(
  server: Server,
  pushes: readonly LambdaFunctionURLEvent[],
  milliseconds: number,
): Promise<{ perSecond: number; microseconds: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const before = await cpuOf(server)
  const begun = performance.now()
  let done = 0
  const worker = async (): Promise<void> => {
    while (performance.now() - begun < milliseconds) {
      const event = pushes[done++ % pushes.length]
      if (event !== undefined) await push(server.port, agent, event)
    }
  }
  await Promise.all(Array.from({ length: connections }, worker))
  const seconds = (performance.now() - begun) / 1000
  const used = (await cpuOf(server)) - before
  agent.destroy()
  return { perSecond: done / seconds, microseconds: used / done }
}

/** Posts one push and waits for its 202. */
function push(
  port: number,
  agent: Agent,
  { rawPath, headers, body = '' }: LambdaFunctionURLEvent,
): Promise<void> {
  const { host: _host, ...sent } = headers
  return new Promise((resolve, reject) => {
    const posted = request({ port, agent, method: 'POST', path: rawPath, headers: sent }, response => {
      response.resume().on('end', () => {
        if (response.statusCode === 202) resolve()
        else reject(new Error(`A push was answered ${response.statusCode}`))
      })
    })
    posted.on('error', reject).end(Buffer.from(body, 'base64'))
  })
}
