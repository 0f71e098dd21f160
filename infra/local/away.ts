// A client that was away: it listens only for its wake, and believes none whose signature is wrong.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'

/** A wake that arrived. */
export type Woken = { id: string; genuine: boolean; body: { type: string; data: Record<string, unknown> } }

export type AwayClient = { url: string; woken: Promise<Woken>; stop: () => void }

/**
 * Starts a webhook receiver on the loopback address.
 * @param secretOf gives the `whsec_` secret, once the target was made
 */
export async function startAwayClient(secretOf: () => string): Promise<AwayClient> {
  const { promise: woken, resolve } = Promise.withResolvers<Woken>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString()
    const headers = Object.fromEntries(
      ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(name => [
        name,
        String(request.headers[name]),
      ]),
    )
    const genuine = isGenuine(secretOf(), body, headers)
    response.writeHead(genuine ? 204 : 401).end()
    resolve({ id: headers['webhook-id'] ?? '', genuine, body: JSON.parse(body) })
  })
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/woken`,
    woken,
    stop: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Asks the library that any receiver would use. */
function isGenuine(secret: string, body: string, headers: Record<string, string>): boolean {
  try {
    new Webhook(secret).verify(body, headers)
    return true
  } catch {
    return false
  }
}
