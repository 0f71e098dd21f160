// Posts as agents do: once, without a retry.
import { Agent, request } from 'node:http'

export type Poster = {
  /** @returns the HTTP status, 0 when there was no answer */
  post: (url: string, headers: Record<string, string>, body: string) => Promise<number>
  stop: () => void
}

/** Agents hang up after 5 s, but they do not share two cores with all the rest. */
const patienceMs = 30_000

export function startPost(): Poster {
  // A connection of its own for each: one that is kept may be closed by the other side in that very moment.
  const agent = new Agent({ keepAlive: false, maxSockets: 40 })
  return {
    post: (url, headers, body) =>
      new Promise(resolve => {
        const asked = request(url, {
          method: 'POST',
          agent,
          timeout: patienceMs,
          headers: {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
            ...headers,
          },
        })
        asked.on('response', answer => {
          answer.on('error', () => resolve(0))
          answer.resume().on('end', () => resolve(answer.statusCode ?? 0))
        })
        asked.on('timeout', () => asked.destroy())
        asked.on('error', () => resolve(0))
        asked.end(body)
      }),
    stop: () => agent.destroy(),
  }
}
