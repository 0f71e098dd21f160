// The two doors with an address: receive for agents, api for clients and people. Each has a Function URL of its own.
import { door, settings } from './door.ts'
import { operatorKeySha256 } from './secrets.ts'

export const receive = door('receive', 'Receive', {
  ...(settings.receiveConcurrency !== undefined && {
    concurrency: { reserved: settings.receiveConcurrency },
  }),
})

export const api = door('api', 'Api', { environment: { OPERATOR_KEY_SHA256: operatorKeySha256.value } })
