// Tells the trip once with the demo agent: subscribed, pushed, verified, looked, woken. Each line waits for the real step.
import { setTimeout as pause } from 'node:timers/promises'
import type { Step } from '../../shared/log.ts'
import { callAgent } from './agent/caller.ts'
import type { DemoAgent } from './agent.ts'
import { startAwayClient } from './away.ts'
import type { Local } from './run.ts'

/** Steps of the doors' logs, awaited by name and task. */
export type Steps = {
  note: (step: Step) => void
  /** @param state the state that the step must name, if it matters */
  seen: (name: string, task: string, state?: string) => Promise<Step>
}

/** Collects log steps so that a story can wait for one that may have happened already. */
export function collectSteps(): Steps {
  const noted: Step[] = []
  const waiting = new Set<(step: Step) => void>()
  return {
    note: step => {
      noted.push(step)
      if (noted.length > 1000) noted.shift()
      for (const wake of waiting) wake(step)
    },
    seen: (name, task, state) => {
      const fits = (step: Step): boolean =>
        step.step === name && step.task === task && (state === undefined || step.state === state)
      const past = noted.find(fits)
      if (past !== undefined) return Promise.resolve(past)
      return new Promise(resolve => {
        const wake = (step: Step): void => {
          if (!fits(step)) return
          waiting.delete(wake)
          resolve(step)
        }
        waiting.add(wake)
      })
    },
  }
}

export type Teller = (milestone: string, says: string) => void

/** How long one step of the story may take. */
const patienceMs = 15_000

/**
 * Runs the story.
 * @param tell takes each milestone as it is reached
 * @throws Error naming the step that failed
 */
export async function tellStory(
  local: Local,
  agent: DemoAgent,
  key: string,
  steps: Steps,
  tell: Teller,
): Promise<void> {
  const api = apiOf(local.apiOrigin, key)
  let secret = ''
  const client = await startAwayClient(() => secret)
  try {
    await api('PUT', '/v1/agents/demo', {
      cardUrl: agent.cardUrl(),
      origins: [agent.origin],
      verification: { jwt: { jwksUrl: agent.jwksUrl, issuer: agent.origin } },
    })
    const caller = await callAgent(agent.cardUrl())
    const taskId = await caller.send('work')
    const made = await api<Made>('POST', '/v1/subscriptions', {
      agent: 'demo',
      taskId,
      client: 'you',
      targets: [{ url: client.url }],
    })
    secret = made.targets[0].secret
    tell('subscribed', `subscription ${made.id}, task ${taskId}, push config ${made.registration.status}`)

    await agent.release(taskId)
    tell('pushed', 'the agent finished the task and pushed, signed by JWT (ES256)')
    const stored = await within('verified', steps.seen('notice.stored', taskId, 'completed'))
    tell(
      'verified',
      `genuine and new: notice ${stored.notice}, proven by ${[stored.by].flat().join(' and ')}`,
    )
    const looked = await within('looked', steps.seen('watch.published', taskId, 'completed'))
    tell('looked', `GetTask says ${looked.state}, our revision ${looked.rev}`)
    const woken = await within('woken', client.woken)
    if (!woken.genuine) throw new Error('woken: the signature of the wake is wrong')
    tell('woken', `${woken.body.type} as wake ${woken.id}, signature right`)
    const inbox = await api<Feed>('GET', `/v1/inbox?client=you&after=${Number(woken.body.data.seq) - 1}`)
    if (!inbox.entries.some(entry => entry.taskId === taskId))
      throw new Error('read: the inbox lacks the task')
    tell('read', `the client is back and reads its inbox: entry ${woken.body.data.seq}, ${woken.body.type}`)
  } finally {
    client.stop()
  }
}

type Made = { id: string; registration: { status: string }; targets: [{ secret: string }] }
type Feed = { entries: { taskId: string }[] }

/** Calls the API; a 503 of a machine that is busy with its start is asked again, until patience ends. */
function apiOf(origin: string, key: string) {
  return async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const call = () =>
      fetch(new URL(path, origin), {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
    const giveUpAt = Date.now() + patienceMs
    let response = await call()
    while (response.status === 503 && Date.now() < giveUpAt) {
      await pause(500)
      response = await call()
    }
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
    return JSON.parse(text)
  }
}

async function within<T>(step: string, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`${step}: not within ${patienceMs / 1000} s`)), patienceMs)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
