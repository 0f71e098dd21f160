// Remembers the ports of a data folder: hooks that were handed out, and origins that were pinned, name them for as long as tasks live.
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import * as z from 'zod'
import { isRecord } from './wire.ts'

const Port = z.number().int().min(1).max(65535).exactOptional()
const Ports = z.object({ hook: Port, api: Port, agent: Port })
export type Ports = z.infer<typeof Ports>

const fileIn = (dir: string): string => join(dir, 'ports.json')

/** The ports of the last run. The demo agent's is left out when somebody else uses it now: another one serves it as well. */
export async function recallPorts(dir: string): Promise<Ports> {
  const { agent, ...ports } = readPorts(dir)
  return { ...ports, ...(agent !== undefined && (await isFree(agent)) && { agent }) }
}

/**
 * Says what a taken port means when nobody asked for it: to choose another in silence would leave the hooks that agents
 * hold, and the origins that clients know, to nobody.
 */
export function ofLastRun(error: unknown, asked: Record<'hook' | 'api', number | undefined>): unknown {
  if (!(error instanceof Error && isRecord(error.cause) && error.cause.code === 'EADDRINUSE')) return error
  if (error.cause.port === asked.hook || error.cause.port === asked.api) return error
  return new Error(
    `${error.message}. It is the port of the last run: free it, or choose by --hook-port or --api-port (0 for a free one); what was handed out with it is void then.`,
  )
}

export const rememberPorts = (dir: string, ports: Ports): void =>
  writeFileSync(fileIn(dir), JSON.stringify(ports))

function readPorts(dir: string): Ports {
  try {
    return Ports.parse(JSON.parse(readFileSync(fileIn(dir), 'utf8')))
  } catch {
    // No file yet, or one that was cut short: then any port will do.
    return {}
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
