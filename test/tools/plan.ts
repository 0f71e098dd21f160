// Evaluates the real sst.config.ts as `sst deploy` does, with mocks in place of AWS. Run as a program: stage, then the file to write.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type BuildOptions, build, type Plugin } from 'esbuild'
import { bundle, root } from '../../infra/local/bundle.ts'
import { mocks, type Resource } from './mocks.ts'

export type Plan = {
  app: { name: string; removal?: string; protect?: boolean; version?: string }
  resources: Resource[]
  outputs: Record<string, unknown>
}

const work = join(root, '.sst')
const platform = join(work, 'platform')
const pulumi: typeof import('@pulumi/pulumi') = createRequire(join(platform, 'package.json'))(
  '@pulumi/pulumi',
)

const options: BuildOptions = { bundle: true, format: 'esm', platform: 'node', logLevel: 'error' }

/** An import is kept by its name: no two programs of a process may share one. */
let programs = 0

/** Bundles a program into the platform's folder, where Pulumi's packages are found, and runs it. */
async function evaluate(contents: string, more: BuildOptions): Promise<unknown> {
  const outfile = join(platform, `plan.${process.pid}.${++programs}.mjs`)
  try {
    await build({ ...options, ...more, stdin: { contents, resolveDir: root, loader: 'ts' }, outfile })
    return (await import(pathToFileURL(outfile).href)).default
  } finally {
    rmSync(outfile, { force: true })
  }
}

/** First, like the command line, only what the app says about itself. */
async function readApp(stage: string): Promise<Plan['app']> {
  const program = `globalThis.$config = config => config
    const { default: config } = await import('./sst.config.ts')
    export default config.app({ stage: ${JSON.stringify(stage)} })`
  return (await evaluate(program, { external: ['./infra/*'] })) as Plan['app']
}

/** The names that SST lends to every file of an app. */
const lend: Plugin = {
  name: 'lend',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      if (path.startsWith(work) || path.includes('node_modules')) return undefined
      const lent = `import * as aws from '@pulumi/aws'; import * as sst from '${platform}/src/components';`
      return { contents: `${lent}\n${readFileSync(path, 'utf8')}`, loader: 'ts' }
    }),
}

/** Then all of it, inside a Pulumi stack. */
function readStack(app: Plan['app'], stage: string): Promise<Record<string, unknown>> {
  const program = `import { run } from '${platform}/src/auto/run.ts'
    import config from './sst.config.ts'
    export default await run(() => config.run())`
  const cli = {
    command: 'deploy',
    dev: false,
    paths: { home: work, root, work, platform },
    state: { version: {} },
  }
  return pulumi.runtime.runInPulumiStack(() =>
    evaluate(program, {
      banner: {
        js: `import { createRequire as makeRequire } from 'module'; const require = makeRequire(import.meta.url);
          const __dirname = import.meta.dirname; const __filename = import.meta.filename;`,
      },
      mainFields: ['module', 'main'],
      nodePaths: [join(platform, 'node_modules')],
      inject: [join(platform, 'src/shim/run.js')],
      define: { $app: JSON.stringify({ ...app, stage }), $cli: JSON.stringify(cli), $dev: 'false' },
      external: [
        '@pulumi/*',
        '@aws-sdk/*',
        '@sst-provider/*',
        '@pulumiverse/*',
        'undici',
        'esbuild',
        'archiver',
        'glob',
        'vite',
      ],
      plugins: [lend],
    }),
  ) as Promise<Record<string, unknown>>
}

/** The part of SST's command line that its components call: where assets go, and bundling a handler. */
async function startCommandLine(): Promise<Server> {
  const run = async (method: string, [input]: { functionID: string; handler: string }[]) => {
    if (method === 'Provider.Aws.Bootstrap') return { asset: 'assets', state: 'state' }
    if (method !== 'Runtime.Build' || input === undefined) return {}
    const folder = join(work, 'artifacts', `${input.functionID}-src`)
    const { file } = await bundle(input.handler, folder)
    const { [input.handler.split('.').at(-1) ?? '']: handler } = await import(pathToFileURL(file).href)
    if (typeof handler !== 'function') return { errors: [`${input.handler} is no function`] }
    return { handler: 'bundle.handler', out: folder, errors: [], sourcemaps: [`${file}.map`] }
  }
  const server = createServer(async (request, response) => {
    const { method, params } = JSON.parse((await request.toArray()).join(''))
    const answer = await run(method, params).then(
      result => ({ result }),
      (error: Error) => ({ error: error.message }),
    )
    response.end(JSON.stringify(answer))
  })
  await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
  return server
}

async function plan(stage: string): Promise<Plan> {
  const resources: Resource[] = []
  const server = await startCommandLine()
  const address = server.address()
  process.env.SST_SERVER = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  await pulumi.runtime.setMocks(mocks(resources), 'rouse', stage, false)
  const app = await readApp(stage)
  const outputs = await readStack(app, stage)
  await pulumi.runtime.disconnect()
  server.close()
  return { app, resources, outputs }
}

const [, , stage = 'dev', file = 'plan.json'] = process.argv
writeFileSync(file, JSON.stringify(await plan(stage), null, 1))
