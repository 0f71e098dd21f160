// Hears what the doors of all tests in this process log and which secrets go over the wire, and tells where the one stands in the other.
import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'

export type Ear = {
  /** Hears a line of a log. */
  line: (text: string) => void
  /** Hears a text that holds secrets and nothing that may be logged. */
  secret: (text: string) => void
  /** The lines that gave a secret away since it was last asked, without the secret. */
  leaks: () => string[]
}

/** Secrets are told by their words: no shorter one is a secret, and no separator belongs to one. */
const word = /[\w-]{12,}/g

const wordsIn = (text: string): string[] => text.match(word) ?? []

export function createEar(): Ear {
  const secrets = new Set<string>()
  /** Words of all lines so far, each with the line that had it first: a secret may be used after it was logged. */
  const logged = new Map<string, string>()
  let found: string[] = []
  const leak = (line: string, secret: string): void => {
    found.push(line.replaceAll(secret, '<a secret>'))
  }
  return {
    line: text => {
      for (const one of wordsIn(text)) {
        if (secrets.has(one)) leak(text, one)
        if (!logged.has(one)) logged.set(one, text)
      }
    },
    secret: text => {
      for (const one of wordsIn(text)) {
        if (secrets.has(one)) continue
        secrets.add(one)
        const line = logged.get(one)
        if (line !== undefined) leak(line, one)
      }
    },
    leaks: () => {
      const all = found
      found = []
      return all
    },
  }
}

/** Hears all tests that this process runs. */
export const ear: Ear = createEar()

const telling = /authorization|token|secret|key|credential/

/** Hears what proves the caller of a request: headers named so, Basic in the clear too, and the hook in a path. AWS signs by what is no secret. */
export function hear({ url = '', headers }: Pick<IncomingMessage, 'url' | 'headers'>): void {
  const hook = /\/hooks\/([\w-]+)/.exec(url)?.[1]
  if (hook !== undefined) ear.secret(hook)
  if (headers['x-amz-target'] !== undefined) return
  for (const [name, value] of Object.entries(headers)) {
    if (!telling.test(name)) continue
    const text = String(value)
    ear.secret(text)
    const basic = /^basic (.+)$/i.exec(text)?.[1]
    if (basic !== undefined) ear.secret(Buffer.from(basic, 'base64').toString())
  }
}

/** From now on every request to any server of this process is heard: API, hooks, agents, targets, token endpoints. */
export function listen(): void {
  subscribe('http.server.request.start', message => {
    if (typeof message === 'object' && message !== null && 'request' in message)
      hear(message.request as IncomingMessage)
  })
}
