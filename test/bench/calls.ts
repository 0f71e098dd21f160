// Counts the calls of AWS that each kind of push costs while everything that can be remembered is.
import { isDeepStrictEqual } from 'node:util'
import { type Kind, makeScene, type Scene } from './scene.ts'
import type { Row } from './table.ts'
import { ourDoor, pushing } from './variants.ts'

type Case = { what: string; kind: Kind; status: number; seen?: boolean; calls: Record<string, number> }

const accepted = { status: 202, calls: { PutItem: 1, SendMessage: 1 } }

const cases: Case[] = [
  { what: 'accepted, RS256', kind: 'RS256', ...accepted },
  { what: 'accepted, ES256', kind: 'ES256', ...accepted },
  { what: 'accepted, EdDSA', kind: 'EdDSA', ...accepted },
  { what: 'accepted, token only', kind: 'token', ...accepted },
  { what: 'duplicate', kind: 'RS256', status: 200, seen: true, calls: { PutItem: 1 } },
  { what: 'refused, wrong token', kind: 'wrong_token', status: 401, calls: {} },
  { what: 'refused, bad signature', kind: 'bad_signature', status: 401, calls: {} },
]

/** One row a kind of push. */
export async function callRows(): Promise<Row[]> {
  const scene = makeScene(Date.now())
  const rows: Row[] = []
  for (const one of cases) {
    const counted = await count(scene, one)
    rows.push({
      what: `AWS calls, ${one.what}`,
      value: says(counted),
      against: 'the least that it takes',
      base: says(one.calls),
      budget: { kind: 'count', says: String(sum(one.calls)), kept: isDeepStrictEqual(counted, one.calls) },
    })
  }
  return rows
}

/** Calls of one push, by operation, once every hook was pushed to. */
async function count(scene: Scene, { kind, status, seen = false }: Case): Promise<Record<string, number>> {
  const pushes = scene.pushes[kind].length
  const { aws, handler } = ourDoor(scene, { seen, pace: 0, silent: true })
  const push = pushing(scene, kind, status, handler)
  for (let n = 0; n < pushes; n++) await push(n)
  aws.calls.clear()
  for (let n = 0; n < pushes; n++) await push(n)
  return Object.fromEntries([...aws.calls].map(([operation, calls]) => [operation, calls / pushes]))
}

const sum = (calls: Record<string, number>): number =>
  Object.values(calls).reduce((total, one) => total + one, 0)

const says = (calls: Record<string, number>): string =>
  Object.entries(calls)
    .map(([operation, times]) => `${times} ${operation}`)
    .join(' + ') || 'none'
