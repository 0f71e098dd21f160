// Calls a handler as the Lambda runtime does: with a context, a time limit, and an answer that went through JSON.
import { randomUUID } from 'node:crypto'

/** What a handler gets beside its event (the part of Lambda's context that Rouse uses). */
export type Context = {
  functionName: string
  awsRequestId: string
  getRemainingTimeInMillis: () => number
}

export type Handler<Event> = (event: Event, context: Context) => Promise<unknown>

/**
 * Calls a handler once.
 * @param limit name and time-out of the function
 * @returns the answer as JSON would carry it
 * @throws what the handler threw, or an error that names the function when its time is over. Lambda would end the
 *   process then; here the handler cannot be stopped, but nobody waits for it any more.
 */
export async function invoke<Event>(
  limit: { name: string; timeoutSeconds: number },
  handler: Handler<Event>,
  event: Event,
): Promise<unknown> {
  const end = performance.now() + limit.timeoutSeconds * 1000
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new Error(`${limit.name} timed out after ${limit.timeoutSeconds} s`)),
    limit.timeoutSeconds * 1000,
  ).unref()
  try {
    const answer = await Promise.race([
      handler(event, {
        functionName: limit.name,
        awsRequestId: randomUUID(),
        getRemainingTimeInMillis: () => Math.max(0, Math.round(end - performance.now())),
      }),
      late.promise,
    ])
    return answer === undefined ? undefined : JSON.parse(JSON.stringify(answer))
  } finally {
    clearTimeout(timer)
  }
}
