// Keeps what a laptop must remember beside the data: who holds the folder, and the secrets made once for it.
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as z from 'zod'
import { startDynamo } from './dynamodb.ts'

const Secrets = z.object({
  /** Root keys as the setting ROOT_KEYS takes them. */
  rootKeys: z.string(),
  operatorKey: z.string(),
  /** API keys by tenant. */
  keys: z.record(z.string(), z.string()),
})
export type Secrets = z.infer<typeof Secrets>

/** Paths inside a data folder; all undefined when nothing is kept. */
export type Folder = {
  table?: string
  queues?: string
  clock?: string
  /** Reads the secrets, making them on the first call. */
  secrets: () => Secrets
  /** Keeps the secrets, readable by the owner only. */
  save: (secrets: Secrets) => void
}

/** Opens a data folder, making it if it is not there; without a path nothing is kept. */
export function openFolder(dir: string | undefined): Folder {
  if (dir === undefined) return { secrets: makeSecrets, save: () => {} }
  makeFolder(dir)
  const file = join(dir, 'secrets.json')
  const save = (secrets: Secrets) => {
    writeFileSync(`${file}.new`, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 })
    renameSync(`${file}.new`, file)
  }
  return {
    table: join(dir, 'table'),
    queues: join(dir, 'queues'),
    clock: join(dir, 'clock'),
    save,
    secrets: () => {
      if (!existsSync(file)) save(makeSecrets())
      return readSecrets(file)
    },
  }
}

/** Makes a folder and those above it, one at a time: Node's recursive way never ends below a folder such as /proc. */
function makeFolder(dir: string): void {
  if (existsSync(dir)) return
  makeFolder(dirname(dir))
  mkdirSync(dir, { mode: 0o700 })
}

/** Without its root keys a folder's hooks and sealed credentials are void, so new ones are never made in passing. */
function readSecrets(file: string): Secrets {
  try {
    return Secrets.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    throw new Error(
      `${file} cannot be read as Rouse wrote it: put it back from a copy, or begin anew by --fresh.`,
    )
  }
}

/** Everything that a data folder holds; nothing else in it is ours to delete. */
const entries = [
  'table',
  'queues',
  'clock',
  'secrets.json',
  'secrets.json.new',
  'ports.json',
  'agent.json',
  'pid',
]

/**
 * Empties a data folder, if nobody uses it.
 * @throws Error naming the process that does
 */
export async function clearFolder(dir: string): Promise<void> {
  const table = join(dir, 'table')
  if (existsSync(table)) {
    // Opening it wins its lock, or says who has it.
    const held = await startDynamo({ path: table, now: Date.now }).catch((error: unknown) => {
      throw heldBy(dir, error)
    })
    await held.stop()
  }
  for (const entry of entries) rmSync(join(dir, entry), { recursive: true, force: true })
}

/** Notes this process as the holder, once the table's own lock has been won. */
export const noteHolder = (dir: string): void => writeFileSync(join(dir, 'pid'), String(process.pid))

/** Turns the table's "locked" into an error that says who is in the way. */
export function heldBy(dir: string, error: unknown): unknown {
  if (!(error instanceof Error && isLocked(error.cause))) return error
  const file = join(dir, 'pid')
  const pid = existsSync(file) ? readFileSync(file, 'utf8') : 'unknown'
  return new Error(
    `The data folder ${dir} is in use by process ${pid}; stop it, or choose another folder by --dir.`,
  )
}

const isLocked = (cause: unknown): boolean =>
  cause instanceof Error && 'code' in cause && cause.code === 'LEVEL_LOCKED'

const makeSecrets = (): Secrets => ({
  rootKeys: `1:${randomBytes(32).toString('base64url')}`,
  operatorKey: `op_${randomBytes(32).toString('base64url')}`,
  keys: {},
})
