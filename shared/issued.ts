// What is handed out with a hook: its address, and the secrets that its pushes prove themselves with, derived anew each time. Pure.
import { hookSecret } from './hooks.ts'
import type { Agent, Subscription } from './model.ts'
import type { Relay } from './relay.ts'

export const hookUrl = (relay: Relay, hook: string): string => `${relay.config.hookOrigin}/hooks/${hook}`

/** True of an agent that signs its pushes. It is given no secret: senders would put one where the JWT belongs. */
export const signs = ({ verification }: Agent): boolean => verification.jwt !== undefined

/** The secrets of a subscription's hook, each as it stands in the push config; each is derived when it is asked for. */
export function hookSecrets(relay: Relay, sub: Subscription, generation = sub.generation) {
  const of = (label: 'token' | 'credentials') =>
    hookSecret(relay.config.rootKeys, sub.hook, sub.tenant, generation, label)
  return {
    get token() {
      return of('token')
    },
    get bearer() {
      return of('credentials')
    },
    get basic() {
      return Buffer.from(`rouse:${of('credentials')}`).toString('base64')
    },
  }
}
