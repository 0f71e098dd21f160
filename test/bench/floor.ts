// The floor: what a good engineer writes in an afternoon, with jose and the two SDK clients, all defaults. It has none of our checks and nothing of ours.
import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import type { LambdaFunctionURLEvent } from 'aws-lambda'
import { createRemoteJWKSet, customFetch, type FetchImplementation, jwtVerify } from 'jose'

export type FloorOptions = {
  tableName: string
  queueUrl: string
  issuer: string
  hookOrigin: string
  /** Answers the request for the key set. */
  fetch: FetchImplementation
}

/** The two clients by themselves, so that the bench can put its stand-in for AWS into them. */
export const makeClients = () => ({ dynamodb: new DynamoDBClient(), sqs: new SQSClient() })

/** Makes the handler. */
export function floor(
  { dynamodb, sqs }: ReturnType<typeof makeClients>,
  { tableName, queueUrl, issuer, hookOrigin, fetch }: FloorOptions,
) {
  const jwks = createRemoteJWKSet(new URL('/.well-known/jwks.json', issuer), { [customFetch]: fetch })
  return async (event: LambdaFunctionURLEvent) => {
    const bearer = event.headers.authorization?.replace(/^Bearer /, '') ?? ''
    const verified = await jwtVerify(bearer, jwks, {
      issuer,
      audience: hookOrigin + event.rawPath,
      algorithms: ['RS256', 'ES256', 'EdDSA'],
    }).catch(() => undefined)
    if (verified === undefined) return { statusCode: 401, body: '{"error":"unauthorized"}' }
    const push = JSON.parse(Buffer.from(event.body ?? '', 'base64').toString())
    const { taskId, status } = push.statusUpdate
    const at = Date.now()
    const key = `${event.rawPath}#${verified.payload.jti}`
    await dynamodb.send(
      new PutItemCommand({
        TableName: tableName,
        Item: {
          pk: { S: key },
          sk: { S: '.' },
          taskId: { S: taskId },
          state: { S: status.state },
          at: { N: String(at) },
          ttl: { N: String(Math.floor(at / 1000) + 86_400) },
        },
        ConditionExpression: 'attribute_not_exists(pk)',
      }),
    )
    await sqs.send(
      new SendMessageCommand({
        QueueUrl: queueUrl,
        MessageBody: JSON.stringify({ key, taskId, state: status.state, at }),
      }),
    )
    return { statusCode: 202, headers: { 'content-type': 'application/json' }, body: '{"status":"accepted"}' }
  }
}
