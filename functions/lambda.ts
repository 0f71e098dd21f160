// Lambda's shapes on one side, a door's own on the other: builds the door's world once, parses each record, answers batches in part.
import type { LambdaFunctionURLEvent, SQSBatchResponse, SQSEvent } from 'aws-lambda'
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

/**
 * Runs a batch side by side and reports the records that shall come again (ReportBatchItemFailures). A poison
 * message fails alone, so that its neighbours are not repeated and it reaches the dead-letter queue.
 */
export function eachRecord(
  relay: Relay,
  handle: (body: unknown) => Promise<Handled>,
): (event: SQSEvent) => Promise<SQSBatchResponse> {
  return async event => {
    const failed = await Promise.all(
      event.Records.map(async ({ messageId, body, attributes }) => {
        try {
          return (await handle(JSON.parse(body))) === 'again' ? messageId : undefined
        } catch (error) {
          relay.log({
            step: 'message.failed',
            level: 'error',
            messageId,
            receives: attributes.ApproximateReceiveCount,
            error,
          })
          return messageId
        }
      }),
    )
    return {
      batchItemFailures: failed.flatMap(id => (id === undefined ? [] : [{ itemIdentifier: id }])),
    }
  }
}
