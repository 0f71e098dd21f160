// Messages that nobody can do: each fails alone and is kept for the dead-letter queue, whatever its neighbours are.
import { expect, test } from 'vitest'
import { eachRecord } from '../../functions/lambda.ts'
import type { Step } from '../../shared/log.ts'
import { DeliverMessage, LookMessage } from '../../shared/messages.ts'

const look = { v: 1, kind: 'watch', watch: 'w' }
const wake = { v: 1, kind: 'wake', subject: 's', id: 'i' }

/** A batch as Lambda hands it over. */
const batch = (bodies: string[]) => ({
  Records: bodies.map((body, at) => ({
    ...{ messageId: `m-${at}`, receiptHandle: '', body, md5OfBody: '', eventSource: 'aws:sqs' },
    ...{ eventSourceARN: '', awsRegion: '', messageAttributes: {} },
    attributes: {
      ...{ ApproximateReceiveCount: '1', SentTimestamp: '0' },
      ...{ SenderId: '', ApproximateFirstReceiveTimestamp: '0' },
    },
  })),
})

test.each([
  ['look', LookMessage, look],
  ['deliver', DeliverMessage, wake],
] as const)(
  'case 150: of a batch to %s, what is no message or of a later version comes again alone, and the others are done',
  async (_queue, Message, good) => {
    const steps: Step[] = []
    const done: unknown[] = []
    const run = eachRecord({ log: step => void steps.push(step) }, async body => {
      done.push(Message.parse(body))
      return 'done'
    })
    const poison = [
      'not json',
      '{}',
      JSON.stringify({ ...good, v: 99 }),
      JSON.stringify({ ...good, kind: 'x' }),
    ]
    const { batchItemFailures } = await run(batch([...poison, JSON.stringify(good)]))
    expect(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier)).toEqual([
      'm-0',
      'm-1',
      'm-2',
      'm-3',
    ])
    expect(done).toEqual([good])
    expect(steps.map(({ step, level }) => `${step} ${level}`)).toEqual(Array(4).fill('message.failed error'))
  },
)
