// Plays the demo agent's tasks by script: what a message asks for, and what a test or a story moves by hand. Knows no HTTP.
import { randomUUID } from 'node:crypto'
import { type Message, TaskArtifactUpdateEvent, TaskStatusUpdateEvent, taskStateFromJSON } from '@a2a-js/sdk'
import {
  AgentEvent,
  type AgentExecutor,
  type ExecutionEventBus,
  ResultManager,
  type ServerCallContext,
  type TaskStore,
} from '@a2a-js/sdk/server'
import { isTerminal, type TaskState } from '../../../shared/a2a/task.ts'
import type { Pushes } from './pushes.ts'

/** How a step is taken: what the agent says, and whether it pushes (unless said otherwise, it does). */
type Move = { text?: string; push?: boolean }

export type Stage = {
  executor: AgentExecutor
  /** Moves a task; resolves when the store has it and every push for it was answered or given up. */
  setState: (taskId: string, state: TaskState, move?: Move) => Promise<void>
  /** Adds an artifact to a task, in the same way. */
  addArtifact: (taskId: string, text: string, move?: Move) => Promise<void>
  /** Lets a task go on to the end of its script. */
  release: (taskId: string) => Promise<void>
  close: () => void
}

type Run = {
  taskId: string
  contextId: string
  context: ServerCallContext
  bus: ExecutionEventBus
  script: string
  /** While the executor runs, events go over its bus; afterwards nobody listens there any more. */
  live: boolean
  end: () => void
}

type Happening =
  | { $case: 'statusUpdate'; value: TaskStatusUpdateEvent }
  | { $case: 'artifactUpdate'; value: TaskArtifactUpdateEvent }

type Setting = {
  store: TaskStore
  pushes: Pushes
  now: () => number
  /** How long work takes by itself; without it, work waits for `release`. */
  workMs: number | undefined
}

export function createStage(setting: Setting): Stage {
  const { now, workMs } = setting
  const runs = new Map<string, Run>()
  const timers = new Set<NodeJS.Timeout>()
  const runOf = (taskId: string): Run => {
    const run = runs.get(taskId)
    if (run === undefined) throw new Error(`The demo agent has no task ${taskId}`)
    return run
  }

  const setState: Stage['setState'] = async (taskId, state, { text, push = true } = {}) => {
    const run = runOf(taskId)
    const value = statusOf(run, state, text, now())
    await publish(setting, run, { $case: 'statusUpdate', value }, push)
    // The SDK stops to listen here; with auth-required it goes on, as the same run will.
    if (isTerminal(state) || state === 'input-required') run.end()
  }

  const addArtifact: Stage['addArtifact'] = async (taskId, text, { push = true } = {}) => {
    const run = runOf(taskId)
    await publish(setting, run, { $case: 'artifactUpdate', value: artifactOf(run, text) }, push)
  }

  const release: Stage['release'] = async taskId => {
    const { script } = runOf(taskId)
    const push = script !== 'silent'
    for (const share of script === 'slow' ? ['a third', 'two thirds'] : [])
      await setState(taskId, 'working', { text: `Done: ${share}` })
    await addArtifact(taskId, 'Here is the result', { push })
    await setState(taskId, 'completed', { push })
  }

  const releaseLater = (taskId: string): void => {
    if (workMs === undefined) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      void release(taskId)
    }, workMs)
    timers.add(timer)
  }

  const play = async ({ taskId, script }: Run, text: string, again: boolean): Promise<void> => {
    const waits = !again && ['work', 'silent', 'slow'].includes(script)
    if (again || waits || script === 'ask') await setState(taskId, 'working', { text: 'On it' })
    if (waits) releaseLater(taskId)
    else if (!again && script === 'ask') await setState(taskId, 'input-required', { text: 'Shall I go on?' })
    else if (script === 'fail') await setState(taskId, 'failed', { text: 'It did not work' })
    else await setState(taskId, 'completed', { text: `You said: ${text}` })
  }

  const executor: AgentExecutor = {
    execute: async ({ taskId, contextId, context, task, userMessage }, bus) => {
      const text = textOf(userMessage)
      const script = runs.get(taskId)?.script ?? text.split(' ', 1)[0] ?? ''
      const over = Promise.withResolvers<void>()
      const end = (): void => {
        run.live = false
        over.resolve()
      }
      const run: Run = { taskId, contextId, context, bus, script, live: true, end }
      runs.set(taskId, run)
      bus.publish(AgentEvent.task(task ?? { ...newTask(run, now()), history: [userMessage] }))
      await play(run, text, task !== undefined)
      await over.promise
    },
    cancelTask: taskId => setState(taskId, 'canceled'),
  }

  const close = (): void => {
    for (const timer of timers) clearTimeout(timer)
    for (const run of runs.values()) run.end()
  }
  return { executor, setState, addArtifact, release, close }
}

/** Over the bus where the SDK listens; else by the same steps that it would take. */
async function publish({ store, pushes }: Setting, run: Run, event: Happening, push: boolean): Promise<void> {
  if (!push) pushes.silence(event.value)
  const { $case, value } = event
  const wrapped = $case === 'statusUpdate' ? AgentEvent.statusUpdate(value) : AgentEvent.artifactUpdate(value)
  if (run.live) run.bus.publish(wrapped)
  else {
    await new ResultManager(store, run.context).processEvent(wrapped)
    const task = await store.load(run.taskId, run.context)
    await pushes.sender.send({ payload: event }, run.context, task)
  }
  await pushes.settled()
}

const wireState = (state: TaskState): string => `TASK_STATE_${state.toUpperCase().replace('-', '_')}`

function newTask({ taskId, contextId }: Run, now: number) {
  const state = taskStateFromJSON(wireState('submitted'))
  const status = { state, message: undefined, timestamp: new Date(now).toISOString() }
  return { id: taskId, contextId, status, artifacts: [], metadata: undefined }
}

const statusOf = (run: Run, state: TaskState, text: string | undefined, now: number): TaskStatusUpdateEvent =>
  TaskStatusUpdateEvent.fromJSON({
    taskId: run.taskId,
    contextId: run.contextId,
    status: {
      state: wireState(state),
      timestamp: new Date(now).toISOString(),
      ...(text !== undefined && { message: messageOf(run, text) }),
    },
  })

const artifactOf = ({ taskId, contextId }: Run, text: string): TaskArtifactUpdateEvent =>
  TaskArtifactUpdateEvent.fromJSON({
    taskId,
    contextId,
    artifact: { artifactId: randomUUID(), name: 'Result', parts: [{ text }] },
    lastChunk: true,
  })

const messageOf = ({ taskId, contextId }: Run, text: string): unknown => ({
  messageId: randomUUID(),
  taskId,
  contextId,
  role: 'ROLE_AGENT',
  parts: [{ text }],
})

const textOf = (message: Message): string =>
  message.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join(' ')
