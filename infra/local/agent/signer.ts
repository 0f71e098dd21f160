// A push sender that signs, as the A2A docs describe the asymmetric key flow; no SDK has one. Sends once, like all of them.
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { V03PushNotificationSerializer } from '@a2a-js/sdk/compat/v0_3/server'
import {
  type InMemoryPushNotificationStore,
  type PushNotificationSender,
  type StoredPushNotificationConfig,
  V1PushNotificationSerializer,
} from '@a2a-js/sdk/server'
import { exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose'

export type Algorithm = 'ES256' | 'RS256'

export type Signer = {
  /** What is served at `/.well-known/jwks.json`: every key so far, the newest last. */
  jwks: () => { keys: JWK[] }
  /** Signs with a fresh key from now on. */
  rotate: () => Promise<void>
  sender: (store: InMemoryPushNotificationStore) => PushNotificationSender
}

const lifetimeSeconds = 300
const timeoutMs = 5000

const serializers = { '1.0': new V1PushNotificationSerializer(), '0.3': new V03PushNotificationSerializer() }

/**
 * @param now milliseconds since 1970: the clock that `iat` and `exp` are told by
 * @param keyFile where the first key is kept: an agent that starts again is still the same signer
 */
export async function createSigner(
  algorithm: Algorithm,
  issuer: () => string,
  now: () => number,
  keyFile?: string,
): Promise<Signer> {
  const keys: JWK[] = []
  let current = await recallKey(algorithm, keys, keyFile)

  const sign = (taskId: string, url: string, body: string): Promise<string> => {
    const iat = Math.floor(now() / 1000)
    const digest = createHash('sha256').update(body).digest('hex')
    return new SignJWT({ taskId, request_body_sha256: digest })
      .setProtectedHeader({ alg: algorithm, kid: current.kid, typ: 'JWT' })
      .setIssuer(issuer())
      .setAudience(url)
      .setIssuedAt(iat)
      .setExpirationTime(iat + lifetimeSeconds)
      .setJti(randomUUID())
      .sign(current.privateKey)
  }

  /** Whoever handed out a secret gets it back, as from the SDK's own sender; everybody else gets a signature. */
  const proofFor = async (
    taskId: string,
    { url, token, authentication }: StoredPushNotificationConfig['config'],
    body: string,
  ): Promise<Record<string, string>> => {
    if (authentication?.credentials)
      return { Authorization: `${authentication.scheme} ${authentication.credentials}` }
    if (token !== '') return { 'X-A2A-Notification-Token': token }
    return { Authorization: `Bearer ${await sign(taskId, url, body)}` }
  }

  const post = async (
    taskId: string,
    { config }: StoredPushNotificationConfig,
    { body, contentType }: { body: string; contentType: string },
  ): Promise<void> => {
    const headers = { 'Content-Type': contentType, ...(await proofFor(taskId, config, body)) }
    const signal = AbortSignal.timeout(timeoutMs)
    const answer = await fetch(config.url, { method: 'POST', headers, body, signal, redirect: 'manual' })
    await answer.body?.cancel()
  }

  return {
    jwks: () => ({ keys }),
    rotate: async () => {
      current = await makeKey(algorithm, keys)
    },
    sender: store => {
      const chains = new Map<string, Promise<unknown>>()
      return {
        send: async (response, context, task) => {
          const { payload } = response
          const taskId = payload?.$case === 'task' ? payload.value.id : (payload?.value.taskId ?? '')
          const configs = await store.loadWithMetadata(taskId, context)
          const bodies = configs.map(({ wireVersion }) =>
            serializers[wireVersion === '0.3' ? '0.3' : '1.0'].serialize(response, task),
          )
          // One after the other for a task, all configs at once: the order that the SDK's own sender keeps.
          const before = chains.get(taskId)
          const sent = Promise.resolve(before).then(() =>
            Promise.allSettled(
              configs.flatMap((config, at) => {
                const body = bodies[at]
                return body === undefined ? [] : [post(taskId, config, body)]
              }),
            ),
          )
          chains.set(taskId, sent)
          await sent
          if (chains.get(taskId) === sent) chains.delete(taskId)
        },
      }
    },
  }
}

type Key = { privateKey: CryptoKey | Uint8Array; kid: string }

/** The key of the last run, or a fresh one that is kept for the next. */
async function recallKey(algorithm: Algorithm, keys: JWK[], file: string | undefined): Promise<Key> {
  if (file === undefined) return makeKey(algorithm, keys)
  if (!existsSync(file)) {
    const { privateKey } = await generateKeyPair(algorithm, { extractable: true })
    writeFileSync(file, JSON.stringify(await exportJWK(privateKey)), { mode: 0o600 })
  }
  const jwk: JWK = JSON.parse(readFileSync(file, 'utf8'))
  const { d: _, ...publicPart } = jwk
  keys.push({ ...publicPart, kid: 'demo-kept', alg: algorithm, use: 'sig' })
  return { privateKey: await importJWK(jwk, algorithm), kid: 'demo-kept' }
}

async function makeKey(algorithm: Algorithm, keys: JWK[]): Promise<Key> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm)
  const kid = `demo-${keys.length + 1}`
  keys.push({ ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' })
  return { privateKey, kid }
}
