// Names the awaits of the receive door, and tells by an AWS call which of them it is, and about which agent. Pure.
import { type Call, isRecord } from '../../../infra/local/wire.ts'

/** The awaits of receive in their order; `take` is the lease of a key set that nobody fetched before. */
export const steps = {
  subscription: 'read the subscription',
  agent: 'read the agent',
  keys: 'read the key set',
  lease: 'lease its fetch',
  take: 'lease its first fetch',
  fetch: 'fetch it',
  save: 'save what came of it',
  notice: 'put the notice',
  message: 'send the message',
  timer: 'give the notice a timer',
  counts: 'add the counts',
} as const

export type Step = keyof typeof steps

/** @returns undefined for a call that receive never makes */
export function stepOf({ operation, body }: Call): Step | undefined {
  if (operation === 'SendMessage') return 'message'
  const { pk, sk } = keyOf(body)
  if (pk.startsWith('S#')) return 'subscription'
  if (pk.startsWith('N#')) return operation === 'PutItem' ? 'notice' : 'timer'
  if (!pk.startsWith('A#')) return undefined
  if (sk === 'health') return 'counts'
  if (sk !== 'keys') return 'agent'
  if (operation === 'GetItem') return 'keys'
  if (operation === 'PutItem') return 'take'
  return String(body.UpdateExpression).includes('#leasedAt') ? 'lease' : 'save'
}

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
