// Whatever arrives at the door, only our own refusals come out, nothing is written for them, and nothing forged is taken; and the judge of this can say no.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { HttpResult } from '../../functions/lambda.ts'
import { type ErrorCode, says, statusOf } from '../../shared/errors.ts'
import type { Called } from '../fuzz/aws.ts'
import { type Input, inputsFor } from '../fuzz/inputs.ts'
import { judge, type Watched } from '../fuzz/judge.ts'
import { makeScene } from '../fuzz/scene.ts'
import { watchFuzz } from '../fuzz/watch.ts'

test('ten thousand inputs, honest, nearly honest and forged, by every front door', async () => {
  const { runs, outcomes, fault } = await watchFuzz({ runs: 10_000, seed: Date.now() % 2 ** 31 })
  expect(fault).toBeUndefined()
  expect(runs).toBe(10_000)
  // Every answer was met, so that the inputs get past the first questions.
  for (const outcome of ['accepted', 'duplicate', 'unauthorized', 'not_found', 'method_not_allowed'])
    expect(outcomes[outcome]).toBeGreaterThan(5)
  for (const outcome of ['bad_request', 'unreadable_push', 'unsupported_media_type'])
    expect(outcomes[outcome]).toBeGreaterThan(5)
}, 300_000)

const scene = makeScene()
const samples = fc.sample(inputsFor(scene), { numRuns: 3000, seed: 7 })
const one = (fits: (input: Input) => boolean): Input => {
  const found = samples.find(fits)
  if (found === undefined) throw new Error('No sample fits')
  return found
}
const honest = one(input => input.honest && input.hook.kind === 'token')
const forged = one(
  ({ hook, event }) => hook.kind === 'token' && !JSON.stringify(event).includes(hook.token ?? ''),
)
const borrowed = one(
  ({ hook, signed }) => hook.kind === 'jwt' && signed !== undefined && signed.claims.aud !== hook.url,
)

const problem = (code: ErrorCode, more: object = {}): HttpResult => ({
  statusCode: statusOf(code),
  headers: { 'content-type': 'application/problem+json' },
  body: JSON.stringify({ title: says(code), status: statusOf(code), code, ...more }),
})
const taken: HttpResult = { statusCode: 202, body: '{"status":"accepted"}' }
const put: Called = { operation: 'PutItem', body: {} }
const job: Called = { operation: 'SendMessage', body: { MessageBody: '{"taskId":"task-1"}' } }

const lying = (result: HttpResult | Error, calls: Called[] = [], lines: string[] = []): Watched => ({
  handler: async () => {
    if (result instanceof Error) throw result
    return result
  },
  calls: () => calls,
  lines: () => lines,
})

test.each<[what: string, door: Watched, input: Input]>([
  ['throws', lying(new Error('a bug')), forged],
  ['breaks', lying(problem('internal')), forged],
  ['is away without need', lying(problem('unavailable')), forged],
  [
    'answers in other words',
    lying({ ...problem('unauthorized'), body: '{"code":"unauthorized","status":401}' }),
    forged,
  ],
  ['answers as something else', lying({ ...problem('unauthorized'), headers: {} }), forged],
  ['tells a stranger what was wrong', lying(problem('unauthorized', { detail: 'the token' })), forged],
  ['keeps a record of what it refused', lying(problem('unauthorized'), [put]), forged],
  ['queues what it refused', lying(problem('unauthorized'), [job]), forged],
  ['takes what is forged', lying(taken, [put, job]), forged],
  ['takes what was signed for another hook', lying(taken, [put, job]), borrowed],
  ['turns an honest push away', lying(problem('unauthorized')), honest],
  ['takes one push twice', lying(taken, [put, job, job]), honest],
  [
    'looks at another task',
    lying(taken, [put, { ...job, body: { MessageBody: '{"taskId":"t-999"}' } }]),
    honest,
  ],
  [
    'asks AWS without end',
    lying(problem('unauthorized'), Array(11).fill({ operation: 'GetItem', body: {} })),
    forged,
  ],
  ['writes a token down', lying(problem('unauthorized'), [], [`{"token":"${forged.hook.token}"}`]), forged],
  ['writes a hook down', lying(problem('unauthorized'), [], [forged.hook.url]), forged],
])('a door that %s is caught', async (_what, door, input) => {
  await expect(judge(door, input)).rejects.toThrow()
})

test('a door that refuses what is forged, and no more, is not', async () => {
  expect(await judge(lying(problem('unauthorized')), forged)).toBe('unauthorized')
})
