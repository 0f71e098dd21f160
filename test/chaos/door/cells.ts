// The crash matrix as plain data: where the door stands, what the weather is, which await goes wrong and how, what is pushed. Pure.
import type { TaskState } from '../../../shared/a2a/task.ts'
import type { Step } from './steps.ts'

/**
 * What the door knows when the push comes. `cold`: nothing, pushes prove themselves by token; `signed`: nothing, by JWT,
 * and nobody ever fetched the keys; `old keys`: the table has a set that ran out; `host down`: so it is, and the key host
 * answers 503; `warm`: everything, but so long ago that it is read again; `new rule`: how pushes of this agent proved
 * themselves until a moment ago. Pushed to by token: `flood`: everything, and so many pushes of this task came before
 * that this one is no longer recorded; `large`: nothing, and the push is too large to be read.
 */
export type Scene = 'cold' | 'signed' | 'old keys' | 'host down' | 'warm' | 'new rule' | 'flood' | 'large'

/** What is away from the push until after its first repeat, for everybody who runs the door. */
export type Weather = 'clear' | 'table away' | 'queue away' | 'both away'

/**
 * How the await goes wrong. `blip`: one attempt of the SDK's two; `fail`: all. `before`: refused; `after`: done, but the
 * answer is lost. `kill`: the process ends there. `late`: done after the door gave up waiting.
 */
export type How =
  | 'blip before'
  | 'blip after'
  | 'fail before'
  | 'fail after'
  | 'kill before'
  | 'kill after'
  | 'late'
  | 'nothing'

/** What the push is about: a task that the subscription names, in a state; a first task; one of an agent's tasks. */
export type Subject = 'completed' | 'input-required' | 'working' | 'unbound' | 'agent-wide'

/** One place in the matrix. Without a step the weather alone is bad. */
export type Cell = { scene: Scene; weather: Weather; step?: Step; how: How; subject: Subject }

/** `once`: no official SDK repeats a push. `again`: repeats after 1 s and after 10 s more what was not answered by 2xx. */
export type Sender = 'once' | 'again'

/** The state that the push names, which is also the true one. */
export const stateOf = ({ subject }: Cell): TaskState =>
  subject === 'unbound' ? 'working' : subject === 'agent-wide' ? 'completed' : subject

export const isKill = ({ how }: Cell): boolean => how.startsWith('kill')

/** What {@link cross} multiplies. */
type Rows = {
  scene: Scene
  weather?: Weather
  steps?: readonly Step[]
  hows: readonly How[]
  subjects: readonly Subject[]
}

const cross = ({ scene, weather = 'clear', steps, hows, subjects }: Rows): Cell[] =>
  (steps ?? [undefined]).flatMap(step =>
    hows.flatMap(how =>
      subjects.map(subject => ({ scene, weather, ...(step !== undefined && { step }), how, subject })),
    ),
  )

const hard = ['fail before', 'fail after', 'kill before', 'kill after'] as const
const blips = ['blip before', 'blip after'] as const
const every = [...blips, ...hard] as const
/** A fetch has no effect and is not tried twice. */
const fetching = ['fail before', 'fail after', 'kill before'] as const
const all = ['completed', 'input-required', 'working', 'unbound', 'agent-wide'] as const
const two = ['completed', 'working'] as const

/** Always: every await of a push that is proven by token. */
const always = ['subscription', 'agent', 'notice', 'message', 'counts'] as const
/** Those that a push proven by JWT adds where nobody ever fetched the keys. */
const signing = ['keys', 'lease', 'take', 'save'] as const
const outages = ['table away', 'queue away', 'both away'] as const

const weathered = (subjects: readonly Subject[]): Cell[] =>
  outages.flatMap(weather => cross({ scene: 'warm', weather, hows: ['nothing'], subjects }))

/** Every await, every fault, every weather in which it is reached. */
export const full = (): Cell[] => [
  ...cross({ scene: 'cold', steps: always, hows: hard, subjects: all }),
  ...cross({ scene: 'cold', steps: always, hows: blips, subjects: two }),
  ...cross({ scene: 'signed', steps: signing, hows: hard, subjects: all }),
  ...cross({ scene: 'signed', steps: signing, hows: blips, subjects: two }),
  ...cross({ scene: 'signed', steps: ['fetch'], hows: fetching, subjects: all }),
  ...cross({ scene: 'signed', steps: ['notice', 'message'], hows: hard, subjects: all }),
  ...cross({ scene: 'old keys', steps: ['lease', 'save'], hows: every, subjects: two }),
  ...cross({ scene: 'old keys', steps: ['fetch'], hows: fetching, subjects: two }),
  ...cross({ scene: 'host down', steps: ['save'], hows: every, subjects: two }),
  ...cross({ scene: 'warm', steps: ['subscription', 'agent'], hows: every, subjects: two }),
  ...cross({ scene: 'new rule', steps: ['subscription', 'agent'], hows: every, subjects: two }),
  ...weathered(all),
  ...cross({ scene: 'warm', weather: 'table away', steps: ['message'], hows: every, subjects: all }),
  ...cross({
    ...{ scene: 'warm', weather: 'table away', steps: ['subscription', 'notice', 'counts'] },
    ...{ hows: ['kill before'], subjects: all },
  }),
  ...cross({ scene: 'warm', weather: 'queue away', steps: ['notice'], hows: every, subjects: all }),
  ...cross({ scene: 'cold', weather: 'queue away', steps: ['timer'], hows: every, subjects: ['working'] }),
  ...cross({
    ...{ scene: 'warm', weather: 'queue away', steps: ['subscription', 'agent', 'counts'] },
    ...{ hows: hard, subjects: two },
  }),
  ...cross({
    ...{ scene: 'warm', weather: 'queue away', steps: ['message'] },
    ...{ hows: ['kill before'], subjects: all },
  }),
  ...cross({
    ...{ scene: 'warm', weather: 'both away', steps: ['subscription', 'notice', 'message'] },
    ...{ hows: ['kill before'], subjects: all },
  }),
  ...cross({ scene: 'flood', steps: ['message'], hows: [...every, 'late'], subjects: two }),
  ...cross({ scene: 'flood', weather: 'table away', hows: ['nothing'], subjects: two }),
  ...cross({ scene: 'flood', weather: 'queue away', hows: ['nothing'], subjects: two }),
  ...cross({
    ...{ scene: 'large', steps: ['subscription', 'agent', 'message', 'counts'] },
    ...{ hows: [...every, 'late'], subjects: ['completed'] },
  }),
  ...cross({ scene: 'large', weather: 'queue away', hows: ['nothing'], subjects: two }),
  ...cross({ scene: 'cold', steps: always, hows: ['late'], subjects: two }),
  ...cross({ scene: 'signed', steps: [...signing, 'fetch'], hows: ['late'], subjects: two }),
  ...cross({ scene: 'warm', weather: 'queue away', steps: ['notice'], hows: ['late'], subjects: two }),
]

/** The hard faults of every await. */
export const quick = (): Cell[] => [
  ...cross({ scene: 'cold', steps: always, hows: hard, subjects: ['completed'] }),
  ...cross({ scene: 'cold', steps: ['notice', 'message'], hows: hard, subjects: ['working', 'unbound'] }),
  ...cross({ scene: 'signed', steps: signing, hows: hard, subjects: ['completed'] }),
  ...cross({ scene: 'signed', steps: ['fetch'], hows: fetching, subjects: ['completed'] }),
  ...cross({ scene: 'new rule', steps: ['subscription'], hows: ['fail before'], subjects: ['completed'] }),
  ...cross({ scene: 'cold', weather: 'queue away', steps: ['timer'], hows: hard, subjects: ['working'] }),
  ...weathered(two),
  ...cross({ scene: 'flood', steps: ['message'], hows: hard, subjects: ['completed'] }),
  ...cross({ scene: 'large', steps: ['message'], hows: hard, subjects: ['completed'] }),
]

/** The two writes, the weathers, and what the full matrix once found; one real kill. */
export const short = (): Cell[] => [
  ...cross({ scene: 'cold', steps: ['notice', 'message'], hows: hard, subjects: ['input-required'] }),
  ...cross({
    ...{ scene: 'cold', steps: ['message'] },
    ...{ hows: ['fail before', 'kill before'], subjects: ['working'] },
  }),
  ...cross({ scene: 'cold', steps: ['notice'], hows: ['blip after', 'kill after'], subjects: ['unbound'] }),
  ...cross({ scene: 'signed', steps: ['take'], hows: ['kill after'], subjects: ['completed'] }),
  ...cross({ scene: 'new rule', steps: ['subscription'], hows: ['fail before'], subjects: ['completed'] }),
  ...weathered(['completed']),
  ...cross({ scene: 'large', steps: ['message'], hows: ['fail before'], subjects: ['completed'] }),
]

/** Where a door that makes no others than the two writes shows their order. */
export const writes = (): Cell[] =>
  cross({
    ...{ scene: 'cold', steps: ['notice', 'message'] },
    ...{ hows: ['fail before', 'kill before'], subjects: two },
  })
