// Opens instances of the door under test, in this process or in one of their own, and ends them as a kill would.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { HttpHandler } from '../../../functions/lambda.ts'
import { createRelay, type Relay } from '../../../shared/relay.ts'
import { dialects, type Sent } from '../../support/dialects.ts'
import { ear, hear } from '../../support/ear.ts'

export type MakeDoor = (relay: Relay) => HttpHandler

/** An instance of the door. */
export type Door = {
  /** @returns the HTTP status, 0 when the door ended before it answered */
  post: (sent: Sent) => Promise<number>
  kill: () => Promise<void>
}

type Opening = {
  env: Record<string, string>
  now: () => number
  /** Whoever is named here has no effect on table and queues any more. */
  dead: Set<string>
  /** Told of each exchange that begins, by the first part of its path. */
  onFetch: (what: string) => void
}

/**
 * An instance in this process. Killed, it is abandoned: whatever it still does has no effect, and nobody hears its
 * answer. For table and queues, which live elsewhere, that is all that a kill is.
 */
export function openHere(make: MakeDoor, { env, now, dead, onFetch }: Opening): Door {
  const relay = createRelay('receive', env, { now, write: ear.line })
  const request: Relay['net']['request'] = ask => {
    onFetch(new URL(ask.url).pathname.split('/')[1] ?? '')
    return relay.net.request(ask)
  }
  const handler = make({ ...relay, net: { ...relay.net, request } })
  const gone = Promise.withResolvers<number>()
  return {
    post: async sent => {
      hear({ url: sent.path, headers: Object.fromEntries(sent.headers) })
      const event = dialects['Function URL'](sent) as unknown as Parameters<HttpHandler>[0]
      const answer = handler(event).then(
        ({ statusCode }) => statusCode,
        () => 502,
      )
      return Promise.race([answer, gone.promise])
    },
    kill: async () => {
      dead.add(env.AWS_ACCESS_KEY_ID ?? '')
      gone.resolve(0)
      relay.table.client.destroy()
      relay.queues.client.destroy()
    },
  }
}

/** An instance in a process of its own, ended by SIGKILL. */
export async function openThere({ env, now }: Omit<Opening, 'onFetch'>): Promise<Door> {
  const child = fork(new URL('./child.ts', import.meta.url), [JSON.stringify(env), String(now())])
  const gone = once(child, 'exit')
  const [port] = await Promise.race([
    once(child, 'message'),
    gone.then(([code]) => {
      throw new Error(`The door ended with ${code} before it was open`)
    }),
  ])
  return {
    post: async ({ method, path, headers, body }) => {
      const answer = fetch(`http://127.0.0.1:${port}${path}`, { method, headers, body: Buffer.from(body) })
      return answer.then(
        ({ status }) => status,
        () => 0,
      )
    },
    kill: async () => {
      child.kill('SIGKILL')
      await gone
    },
  }
}
