// The floor: what a good engineer writes in an afternoon with jose and the two SDK clients, all defaults. It has none of our checks and nothing of ours.
import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import type { LambdaFunctionURLEvent } from 'aws-lambda'
import { createRemoteJWKSet, customFetch, type FetchImplementation, jwtVerify } from 'jose'

export type Floor = {
  tableName: string
  queueUrl: string
  issuer: string
  jwksUrl: string
  hookOrigin: string
  /** Answers the request for the key set, in place of the network. */
  fetch?: FetchImplementation
}

export type Clients = { dynamodb: DynamoDBClient; sqs: SQSClient }

/** The clients by themselves, so that the bench can put its stand-in for AWS into them. */
export const makeClients = (): Clients => ({ dynamodb: new DynamoDBClient(), sqs: new SQSClient() })

/** A push that was read: all that the writes need. */
type Push = { key: string; taskId: string; state: string }

/** The two writes: a record unless there is one, then a message. */
export const writer =
  ({ dynamodb, sqs }: Clients, { tableName, queueUrl }: Floor) =>
  async ({ key, taskId, state }: Push): Promise<void> => {
    const at = Date.now()
    await dynamodb.send(
      new PutItemCommand({
        TableName: tableName,
        Item: {
          pk: { S: key },
          sk: { S: '.' },
          taskId: { S: taskId },
          state: { S: state },
          at: { N: String(at) },
          ttl: { N: String(Math.floor(at / 1000) + 86_400) },
        },
        ConditionExpression: 'attribute_not_exists(pk)',
      }),
    )
    const message = JSON.stringify({ key, taskId, state, at })
    await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: message }))
  }

/** Task and state out of a body, by the one shape that everybody tries first. */
export function readStatus(body: string): { taskId: string; state: string } {
  const { statusUpdate } = JSON.parse(body)
  return { taskId: statusUpdate.taskId, state: statusUpdate.status.state }
}

/** Checks the JWT and does the two writes. @returns the HTTP status */
export function worker(clients: Clients, options: Floor) {
  const write = writer(clients, options)
  const { jwksUrl, issuer, hookOrigin, fetch } = options
  const jwks = createRemoteJWKSet(new URL(jwksUrl), fetch && { [customFetch]: fetch })
  return async (path: string, authorization: string | undefined, body: string): Promise<number> => {
    const bearer = authorization?.replace(/^Bearer /, '') ?? ''
    const audience = hookOrigin + path
    const verified = await jwtVerify(bearer, jwks, { issuer, audience }).catch(() => undefined)
    if (verified === undefined) return 401
    await write({ key: `${path}#${verified.payload.jti}`, ...readStatus(body) })
    return 202
  }
}

/** The handler. */
export function floor(clients: Clients, options: Floor) {
  const work = worker(clients, options)
  return async ({ rawPath, headers, body = '' }: LambdaFunctionURLEvent) => {
    const text = Buffer.from(body, 'base64').toString()
    const statusCode = await work(rawPath, headers.authorization, text)
    return { statusCode, headers: { 'content-type': 'application/json' }, body: '{"status":"done"}' }
  }
}

/** Options out of an environment. */
export const optionsOf = (env: Record<string, string | undefined>): Floor => ({
  tableName: env.TABLE_NAME ?? '',
  queueUrl: env.LOOK_QUEUE_URL ?? '',
  issuer: env.ISSUER ?? '',
  jwksUrl: env.JWKS_URL ?? '',
  hookOrigin: env.HOOK_ORIGIN ?? '',
})

let made: ReturnType<typeof floor> | undefined

/** As Lambda would call it. */
export const handler = (event: LambdaFunctionURLEvent) => {
  made ??= floor(makeClients(), optionsOf(process.env))
  return made(event)
}
