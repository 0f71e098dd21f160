// How a queue door takes a batch: side by side, what is about the same subject after the first of it, and each failure by itself.
import type { SQSEvent, SQSRecord } from 'aws-lambda'
import { expect, test } from 'vitest'
import { eachRecord } from '../../functions/lambda.ts'

const record = (messageId: string, body: string): SQSRecord => ({
  ...{ messageId, body, messageAttributes: {}, receiptHandle: '', md5OfBody: '', awsRegion: '' },
  ...{ eventSource: 'aws:sqs', eventSourceARN: '' },
  attributes: {
    ...{ ApproximateReceiveCount: '1', SentTimestamp: '', SenderId: '' },
    ApproximateFirstReceiveTimestamp: '',
  },
})

const batch = (...bodies: unknown[]): SQSEvent => ({
  Records: bodies.map((body, at) => record(`m${at}`, typeof body === 'string' ? body : JSON.stringify(body))),
})

const log = (): void => {}
const subjectOf = (body: unknown): string | undefined =>
  typeof body === 'object' && body !== null && 'of' in body ? String(body.of) : undefined

test('of several messages about one subject the first is done before the others begin, and nobody else waits', async () => {
  const begun: unknown[] = []
  const open = Promise.withResolvers<void>()
  const handler = eachRecord(
    { log },
    async body => {
      begun.push(body)
      await open.promise
      return 'done'
    },
    subjectOf,
  )
  const [first, other, second, free] = [{ of: 'a', n: 1 }, { of: 'b' }, { of: 'a', n: 2 }, { n: 3 }]
  const answered = handler(batch(first, second, other, free))
  await new Promise(setImmediate)
  expect(begun).toEqual([first, other, free])
  open.resolve()
  expect(await answered).toEqual({ batchItemFailures: [] })
  expect(begun).toEqual([first, other, free, second])
})

test('case 92: a message that fails or cannot be read is named alone, though others of its subject waited for it', async () => {
  const handler = eachRecord(
    { log },
    async body => {
      if (JSON.stringify(body).includes('bad')) throw new Error('broken')
      return 'done'
    },
    subjectOf,
  )
  const failed = await handler(batch({ of: 'a', bad: true }, { of: 'a' }, 'no JSON', { of: 'b' }))
  expect(failed).toEqual({ batchItemFailures: [{ itemIdentifier: 'm0' }, { itemIdentifier: 'm2' }] })
})

test('the line about a message that fails names what the message was found to be about', async () => {
  const steps: unknown[] = []
  const handler = eachRecord({ log: step => void steps.push(step) }, async (_body, mention) => {
    mention({ task: 't-1', trace: 'a' })
    mention({ agent: 'demo', trace: 'b' })
    throw new Error('broken')
  })
  await handler(batch({}))
  expect(steps).toMatchObject([{ step: 'message.failed', task: 't-1', agent: 'demo', trace: 'b' }])
})
