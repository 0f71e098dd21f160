// An agent that speaks another version than the registered one, with what is remembered in a real table: one call more, once.
import { SQSClient } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { codes, type Failure } from '../../shared/a2a/trouble.ts'
import type { Agent, ProtocolVersion } from '../../shared/model.ts'
import { getCalls } from '../../shared/store/calls.ts'
import { callInVersion, versionOf } from '../../shared/versions.ts'
import { loopbackNet } from '../support/net.ts'
import { startTable, type TestTable } from '../support/table.ts'

let ground: TestTable
let at = Date.UTC(2026, 5, 15, 12)
let agent: Agent = {
  ...{ tenant: 'acme', agent: 'a-0', etag: 'first', createdAt: 0, updatedAt: 0, origins: [] },
  ...{ url: 'http://127.0.0.1:1', binding: 'JSONRPC', version: '1.0', verification: {} },
  ...{ pushes: true, streams: false, road: 'push' },
}
/** Versions of the calls that were made. */
let asked: ProtocolVersion[] = []

beforeAll(async () => {
  ground = await startTable()
})

afterAll(() => ground.stop())

/** Nothing is told here. */
const queues = {
  client: new SQSClient({}),
  urls: { look: '', deliver: '' },
  dead: { look: undefined, deliver: undefined },
}

let made = 0
beforeEach(() => {
  agent = { ...agent, agent: `a-${++made}` }
})

type Said = { ok: true } | Failure
const mismatch = (code: number): Failure => ({ ok: false, trouble: 'unsupported_version', detail: '', code })

/** One call; what the agent says depends on the version it is asked in. @returns the versions asked in, and the answer */
async function call(says: (version: ProtocolVersion) => Said) {
  asked = []
  const relay = {
    ...{ table: ground.table, net: loopbackNet, now: () => at, log: () => {} },
    ...{ permits: new Map(), queues },
    ...{ config: { rootKeys: new Map() }, random: (length: number) => new Uint8Array(length) },
  }
  const callee = { agent, calls: await getCalls(ground.table, agent) }
  const answer = await callInVersion<Said>(relay, callee, [], async ({ version }) => {
    asked.push(version)
    return says(version)
  })
  return [asked.join(), answer.ok ? 'ok' : answer.trouble]
}

const speaks =
  (
    spoken: ProtocolVersion | undefined,
    code: number = codes.versionNotSupported,
    other: Said = { ok: true },
  ) =>
  (version: ProtocolVersion): Said =>
    version === spoken ? other : mismatch(code)

test.each([codes.versionNotSupported, codes.methodNotFound])(
  'case 145: one that answers %i is asked once in the other version, and in that one first from then on',
  async code => {
    expect(await call(speaks('0.3', code))).toEqual(['1.0,0.3', 'ok'])
    expect(await call(speaks('0.3', code))).toEqual(['0.3', 'ok'])
    at += 24 * 3_600_000
    expect(await call(speaks('0.3', code))).toEqual(['1.0,0.3', 'ok'])
  },
)

test('case 145: one that knows neither is asked once in each, and nothing is remembered', async () => {
  for (let again = 0; again < 2; again++)
    expect(await call(speaks(undefined))).toEqual(['1.0,0.3', 'unsupported_version'])
})

test('case 145: one that went back to the registered version is called so again', async () => {
  await call(speaks('0.3'))
  expect(await call(speaks('1.0'))).toEqual(['0.3,1.0', 'ok'])
  expect(await call(speaks('1.0'))).toEqual(['1.0', 'ok'])
})

test('case 145: a task that is not found in the other version shows that it is spoken; an outage does not', async () => {
  const down: Failure = { ok: false, trouble: 'unreachable', detail: '' }
  expect(await call(speaks('0.3', codes.methodNotFound, down))).toEqual(['1.0,0.3', 'unsupported_version'])
  const none: Failure = { ok: false, trouble: 'not_found', detail: '', code: codes.taskNotFound }
  expect(await call(speaks('0.3', codes.methodNotFound, none))).toEqual(['1.0,0.3', 'not_found'])
  expect(versionOf(agent, await getCalls(ground.table, agent), at)).toBe('0.3')
})

test('case 145: what was remembered of one registration says nothing of the next, and no other fault is tried twice', async () => {
  await call(speaks('0.3'))
  agent = { ...agent, etag: 'second' }
  expect(await call(() => ({ ok: true }))).toEqual(['1.0', 'ok'])
  expect(await call(() => ({ ok: false, trouble: 'failed', detail: '' }))).toEqual(['1.0', 'failed'])
})
