// The local ground as a whole, with small doors of the test's own: who holds the data, what a restart keeps, when it is quiet, how it ends.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SQSEvent } from 'aws-lambda'
import { expect, onTestFinished, test } from 'vitest'
import { type Ground, startGround } from '../../infra/local/ground.ts'
import type { Doors, GroundOptions } from '../../infra/local/parts.ts'
import { ofLastRun, recallPorts, rememberPorts } from '../../infra/local/ports.ts'
import { startLocal } from '../../infra/local/run.ts'
import { queues } from '../../infra/topology.ts'
import { sendDeliver, sendLook } from '../../shared/queue.ts'
import type { Relay } from '../../shared/relay.ts'
import { put } from '../../shared/store/table.ts'
import { ear } from '../support/ear.ts'
import { makeFolder } from '../support/folder.ts'
import { freePorts } from '../support/ports.ts'

const hour = 60 * 60 * 1000
const done = { batchItemFailures: [] }
const watches = (event: SQSEvent): string[] => event.Records.map(({ body }) => JSON.parse(body).watch)
const look = (relay: Relay, watch: string, delayMs?: number) =>
  sendLook(relay.queues, 'g', { v: 1, kind: 'watch', watch }, delayMs)

async function start(doors: Doors, options: GroundOptions = {}): Promise<Ground> {
  const ground = await startGround(doors, { tick: 'manual', write: ear.line, ...options })
  onTestFinished(() => ground.kill())
  return ground
}

/** A door that runs some code of the test with the door's own world. */
const api = (run: (relay: Relay) => Promise<unknown>): Doors => ({
  api: relay => async () => {
    await run(relay)
    return { statusCode: 204 }
  },
})

/** A ground on what another left, and the watches that its queue brings to look. */
async function startAgain(dir: string) {
  const seen: string[] = []
  const look = () => async (event: Parameters<typeof watches>[0]) => {
    seen.push(...watches(event))
    return done
  }
  return { ground: await start({ look }, { dir }), seen }
}

test('a data folder has one holder: the second is told which folder and which process', async () => {
  const dir = makeFolder()
  const first = await start({}, { dir })
  await expect(startGround({}, { dir })).rejects.toThrow(`${dir} is in use by process ${process.pid}`)
  await first.stop()
  await start({}, { dir })
})

test('a start waits for a table that is not available yet', async () => {
  let refusals = 4
  const busy: GroundOptions['faults'] = ({ who }) =>
    who === 'api' && refusals-- > 0 ? 'throttle' : undefined
  const local = await startLocal({ tick: 'manual', write: ear.line, faults: busy })
  onTestFinished(() => local.kill())
  expect(refusals).toBeLessThan(0)
  expect(local.keys.demo).toMatch(/^rk_/)
})

test('secrets that are damaged are named, and never replaced in passing', async () => {
  const dir = makeFolder()
  const file = join(dir, 'secrets.json')
  writeFileSync(file, '{"rootKeys": "1:')
  await expect(startGround({}, { dir })).rejects.toThrow(`${file} cannot be read`)
  expect(readFileSync(file, 'utf8')).toBe('{"rootKeys": "1:')
})

test('a port of the last run that is taken is told, and not replaced by another', async () => {
  const dir = makeFolder()
  const [taken, free] = await Promise.all([start({}), freePorts()])
  const hook = Number(new URL(taken.hookOrigin).port)
  rememberPorts(dir, { ...free, hook })
  const ports = await recallPorts(dir)
  expect(ports).toEqual({ ...free, hook })
  const error: unknown = await startGround({}, { ports }).catch(reason => reason)
  const told = (asked: { hook?: number; api?: number }) =>
    String(ofLastRun(error, { hook: undefined, api: undefined, ...asked }))
  expect(told({})).toMatch(
    `Port ${hook} (receive) is taken by another program. It is the port of the last run`,
  )
  expect(told({ hook })).toMatch(/taken by another program$/)
})

test('a holder that is killed leaves nothing in the way and loses nothing', async () => {
  const dir = makeFolder()
  const child = spawn(process.execPath, [fileURLToPath(import.meta.resolve('../support/holder.ts')), dir])
  await once(child.stdout, 'data')
  await expect(startGround({}, { dir })).rejects.toThrow(`in use by process ${child.pid}`)
  child.kill('SIGKILL')
  await once(child, 'exit')
  const ground = await start({}, { dir })
  expect(await ground.items()).toMatchObject([{ pk: 'T#held' }])
  expect(await ground.messages('look')).toMatchObject([{ place: 'ready' }])
})

test('a start that fails because a port is taken names it and lets go of the folder', async () => {
  const dir = makeFolder()
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  await expect(startGround({}, { dir, ports: { api: port } })).rejects.toThrow(`Port ${port} (api) is taken`)
  await start({}, { dir })
})

test('a restart keeps secrets, items, messages and the time, and the secrets are for the owner only', async () => {
  const dir = makeFolder()
  const first = await start(
    api(async relay => {
      await put(relay.table, { pk: 'T#a', sk: '.' })
      await look(relay, 'later', 600_000)
    }),
    { dir },
  )
  first.advance(hour)
  await fetch(first.apiOrigin)
  const { secrets, now } = first
  await first.stop()
  const { ground: second, seen } = await startAgain(dir)
  expect(second.secrets).toEqual(secrets)
  expect(statSync(join(dir, 'secrets.json')).mode & 0o777).toBe(0o600)
  expect(second.now()).toBeGreaterThanOrEqual(now() - 1000)
  expect(await second.items()).toMatchObject([{ pk: 'T#a' }])
  await second.drain()
  expect(seen).toEqual([])
  second.advance(600_000)
  await second.drain()
  expect(seen).toEqual(['later'])
})

test("a tenant's API key is made once and works after a restart", async () => {
  const dir = makeFolder()
  const first = await startLocal({ dir, tick: 'manual', write: ear.line })
  const key = first.keys.demo
  await first.stop()
  const second = await startLocal({ dir, tick: 'manual', write: ear.line, tenants: ['demo', 'other'] })
  onTestFinished(() => second.kill())
  expect(second.keys.demo).toBe(key)
  expect(second.keys.other).not.toBe(key)
  const { status } = await fetch(`${second.apiOrigin}/v1/agents`, {
    headers: { authorization: `Bearer ${key}` },
  })
  expect(status).toBe(200)
})

test('it is quiet when both queues are empty and a tick finds nothing, not before', async () => {
  const did: string[] = []
  const open = Promise.withResolvers<void>()
  let due = 2
  const ground = await start({
    ...api(relay => look(relay, 'a')),
    look: relay => async event => {
      for (const watch of watches(event)) {
        did.push(watch)
        await open.promise
        if (watch === 'a') await sendDeliver(relay.queues, 'g', { v: 1, kind: 'wake', subject: 's', id: 'w' })
      }
      return done
    },
    deliver: relay => async () => {
      for (let trip = 0; trip < 10; trip += 1) await put(relay.table, { pk: 'T#a', sk: '.' })
      did.push('wake')
      return done
    },
    tick: relay => async () => {
      did.push('tick')
      due -= 1
      if (due >= 0) await look(relay, `due ${due}`)
    },
  })
  await fetch(ground.apiOrigin)
  const quiet = ground.drain()
  // Round trips in which the other queue is found empty.
  for (let trip = 0; trip < 10; trip += 1) await ground.messages('deliver')
  open.resolve()
  await quiet
  expect(did).toEqual(['a', 'wake', 'tick', 'due 1', 'tick', 'due 0', 'tick'])
})

test('what begets itself for ever is reported, not waited for', async () => {
  const ground = await start({
    ...api(relay => look(relay, 'a')),
    look: relay => async () => {
      await look(relay, 'a')
      return done
    },
  })
  await fetch(ground.apiOrigin)
  await expect(ground.drain(300)).rejects.toThrow('messages beget messages')
})

test('every call is known by the door that made it', async () => {
  const calls = new Set<string>()
  const ground = await start(
    {
      ...api(async relay => look(relay, 'a')),
      tick: relay => async () => void (await put(relay.table, { pk: 'T#a', sk: '.' })),
    },
    { onCall: ({ who, operation }) => calls.add(`${who} ${operation}`) },
  )
  await fetch(ground.apiOrigin)
  await ground.tick()
  expect([...calls].filter(call => !call.startsWith('ground '))).toEqual(['api SendMessage', 'tick PutItem'])
})

test('a ground that was killed is not heard again, and what it was at comes back', async () => {
  const dir = makeFolder()
  const lines: string[] = []
  const entered = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const first = await start(
    {
      ...api(relay => look(relay, 'a')),
      look: relay => async () => {
        relay.log({ step: 'entered' })
        entered.resolve()
        await open.promise
        relay.log({ step: 'left' })
        await put(relay.table, { pk: 'T#ghost', sk: '.' }).catch(() => left.resolve())
        return done
      },
    },
    { dir, write: line => lines.push(line) },
  )
  await fetch(first.apiOrigin)
  await entered.promise
  await first.kill()
  const { ground: second, seen } = await startAgain(dir)
  open.resolve()
  await left.promise
  expect(lines.map(line => JSON.parse(line).step)).toEqual(['entered'])
  await second.drain()
  expect(seen).toEqual([])
  second.advance(queues.look.visibilitySeconds * 1000)
  await second.drain()
  expect(seen).toEqual(['a'])
  expect(await second.items()).toEqual([])
})

test('stopping does not wait for functions that hang', async () => {
  const entered = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
  const hang = (which: 0 | 1) => () => {
    entered[which].resolve()
    return new Promise<never>(() => {})
  }
  const lines: string[] = []
  const ground = await start(
    { ...api(relay => look(relay, 'a')), look: () => hang(0), tick: () => hang(1) },
    { write: line => lines.push(line) },
  )
  await fetch(ground.apiOrigin)
  void ground.tick()
  await Promise.all(entered.map(({ promise }) => promise))
  await ground.stop()
  // Had it waited, the functions would have run out of time first.
  expect(lines).toEqual([])
  await expect(fetch(ground.apiOrigin)).rejects.toThrow()
})
