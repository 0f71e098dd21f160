// x.
import { door } from '../../functions/receive.ts'
import { createRelay } from '../../shared/relay.ts'
import { createAws } from './aws.ts'
import { floor, makeClients } from './floor.ts'
import type { Kind, Scene } from './scene.ts'

export type Variant = (scene: Scene) => (n: number) => Promise<unknown>

const check = (status: number, wanted: number) => {
  if (status !== wanted) throw new Error(`answered ${status}`)
}

const ofFloor =
  (kind: Kind, wanted = 202): Variant =>
  scene => {
    const aws = createAws(scene)
    const clients = makeClients()
    Object.assign(clients.dynamodb.config, { requestHandler: aws })
    Object.assign(clients.sqs.config, { requestHandler: aws })
    const keys = JSON.stringify(scene.jwks)
    const handle = floor(clients, {
      tableName: 'rouse',
      queueUrl: scene.env.LOOK_QUEUE_URL ?? '',
      issuer: scene.issuer,
      hookOrigin: scene.env.HOOK_ORIGIN ?? '',
      fetch: async () => new Response(keys, { headers: { 'content-type': 'application/json' } }),
    })
    const pushes = scene.pushes[kind]
    return async n => {
      const push = pushes[n % pushes.length]
      if (push) check((await handle(push)).statusCode, wanted)
    }
  }

const ofOurs =
  (kind: Kind, wanted = 202, seen = false): Variant =>
  scene => {
    const aws = createAws(scene, seen)
    let at = scene.at
    const relay = createRelay('receive', process.env, { now: () => at })
    Object.assign(relay.table.client.config, { requestHandler: aws })
    Object.assign(relay.queues.client.config, { requestHandler: aws })
    const handle = door(relay)
    const pushes = scene.pushes[kind]
    return async n => {
      at += 10
      const push = pushes[n % pushes.length]
      if (push) check((await handle(push)).statusCode, wanted)
    }
  }

export const variants: Record<string, Variant> = {
  'floor RS256': ofFloor('RS256'),
  'floor ES256': ofFloor('ES256'),
  'floor EdDSA': ofFloor('EdDSA'),
  'floor bad': ofFloor('bad_signature', 401),
  RS256: ofOurs('RS256'),
  ES256: ofOurs('ES256'),
  EdDSA: ofOurs('EdDSA'),
  token: ofOurs('token'),
  duplicate: ofOurs('RS256', 200, true),
  wrong_token: ofOurs('wrong_token', 401),
  bad_signature: ofOurs('bad_signature', 401),
}
