// Signs webhooks as Standard Webhooks 1.0.0 asks for (https://www.standardwebhooks.com). Pure: time and randomness are arguments.
import { hmac } from '../hash.ts'

const prefix = 'whsec_'
const shortest = 24
const longest = 64

/**
 * Makes a signing secret.
 * @param random32 32 fresh random bytes
 */
export const makeSecret = (random32: Uint8Array): string =>
  `${prefix}${Buffer.from(random32).toString('base64')}`

/** True for a secret that can sign: `whsec_` and the padded base64 of 24 to 64 bytes. */
export const isSecret = (secret: string): boolean => keyOf(secret) !== undefined

function keyOf(secret: string): Uint8Array | undefined {
  if (!secret.startsWith(prefix)) return undefined
  const text = secret.slice(prefix.length)
  const key = Buffer.from(text, 'base64')
  // Node skips what is not base64: only what comes back the same was read whole.
  const whole = key.toString('base64') === text
  return whole && key.length >= shortest && key.length <= longest ? key : undefined
}

/** The one message to sign: its id (equal on every retry, without a dot), its exact text, and the attempt's time. */
type Message = { id: string; body: string; nowMs: number }

/**
 * The headers that prove a message: one `v1` signature for each secret, so that receivers may change secrets one
 * after the other.
 * @throws Error if there is no secret, or one that {@link isSecret} refuses; the secret is not repeated
 */
export function sign(secrets: readonly string[], { id, body, nowMs }: Message): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000))
  const signatures = secrets.map(secret => {
    const key = keyOf(secret)
    if (key === undefined) throw new Error('A webhook secret is not whsec_ and base64 of 24 to 64 bytes')
    return `v1,${Buffer.from(hmac(key, `${id}.${timestamp}.${body}`)).toString('base64')}`
  })
  if (signatures.length === 0) throw new Error('A webhook needs a secret to be signed with')
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}
