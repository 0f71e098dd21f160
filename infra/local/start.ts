// The program behind `npm start`: brings up the whole relay, says what is where, tells the story once, and stays up until it is told to stop.
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type DemoAgent, startAgent } from './agent.ts'
import { clearFolder } from './folder.ts'
import { ofLastRun, recallPorts, rememberPorts } from './ports.ts'
import { type Local, startLocal } from './run.ts'
import { loopback } from './settings.ts'
import { collectSteps, tellStory } from './story.ts'

const { values: flags } = readFlags()

function readFlags() {
  try {
    return parseArgs({
      options: {
        once: { type: 'boolean', default: false },
        fresh: { type: 'boolean', default: false },
        dir: { type: 'string', default: '.rouse' },
        'hook-port': { type: 'string' },
        'api-port': { type: 'string' },
        allow: { type: 'string', default: '' },
        tick: { type: 'string', default: 'second' },
        verbose: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
  } catch (error) {
    return fail(error)
  }
}

function fail(error: unknown): never {
  console.error(`rouse: ${error instanceof Error ? error.message : error}`)
  process.exit(1)
}

const help = `npm start -- [flags]

  --once             ends after the story; exit status 0 if every step of it worked
  --fresh            begins with an empty data folder
  --dir FOLDER       keeps the data there; .rouse unless given
  --hook-port N      where agents push to; the port of the last run, else any
  --api-port N       where the API listens; the port of the last run, else any
  --allow CIDRS      private addresses that may be called beside the loopback's, commas between
  --tick PACE        second (unless given), or minute as on AWS
  --verbose          shows each step's log line
  -h, --help         shows this`

const portOf = (text: string | undefined): number | undefined => {
  const port = Number(text)
  if (text !== undefined && !(Number.isInteger(port) && port >= 0 && port < 65536))
    fail(new Error(`"${text}" is no port`))
  return text === undefined ? undefined : port
}

async function main(): Promise<void> {
  if (flags.help) {
    console.log(help)
    return
  }
  if (flags.tick !== 'second' && flags.tick !== 'minute') fail(new Error('--tick is second or minute'))
  if (flags.fresh) await clearFolder(flags.dir)
  const steps = collectSteps()
  const asked = { hook: portOf(flags['hook-port']), api: portOf(flags['api-port']) }
  const last = await recallPorts(flags.dir)
  const [hook, api] = [asked.hook ?? last.hook, asked.api ?? last.api]
  const local = await startLocal({
    dir: flags.dir,
    tick: flags.tick,
    net: {
      ...loopback,
      allowAddresses: [...loopback.allowAddresses, ...flags.allow.split(',').filter(Boolean)],
    },
    ports: { ...(hook !== undefined && { hook }), ...(api !== undefined && { api }) },
    onStep: (_door, step) => steps.note(step),
    ...(flags.verbose && { write: (line: string) => console.log(line) }),
  }).catch(error => {
    throw ofLastRun(error, asked)
  })
  const agent = await startAgent({
    now: local.now,
    sign: 'ES256',
    keyFile: join(flags.dir, 'agent.json'),
    ...(last.agent !== undefined && { port: last.agent }),
  })
  const portIn = (origin: string): number => Number(new URL(origin).port)
  rememberPorts(flags.dir, {
    hook: portIn(local.hookOrigin),
    api: portIn(local.apiOrigin),
    agent: portIn(agent.origin),
  })
  const stop = async (status: number): Promise<never> => {
    await Promise.all([agent.stop(), local.stop()])
    process.exit(status)
  }
  process.once('SIGINT', () => void stop(0))
  process.once('SIGTERM', () => void stop(0))
  const key = local.keys.demo ?? ''
  sayWhere(local, agent, key)
  try {
    await tellStory(local, agent, key, steps, sayMilestone(local))
  } catch (error) {
    console.error(`\nThe story broke at ${error instanceof Error ? error.message : error}`)
    if (flags.once) await stop(1)
  }
  if (flags.once) await stop(0)
  console.log('\nIt stays up. Ctrl-C stops it; what it knows stays in the data folder.')
}

function sayWhere(local: Local, agent: DemoAgent, key: string): void {
  console.log(`Rouse is up.
  hooks (agents push here)   ${local.hookOrigin}
  API                        ${local.apiOrigin}
  API key to try with        ${key}
  demo agent, its card       ${agent.cardUrl()}
  data folder                ${flags.dir}
`)
}

const sayMilestone = (local: Local) => (milestone: string, says: string) => {
  console.log(`${new Date(local.now()).toISOString()}  ${milestone.padEnd(11)} ${says}`)
}

await main().catch(fail)
