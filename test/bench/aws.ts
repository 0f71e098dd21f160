// Stands where DynamoDB and SQS would: answers each call at once from a few items, and counts the calls by operation.
import { createHash } from 'node:crypto'
import { marshall } from '@aws-sdk/util-dynamodb'
import type { Scene } from './scene.ts'

export type Aws = {
  /** The one answer of each operation, by its target header and body. */
  answer: (target: string, body: string) => { status: number; text: string }
  /** Puts this in place of the connection of SDK clients. */
  serve: (...clients: { config: object }[]) => void
  calls: Map<string, number>
}

/**
 * Makes a stand-in.
 * @param seen whether every put finds its item there already
 */
export function createAws({ items }: Scene, seen = false): Aws {
  const calls = new Map<string, number>()
  const found = new Map(
    items.map(item => [`${item.pk}\n${item.sk}`, JSON.stringify({ Item: marshall(item) })]),
  )
  const answer: Aws['answer'] = (target, body) => {
    const operation = target.slice(target.indexOf('.') + 1)
    calls.set(operation, (calls.get(operation) ?? 0) + 1)
    if (operation === 'SendMessage') return { status: 200, text: sent(body) }
    if (operation === 'PutItem' && seen) return { status: 400, text: refused }
    if (operation !== 'GetItem') return { status: 200, text: '{}' }
    const { Key } = JSON.parse(body)
    return { status: 200, text: found.get(`${Key.pk.S}\n${Key.sk.S}`) ?? '{}' }
  }
  const handle = async ({ headers, body }: { headers: Record<string, string>; body: Uint8Array }) => {
    const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
    const { status, text: answered } = answer(headers['x-amz-target'] ?? '', text)
    return {
      response: {
        statusCode: status,
        headers: { 'content-type': 'application/x-amz-json-1.0' },
        body: Buffer.from(answered),
      },
    }
  }
  const serve: Aws['serve'] = (...clients) => {
    for (const { config } of clients) Object.assign(config, { requestHandler: { handle } })
  }
  return { answer, serve, calls }
}

/** Default clients check the digest of what they sent, so that it must be right. */
const sent = (body: string): string =>
  JSON.stringify({
    MessageId: '219f8380-5770-4cc2-8c3e-5c715e145f5e',
    MD5OfMessageBody: createHash('md5').update(JSON.parse(body).MessageBody).digest('hex'),
  })

const refused = JSON.stringify({
  __type: 'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException',
  message: 'The conditional request failed',
  Item: { pk: { S: 'N#1' }, sk: { S: '.' }, req: { S: 'another' } },
})
