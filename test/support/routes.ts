// Calls the API with one key, and names the parts of its answers that the trips look at.
import type { HandedOut } from '../../shared/a2a/configs.ts'

export type Made = {
  id: string
  status: string
  taskId?: string
  registration: { status: string; detail?: string }
  targets: { target: string; secret: string }[]
  pushNotificationConfig: HandedOut
  pushNotificationConfigs: Record<'1.0' | '0.3', HandedOut>
}

export type SeenTask = {
  state: string | null
  rev: number
  stale: boolean
  trouble?: { code: string; since: number }
  task: { id: string; status: { state: string } } | null
  withheld: boolean
  artifacts: { count: number; bytes: number } | null
  timeline: { steps: { source: string; note?: string }[] }
}

export type SeenWake = {
  target: string
  id: string
  status: string
  state: string
  rev: number
  tries: number
  next?: number
  attempts: { at: number; verdict: string; status?: number; answer?: string }[]
}

export type Feed = {
  entries: { seq: number; type: string; taskId: string; state: string; rev: number }[]
  next: string
}

type Problem = { status: number; code: string; detail?: string }

export type Routes = {
  /** One call that must succeed. @throws Error with what was answered */
  call: <T>(method: string, path: string, body?: unknown) => Promise<T>
  /** One call that must be refused: the problem. */
  refused: (method: string, path: string, body?: unknown) => Promise<Problem>
  task: (agent: string, taskId: string, principal?: string) => Promise<SeenTask>
  wake: (id: string) => Promise<SeenWake>
  inbox: (client: string) => Promise<Feed>
}

/** @param key the API key */
export function routesOf(origin: string, key: string): Routes {
  const ask = async (method: string, path: string, body: unknown) => {
    const response = await fetch(new URL(path, origin), {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, ok: response.ok, text: await response.text() }
  }
  const call: Routes['call'] = async (method, path, body) => {
    const { ok, status, text } = await ask(method, path, body)
    if (!ok) throw new Error(`${method} ${path} answered ${status}: ${text}`)
    return JSON.parse(text || 'null')
  }
  return {
    call,
    refused: async (method, path, body) => {
      const { ok, status, text } = await ask(method, path, body)
      if (ok) throw new Error(`${method} ${path} answered ${status}`)
      return JSON.parse(text)
    },
    task: (agent, taskId, principal) =>
      call('GET', `/v1/tasks/${agent}/${taskId}${principal === undefined ? '' : `?principal=${principal}`}`),
    wake: id => call('GET', `/v1/wakes/${id}`),
    inbox: client => call('GET', `/v1/inbox?client=${client}`),
  }
}
