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

/** Rows for throughput and CPU time a request. */
export async function loadRows(folder: string): Promise<Row[]> {
  const scene = makeScene(Date.now())
  const file = join(folder, 'load.json')
  writeFileSync(file, JSON.stringify(scene))
  const start = (name: string) => startServer(name, file)
  const [bare, ours, express, ground] = await Promise.all([
    start('bare'),
    start('ours'),
    start('express'),
    start('ground'),
  ])
  const all = [bare, ours, express, ground]
  for (const server of all) await drive(server, scene.pushes.RS256, warmMs)
  for (let slice = 0; slice < slices; slice++)
    for (const server of all) {
      const { perSecond, microseconds } = await drive(server, scene.pushes.RS256, sliceMs)
      server.perSecond.push(perSecond)
      server.microseconds.push(microseconds)
    }
  for (const { child } of all) child.kill()
  return [
    ...rowsOf('our door', ours, bare),
    ...rowsOf('Express with jose and the writes', express, bare),
    ...rowsOf('our door on the local ground', ground, bare),
  ]
}

const rowsOf = (what: string, server: Server, bare: Server): Row[] => [
  row(`HTTP, ${what}`, 'requests/s', server.perSecond, bare.perSecond),
  row(`HTTP, ${what}, CPU`, 'µs', server.microseconds, bare.microseconds),
]

const row = (what: string, unit: string, values: number[], base: number[]): Row => ({
  what,
  value: `${median(values).toFixed(0)} ${unit}`,
  against: 'node:http that only writes, no check',
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
