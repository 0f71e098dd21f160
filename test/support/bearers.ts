// An agent that says other things to other bearer tokens, as one does to subscriptions that each have credentials of their own.
import type { Answer } from './receiver.ts'
import type { Scripted } from './scripted.ts'

/** What is asked of an agent. */
export type Asked = { id: string; method: string }

/** The part of a request that gives a subscription, or an agent, a token. */
export const bearer = (token: string) => ({ credentials: { type: 'bearer', token } })

/** An error of JSON-RPC. */
export const error =
  (code: number) =>
  (asked: Asked): Answer => ({
    body: JSON.stringify({ jsonrpc: '2.0', id: asked.id, error: { code, message: 'no' } }),
  })
export const gone = error(-32001)
export const refused = (): Answer => ({ status: 401 })
export const forbidden = (): Answer => ({ status: 403 })

/** Whose token the last call about a task showed. */
export const whose = (agent: Scripted, taskId: string): string =>
  String(agent.calls(taskId).at(-1)?.headers.authorization).slice('Bearer '.length)

/** What the agent says to each token; where that is nothing, it says what it knows. */
export function answering(
  agent: Scripted,
  taskId: string,
  says: (token: string, asked: Asked) => Answer | undefined,
): void {
  agent.instead(asked => says(whose(agent, taskId), asked))
}
