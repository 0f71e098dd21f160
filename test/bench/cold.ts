// Weighs the bundle of the receive door and measures its cold start, against the floor bundled the same way.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { bundle } from '../../infra/local/bundle.ts'
import { listen } from '../../infra/local/wire.ts'
import { doors } from '../../infra/topology.ts'
import { createAws } from './aws.ts'
import { makeScene, type Scene } from './scene.ts'
import { atMost, quantile, type Row } from './table.ts'

const rounds = 25

/** What a fresh process spent on a bundle, in ms of CPU time, one value a round. */
type Steps = { imported: number[]; first: number[]; second: number[] }

/** Rows for bytes, import and first calls. */
export async function coldRows(folder: string): Promise<Row[]> {
  const receive = await bundle(doors.receive.handler, join(folder, 'receive'))
  const alone = await bundle('test/bench/alone.handler', join(folder, 'alone'))
  const floor = await bundle('test/bench/floor.handler', join(folder, 'floor'))
  const runs = await probe(folder, [
    { file: receive.file, calls: 2 },
    { file: floor.file, calls: 2 },
    { file: alone.file, calls: 0 },
  ])
  const [ours, theirs, bare] = runs
  if (ours === undefined || theirs === undefined || bare === undefined) throw new Error('A run is missing')
  const bytes = [receive.bytes / alone.bytes]
  const imported = row('its import', ours.imported, 'SDK clients + jose alone', bare.imported)
  return [
    {
      what: 'receive bundle',
      value: `${receive.bytes} B`,
      against: 'SDK clients + jose alone',
      base: `${alone.bytes} B`,
      ratios: bytes,
      budget: atMost('bytes', 1.15, bytes),
    },
    { ...imported, budget: atMost('ratio', 1.15, imported.ratios ?? []) },
    row('first call after it', ours.first, 'the floor, first call', theirs.first),
    row('second call', ours.second, 'the floor, second call', theirs.second),
  ]
}

/** Of each the lower quartile: in a fresh process all is slow that comes late, and nothing is fast by chance. */
const quiet = (values: readonly number[]): number => quantile(values, 0.25)

const row = (what: string, ours: readonly number[], against: string, base: readonly number[]): Row => ({
  what,
  value: `${quiet(ours).toFixed(1)} ms`,
  against,
  base: `${quiet(base).toFixed(1)} ms`,
  ratios: [quiet(ours) / quiet(base)],
})

/** Runs each bundle in fresh processes, in turn, against a stand-in for AWS and for the key host over HTTP. */
async function probe(folder: string, bundles: { file: string; calls: number }[]): Promise<Steps[]> {
  const scene = makeScene(Date.now())
  const file = join(folder, 'cold.json')
  writeFileSync(file, JSON.stringify(scene))
  const host = await openHost(scene)
  const env = {
    ...scene.env,
    AWS_ENDPOINT_URL_DYNAMODB: host.origin,
    AWS_ENDPOINT_URL_SQS: host.origin,
    LOOK_QUEUE_URL: `${host.origin}/123456789012/look`,
    JWKS_URL: `${host.origin}/jwks.json`,
  }
  const steps = bundles.map((): Steps => ({ imported: [], first: [], second: [] }))
  for (let round = 0; round < rounds; round++)
    for (const [at, { file: bundled, calls }] of bundles.entries()) {
      const child = fork(join(import.meta.dirname, 'probe.ts'), [bundled, file, String(calls)], {
        env,
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
      const [costs]: unknown[] = await once(child, 'message')
      const [imported, first, second] = Array.isArray(costs) ? costs.map(Number) : []
      steps[at]?.imported.push(imported ?? Number.NaN)
      steps[at]?.first.push(first ?? Number.NaN)
      steps[at]?.second.push(second ?? Number.NaN)
    }
  await host.stop()
  return steps
}

/** The stand-in for AWS behind a port, and the key set for whoever asks with GET. */
async function openHost(scene: Scene): Promise<{ origin: string; stop: () => Promise<void> }> {
  const { answer } = createAws(scene)
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { status, text } =
      request.method === 'GET'
        ? { status: 200, text: JSON.stringify(scene.jwks) }
        : answer(String(request.headers['x-amz-target']), Buffer.concat(chunks).toString())
    response.writeHead(status, { 'content-type': 'application/json' }).end(text)
  })
  const port = await listen(server, 0)
  return {
    origin: `http://127.0.0.1:${port}`,
    stop: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
