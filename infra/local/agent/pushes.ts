// Stands before the demo agent's push sender: suppresses pushes, counts them and waits for them. Sends nothing itself.
import { setImmediate } from 'node:timers/promises'
import type { PushNotificationSender } from '@a2a-js/sdk/server'

export type Pushes = {
  sender: PushNotificationSender
  /** Suppresses the push of one event. */
  silence: (event: object) => void
  /** Suppresses all pushes while true. */
  mute: (on: boolean) => void
  /** How many events were pushed, whatever the number of configs. */
  count: () => number
  /** Resolves when every push under way was answered or given up. */
  settled: () => Promise<void>
}

export function trackPushes(sender: PushNotificationSender): Pushes {
  const sending = new Set<Promise<void>>()
  const silent = new WeakSet<object>()
  let muted = false
  let count = 0
  return {
    sender: {
      send: (response, context, task) => {
        if (muted || (response.payload !== undefined && silent.has(response.payload.value)))
          return Promise.resolve()
        count++
        const sent = sender.send(response, context, task).finally(() => sending.delete(sent))
        sending.add(sent)
        return sent
      },
    },
    silence: event => silent.add(event),
    mute: on => {
      muted = on
    },
    count: () => count,
    settled: async () => {
      // The SDK's chain from bus to store and sender is made of promises only: all of it is done before the next turn.
      await setImmediate()
      await Promise.allSettled([...sending])
    },
  }
}
