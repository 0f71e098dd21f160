// Says which variants are measured call by call, against what, and makes their rows.
import { measure } from './rounds.ts'
import { makeScene } from './scene.ts'
import { atMost, median, type Row } from './table.ts'
import type { VariantName } from './variants.ts'

/** Time for the rounds themselves; starting and warming up come on top. */
const roundsMs = 35_000

const floor = 'floor RS256'
const jose = 'verify jose'
const says: Partial<Record<VariantName, string>> = {
  'floor RS256': 'the floor: jose, two default SDK calls, RS256',
  'floor bad signature': 'the floor refusing it',
  'verify jose': 'jose jwtVerify',
}

/** What is measured, against what; a number is a budget. */
const comparisons: [what: string, name: VariantName, base: VariantName, most?: number][] = [
  ['receive, RS256, every check', 'ours RS256', floor, 1],
  ['receive, ES256, every check', 'ours ES256', floor],
  ['receive, EdDSA, every check', 'ours EdDSA', floor],
  ['receive, token only', 'ours token', floor],
  ['receive, duplicate', 'ours duplicate', floor],
  ['receive, wrong token', 'ours wrong token', 'floor bad signature'],
  ['receive, bad signature', 'ours bad signature', 'floor bad signature'],
  ['Express by serverless-http, the floor’s work', 'express', floor],
  ['our proof, every check, RS256', 'verify ours', jose],
  ['jsonwebtoken + jwks-rsa', 'verify jsonwebtoken + jwks-rsa', jose],
  ['aws-jwt-verify', 'verify aws-jwt-verify', jose],
  ['fast-jwt, key given', 'verify fast-jwt, key given', jose],
  ['fast-jwt, key asked for', 'verify fast-jwt, key asked for', jose],
]

/** One row a comparison: CPU time of a call. */
export async function warmRows(folder: string): Promise<Row[]> {
  const names = [...new Set(comparisons.flatMap(([, name, base]) => [base, name]))]
  const costs = await measure(names, makeScene(Date.now()), folder, roundsMs)
  return comparisons.map(([what, name, base, most]) => {
    const against = costs(base)
    const ratios = costs(name).map((cost, round) => cost / (against[round] ?? Number.NaN))
    return {
      what,
      value: `${median(costs(name)).toFixed(0)} µs`,
      against: says[base] ?? base,
      base: `${median(against).toFixed(0)} µs`,
      ratios,
      ...(most !== undefined && { budget: atMost('ratio', most, ratios) }),
    }
  })
}
