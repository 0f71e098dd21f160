// Remembers the ports of a data folder: hooks that were handed out, and origins that were pinned, name them for as long as tasks live.
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

export type Ports = { hook?: number; api?: number; agent?: number }

const fileIn = (dir: string): string => join(dir, 'ports.json')

/** The ports of the last run, but those that somebody else uses now. */
export async function recallPorts(dir: string): Promise<Ports> {
  const ports: Ports = {}
  for (const name of ['hook', 'api', 'agent'] as const) {
    const port = readPorts(dir)[name]
    if (typeof port === 'number' && (await isFree(port))) ports[name] = port
  }
  return ports
}

export const rememberPorts = (dir: string, ports: Ports): void =>
  writeFileSync(fileIn(dir), JSON.stringify(ports))

function readPorts(dir: string): Ports {
  try {
    return JSON.parse(readFileSync(fileIn(dir), 'utf8'))
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
