// Stands the whole of Rouse up in one process, in order or not at all, and takes it down again. The doors are handed in.
import { type Admin, createAdmin } from './admin.ts'
import { openFolder, type Secrets } from './folder.ts'
import { type Base, type Doors, type GroundOptions, openDoors, type Running, startBase } from './parts.ts'

export type Ground = Admin & {
  hookOrigin: string
  apiOrigin: string
  secrets: Secrets
  /** The settings of all doors; the access key id, which is the door's name, comes on top. */
  env: Readonly<Record<string, string>>
  /** Keeps the secrets in the data folder. */
  save: (secrets: Secrets) => void
  now: () => number
  /** Moves the time forward by milliseconds, for doors, queues and expiry alike. */
  advance: (milliseconds: number) => void
  /** Runs one tick. @throws what the tick door threw */
  tick: () => Promise<void>
  /** Runs until nothing is due now; what waits for its time does not count. @throws Error after `limitMs` */
  drain: (limitMs?: number) => Promise<void>
  /** Ends in order, within 2 s; what is under way longer is left to the queues. */
  stop: () => Promise<void>
  /** Abandons everything at once, as a kill would. */
  kill: () => Promise<void>
}

/** How long requests and batches under way may go on when the ground stops. */
const graceMs = 1200

/** How often expired items are swept, in the system's time. AWS takes up to days. */
const sweepMs = 60_000

/**
 * Starts everything.
 * @throws Error saying what is in the way: a data folder in use, a port taken, another table layout
 */
export async function startGround(doors: Doors, options: GroundOptions = {}): Promise<Ground> {
  const base = await startBase(openFolder(options.dir), options)
  try {
    return toGround(base, await openDoors(base, doors))
  } catch (error) {
    await abandon(base)
    throw error
  }
}

function toGround(base: Base, running: Running): Ground {
  const { clock, dynamo, sqs } = base
  const { env, secrets, pumps, ticker } = running
  const sweeper = setInterval(() => void dynamo.sweep().catch(() => {}), sweepMs).unref()
  return {
    ...createAdmin(dynamo, sqs, env.TABLE_NAME ?? ''),
    hookOrigin: env.HOOK_ORIGIN ?? '',
    apiOrigin: env.PUBLIC_ORIGIN ?? '',
    ...{ secrets, env },
    save: base.folder.save,
    now: clock.now,
    advance: milliseconds => {
      clock.advance(milliseconds)
      base.poke()
    },
    tick: ticker.tick,
    drain: (limitMs = 30_000) => drain(base, running, performance.now() + limitMs),
    stop: async () => {
      clearInterval(sweeper)
      await atMost(graceMs, Promise.all([...base.urls, ...pumps, ticker].map(part => part.stop())))
      silence(base)
      await Promise.all(base.urls.map(url => url.kill()))
      await Promise.all([sqs.stop(), dynamo.stop()])
    },
    kill: async () => {
      clearInterval(sweeper)
      for (const pump of pumps) pump.kill()
      ticker.kill()
      await abandon(base)
    },
  }
}

/** Ends the listening and calling of all doors; a handler that still runs fails at its next call. */
function silence(base: Base): void {
  base.alive = false
  for (const { table, queues } of base.relays) {
    table.client.destroy()
    queues.client.destroy()
  }
}

async function abandon(base: Base): Promise<void> {
  silence(base)
  await Promise.all([...base.urls.map(url => url.kill()), base.sqs.kill(), base.dynamo.stop()])
}

/** Waits for the work, not longer than the time given. Gives whether it was done. */
async function atMost(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  const over = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => over.resolve(false), milliseconds)
  const done = await Promise.race([work.then(() => true), over.promise])
  clearTimeout(timer)
  return done
}

/** Quiet means: polls that began after the last send found both queues empty, and a tick then sent nothing. */
async function drain({ sqs }: Base, { pumps, ticker }: Running, end: number): Promise<void> {
  let reason = 'no time was given'
  for (let left = end - performance.now(); left > 0; left = end - performance.now()) {
    const before = sqs.sends()
    const calm = await atMost(left, Promise.all(pumps.map(pump => pump.settle())))
    if (!calm || sqs.sends() > before) {
      reason = 'messages beget messages'
      continue
    }
    const failure = await ticker.tick().then(
      () => undefined,
      error => `tick fails: ${error}`,
    )
    if (failure === undefined && sqs.sends() === before) return
    reason = failure ?? 'tick finds something each time'
  }
  throw new Error(`It does not get quiet: ${reason}.`)
}
