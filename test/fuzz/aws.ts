// Stands where DynamoDB and SQS would: answers at once from a few items, knows the notices put so far, and notes every call.
import { marshall } from '@aws-sdk/util-dynamodb'
import type { Relay } from '../../shared/relay.ts'
import type { Key } from '../../shared/store/keys.ts'

type Fields = Record<string, unknown>

/** One call: its operation and what was asked. */
export type Called = { operation: string; body: Fields }

/** What a request to AWS looks like to whoever carries it. */
type Carried = { headers: Record<string, string>; body?: unknown }

/**
 * Puts a stand-in behind the clients of a relay.
 * @returns gives the calls since it was asked last
 */
export function standIn(relay: Relay, items: readonly (Key & Fields)[]): () => Called[] {
  const kept = new Map(
    items.map(item => [nameOf(item.pk, item.sk), JSON.stringify({ Item: marshall(item) })]),
  )
  const notices = new Set<string>()
  let calls: Called[] = []
  const handle = async ({ headers, body }: Carried) => {
    const operation = (headers['x-amz-target'] ?? '').replace(/^.*\./, '')
    const asked: Fields = JSON.parse(
      body instanceof Uint8Array ? new TextDecoder().decode(body) : String(body),
    )
    calls.push({ operation, body: asked })
    const { status, text } = answer(operation, asked)
    return { response: { statusCode: status, reason: '', headers: json, body: Buffer.from(text) } }
  }
  const answer = (operation: string, asked: Fields): { status: number; text: string } => {
    const key = keyIn(asked.Key ?? asked.Item)
    if (operation === 'GetItem') return { status: 200, text: kept.get(key) ?? '{}' }
    if (operation === 'SendMessage') return { status: 200, text: '{"MessageId":"m"}' }
    if (operation === 'PutItem' && notices.has(key)) return { status: 400, text: refused }
    if (operation === 'PutItem') notices.add(key)
    return { status: 200, text: '{}' }
  }
  for (const { config } of [relay.table.client, relay.queues.client])
    Object.assign(config, { requestHandler: { handle } })
  return () => {
    const since = calls
    calls = []
    return since
  }
}

const json = { 'content-type': 'application/x-amz-json-1.0' }
const nameOf = (pk: string, sk: string): string => `${pk}\n${sk}`

function keyIn(item: unknown): string {
  const { pk, sk } = JSON.parse(JSON.stringify(item ?? {}))
  return nameOf(pk?.S ?? '', sk?.S ?? '')
}

const refused = JSON.stringify({
  __type: 'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException',
  message: 'The conditional request failed',
  Item: { pk: { S: 'N#1' }, sk: { S: '.' }, req: { S: 'another' } },
})
