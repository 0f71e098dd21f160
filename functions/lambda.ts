// Lambda's shapes on one side, a door's own on the other: builds the door's world once, parses each record, answers batches in part.
import type { LambdaFunctionURLEvent, SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda'
import { createRelay, type Relay } from '../shared/relay.ts'

export type HttpResult = {
  statusCode: number
  headers?: Record<string, string | string[]>
  cookies?: string[]
  body?: string
  isBase64Encoded?: boolean
}
export type HttpHandler = (event: LambdaFunctionURLEvent) => Promise<HttpResult>
export type QueueHandler = (event: SQSEvent) => Promise<SQSBatchResponse>
export type ScheduleHandler = (event: unknown) => Promise<void>

/** What a queue door does with one message: it is done with it, or the queue shall bring it again. */
export type Handled = 'done' | 'again'

/**
 * Turns a door into a Lambda handler whose world is built at the first call and kept.
 * @param door makes the handler from a world
 */
export function onLambda<Event, Result>(
  name: string,
  door: (relay: Relay) => (event: Event) => Promise<Result>,
): (event: Event) => Promise<Result> {
  let handler: ((event: Event) => Promise<Result>) | undefined
  return event => {
    handler ??= door(createRelay(name, process.env))
    return handler(event)
  }
}

/** Takes the ids of what a message turns out to be about, for the line that tells if it fails. */
export type Mention = (ids: Record<string, unknown>) => void

/**
 * Runs a batch side by side and reports the records that shall come again (ReportBatchItemFailures). A poison
 * message fails alone, so that its neighbours are not repeated and it reaches the dead-letter queue.
 * @param subjectOf names what a message is about: of several about the same, the others wait for the first, which may
 *   well do their work too
 */
export function eachRecord(
  relay: Pick<Relay, 'log'>,
  handle: (body: unknown, mention: Mention) => Promise<Handled>,
  subjectOf: (body: unknown) => string | undefined = () => undefined,
): (event: SQSEvent) => Promise<SQSBatchResponse> {
  const run = async ({ messageId, body, attributes }: SQSRecord): Promise<string | undefined> => {
    let about: Record<string, unknown> = {}
    const mention: Mention = ids => {
      about = { ...about, ...ids }
    }
    try {
      return (await handle(JSON.parse(body), mention)) === 'again' ? messageId : undefined
    } catch (error) {
      const receives = attributes.ApproximateReceiveCount
      relay.log({ step: 'message.failed', level: 'error', ...about, messageId, receives, error })
      return messageId
    }
  }
  return async event => {
    const firsts = new Map<string, Promise<unknown>>()
    const running = event.Records.map(record => {
      const subject = subjectOf(parse(record.body))
      const first = subject === undefined ? undefined : firsts.get(subject)
      if (first !== undefined) return first.then(() => run(record))
      const ran = run(record)
      if (subject !== undefined) firsts.set(subject, ran)
      return ran
    })
    const failed = await Promise.all(running)
    return {
      batchItemFailures: failed.flatMap(id => (id === undefined ? [] : [{ itemIdentifier: id }])),
    }
  }
}

/** What a message holds; undefined if it is no JSON, of which the handling then tells. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
