// Names what the receive door waits for, by what it is seen calling: nobody lists its awaits, so that none can be forgotten. Pure.
import { type Call, isRecord } from '../../../infra/local/wire.ts'

/** The write that marks a push as seen, and the one that queues its look. */
export const record = 'PutItem N'
export const message = 'SendMessage'
/** The record's timer, for a message that could not be sent. */
export const timer = 'UpdateItem N'
/** The fetch of an agent's key set. */
export const fetchKeys = 'fetch keys'
/** The lease of a fetch. */
export const lease = 'UpdateItem A keys'

/** Names an AWS call by its operation, the kind of its item (first letter of pk) and its sort key where that is a word. */
export function nameOf({ operation, body }: Pick<Call, 'operation' | 'body'>): string {
  const { pk, sk } = keyOf(body)
  return [operation, pk.split('#')[0] ?? '', /^[a-z]+$/.test(sk) ? sk : ''].filter(Boolean).join(' ')
}

/** The name of something done for the nth time in one request: `GetItem A keys`, then `GetItem A keys 2`. */
export const nthOf = (name: string, n: number): string => (n === 1 ? name : `${name} ${n}`)

/** The name without its number. */
export const kindOf = (step: string): string => step.replace(/ \d+$/, '')

/** The agent whose item a call is about. */
export const agentOf = ({ body }: Call): string | undefined => /^A#[^#]+#(.+)$/.exec(keyOf(body).pk)?.[1]

function keyOf({ Key, Item }: Call['body']): { pk: string; sk: string } {
  const key = isRecord(Key) ? Key : isRecord(Item) ? Item : {}
  const text = (name: string): string => {
    const value = key[name]
    return isRecord(value) ? String(value.S) : ''
  }
  return { pk: text('pk'), sk: text('sk') }
}
