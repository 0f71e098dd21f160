// The oracle of the chaos run on histories that are made up: it asks for each alarm that is due, and for no other.
import { expect, test } from 'vitest'
import type { TaskState } from '../../shared/a2a/task.ts'
import type { Agent, Task } from './world/agents.ts'
import { judgeOverdue, judgeUnsaid } from './world/alarms.ts'
import type { Client, Entry, Interest } from './world/cast.ts'
import { agentKinds, passKinds } from './world/kinds.ts'

const hour = 3_600_000

/** A task at a guarded agent that begins at 0 and is `states` each an hour after the one before. */
const taskOf = (...states: TaskState[]): Task => taskAt('guarded', ...states)

/** The same at an agent of some kind. */
function taskAt(name: string, ...states: TaskState[]): Task {
  const kind = agentKinds.find(one => one.name === name)
  if (kind === undefined) throw new Error(`There is no agent of the kind ${name}`)
  const agent: Agent = { name: 'a', tenant: 't', kind, url: '', tasks: new Map(), wide: [], lapses: [] }
  const history = states.map((state, step) => ({ state, step, at: step * hour }))
  return { id: 'task', agent, history, configs: new Map(), taken: new Map() }
}

function interestOf(
  { agent, ...task }: Task,
  name: string,
  told: readonly [type: string, at: number][] = [],
  more: Partial<Interest> = {},
): Interest {
  const id = `sub-${name}`
  const entries = told.map(([type, at], seq): Entry => {
    const made = { seq, id: `${seq}`, type, at, rev: 1, state: 'working' } as const
    return { ...made, taskId: task.id, subscription: id }
  })
  const byTask = new Map([[task.id, entries]])
  const client: Client = { name: `client-${name}`, tenant: 't', cursor: 0, read: [], byTask }
  const pass = passKinds.find(one => one.name === name)
  const about = { agent, task: { agent, ...task }, how: 'bound', begun: 0, ...(pass && { pass }) } as const
  return { id, client, targets: [], states: [], ...about, ...more }
}

const days = 72 * hour
const judge = (task: Task, ...interests: Interest[]): string[] =>
  judgeUnsaid(task, interests, days).map(({ rule, says }) => `${rule} ${/for (\S+),/.exec(says)?.[1]}`)

test.each(['blind', 'forbidden', 'refused'])('who has %s credentials for good must be told so', name => {
  const task = taskOf('submitted', 'working', 'completed')
  expect(judge(task, interestOf(task, name))).toEqual([`unsaid sub-${name}`])
})

test.each([
  ['blind', 'task.lost_access'],
  ['forbidden', 'task.orphaned'],
  ['refused', 'subscription.credentials_expired'],
])('who has %s credentials and was told %s was told enough', (name, type) => {
  const task = taskOf('submitted', 'working')
  expect(judge(task, interestOf(task, name, [[type, hour]]))).toEqual([])
})

test.each([
  ['blind', 'subscription.credentials_expired'],
  ['refused', 'task.lost_access'],
])('who has %s credentials is told nothing by %s', (name, type) => {
  const task = taskOf('submitted', 'working')
  expect(judge(task, interestOf(task, name, [[type, hour]]))).toEqual([`unsaid sub-${name}`])
})

test('a loss is one entry of a client, whichever of its subscriptions that names', () => {
  const task = taskOf('submitted', 'working')
  const one = interestOf(task, 'blind', [['task.lost_access', hour]])
  expect(judge(task, one, { ...one, id: 'sub-other' })).toEqual([])
})

test('each of several hears of its own', () => {
  const task = taskOf('submitted', 'working')
  const told = interestOf(task, 'blind', [['task.lost_access', hour]])
  expect(judge(task, told, interestOf(task, 'refused'))).toEqual(['unsaid sub-refused'])
})

test.each(['good', 'expiring', 'unserved', 'limited'])(
  'nobody is to be told while one has %s credentials, which may come to something',
  name => {
    const task = taskOf('submitted', 'working')
    expect(judge(task, interestOf(task, 'blind'), interestOf(task, name))).toEqual([])
  },
)

const seenUntil = (task: Task, deletedAt: number): Interest =>
  interestOf(task, 'good', [], { ending: deletedAt, deletedAt })

test('a task that nobody sees once another has left is lost from then on, whatever was told and taken back before', () => {
  const task = taskOf('submitted', 'working')
  const early: [string, number][] = [
    ['task.lost_access', hour],
    ['task.working', 2 * hour],
  ]
  expect(judge(task, interestOf(task, 'blind', early), seenUntil(task, 9 * hour))).toEqual([
    'unsaid sub-blind',
  ])
  const again: typeof early = [...early, ['task.orphaned', 10 * hour]]
  expect(judge(task, interestOf(task, 'blind', again), seenUntil(task, 9 * hour))).toEqual([])
})

test('an alarm that stands need not be told again', () => {
  const task = taskOf('submitted', 'working')
  const told = interestOf(task, 'blind', [['task.lost_access', hour]])
  expect(judge(task, told, seenUntil(task, 9 * hour))).toEqual([])
})

test('a task whose end was to be seen before is not lost', () => {
  const task = taskOf('submitted', 'completed')
  expect(judge(task, interestOf(task, 'blind'), seenUntil(task, 9 * hour))).toEqual([])
})

test('nobody need be told yet of what came to be a while ago', () => {
  const task = taskOf('submitted', 'working')
  const late = interestOf(task, 'blind', [], { begun: days - hour })
  expect(judge(task, late)).toEqual([])
  expect(judge(task, interestOf(task, 'blind'), seenUntil(task, days - hour))).toEqual([])
})

const judgeLate = (task: Task, interest: Interest, now = days): string[] =>
  judgeOverdue(task, [interest], now).map(({ rule }) => rule)

test.each(['obedient', 'stubborn'])(
  'a task of an %s agent whose time is long up does not just go on',
  kind => {
    const task = taskAt(kind, 'submitted', 'working')
    expect(judgeLate(task, interestOf(task, 'none'))).toEqual(['unsaid'])
    expect(judgeLate(task, interestOf(task, 'none'), 2 * hour)).toEqual([])
  },
)

test('a refusal is enough of an agent that refuses, and of no other', () => {
  const refused: [string, number][] = [['task.cancel_refused', 3 * hour]]
  const [stubborn, obedient] = [
    taskAt('stubborn', 'submitted', 'working'),
    taskAt('obedient', 'submitted', 'working'),
  ]
  expect(judgeLate(stubborn, interestOf(stubborn, 'none', refused))).toEqual([])
  expect(judgeLate(obedient, interestOf(obedient, 'none', refused))).toEqual(['unsaid'])
})

test.each([
  ['was canceled', 'obedient', 'canceled'],
  ['waits for somebody', 'stubborn', 'input-required'],
  ['nobody set a budget', 'fast', 'working'],
] as const)('nothing is due of a task that %s', (_why, kind, state) => {
  const task = taskAt(kind, 'submitted', state)
  expect(judgeLate(task, interestOf(task, 'none'))).toEqual([])
})
