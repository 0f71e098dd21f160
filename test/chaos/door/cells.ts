// The crash matrix as plain data: where the door stands, what the weather is, what is pushed, and how each await that a dry run finds goes wrong. Pure.
import type { TaskState } from '../../../shared/a2a/task.ts'
import { fetchKeys, message, record } from './steps.ts'

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

/** One place in the matrix; `step` as steps.ts names it. Without a step the weather alone is bad, if anything. */
export type Cell = { scene: Scene; weather: Weather; step?: string; how: How; subject: Subject }

/** `once`: no official SDK repeats a push. `again`: repeats after 1 s and after 10 s more what was not answered by 2xx. */
export type Sender = 'once' | 'again'

/** The state that the push names, which is also the true one. */
export const stateOf = ({ subject }: Cell): TaskState =>
  subject === 'unbound' ? 'working' : subject === 'agent-wide' ? 'completed' : subject

export const isKill = ({ how }: Cell): boolean => how.startsWith('kill')

/** Ways to go wrong, each with what is pushed then. */
type Plays = readonly { hows: readonly How[]; subjects: readonly Subject[] }[]

/** A place whose awaits a dry run finds, and what is played at those that no row above it found, and at the others. */
export type Row = {
  scene: Scene
  weather?: Weather
  subjects: readonly Subject[]
  fresh: Plays
  known: Plays
}

const hard = ['fail before', 'fail after', 'kill before', 'kill after'] as const
const soft = ['blip before', 'blip after', 'late'] as const
const every = ['blip before', 'blip after', ...hard] as const
const all = ['completed', 'input-required', 'working', 'unbound', 'agent-wide'] as const
const two = ['completed', 'working'] as const
const one = ['completed'] as const
/** What a dry run alone shows: the weather is bad enough. */
const weatherOnly = { fresh: [], known: [] } as const

const deep: Plays = [
  { hows: hard, subjects: all },
  { hows: soft, subjects: two },
]

/** Every place with all its awaits. */
export const full = (): Row[] => [
  { scene: 'cold', subjects: all, fresh: deep, known: [] },
  { scene: 'signed', subjects: all, fresh: deep, known: [{ hows: hard, subjects: two }] },
  { scene: 'old keys', subjects: two, fresh: deep, known: [{ hows: every, subjects: one }] },
  { scene: 'host down', subjects: two, fresh: deep, known: [{ hows: hard, subjects: one }] },
  { scene: 'warm', subjects: two, fresh: deep, known: [{ hows: every, subjects: one }] },
  { scene: 'new rule', subjects: two, fresh: deep, known: [{ hows: every, subjects: one }] },
  {
    ...{ scene: 'cold', weather: 'queue away', subjects: ['working'], known: [] },
    fresh: [{ hows: [...every, 'late'], subjects: all }],
  },
  {
    ...{ scene: 'warm', weather: 'table away', subjects: all, fresh: deep },
    known: [{ hows: every, subjects: all }],
  },
  {
    ...{ scene: 'warm', weather: 'queue away', subjects: all, fresh: deep },
    known: [
      { hows: hard, subjects: two },
      { hows: ['fail after', 'kill before', 'kill after'], subjects: ['input-required', 'unbound'] },
    ],
  },
  {
    ...{ scene: 'warm', weather: 'both away', subjects: all, fresh: deep },
    known: [{ hows: hard, subjects: all }],
  },
  { scene: 'flood', subjects: two, fresh: deep, known: [{ hows: [...every, 'late'], subjects: one }] },
  { scene: 'flood', weather: 'table away', subjects: two, ...weatherOnly },
  { scene: 'flood', weather: 'queue away', subjects: two, ...weatherOnly },
  { scene: 'large', subjects: one, fresh: deep, known: [{ hows: [...every, 'late'], subjects: one }] },
  { scene: 'large', weather: 'queue away', subjects: two, ...weatherOnly },
]

/** The hard faults of every await. */
export const quick = (): Row[] => {
  const fresh = [{ hows: hard, subjects: all }]
  return [
    { scene: 'cold', subjects: one, fresh, known: [] },
    { scene: 'signed', subjects: one, fresh, known: [] },
    { scene: 'cold', weather: 'queue away', subjects: ['working'], fresh, known: [] },
    { scene: 'new rule', subjects: one, fresh, known: [{ hows: ['fail before'], subjects: one }] },
    ...(['table away', 'queue away', 'both away'] as const).map(
      weather => ({ scene: 'warm', weather, subjects: two, ...weatherOnly }) as const,
    ),
    { scene: 'flood', subjects: one, fresh, known: [{ hows: hard, subjects: one }] },
    { scene: 'large', subjects: one, fresh, known: [{ hows: ['fail before'], subjects: one }] },
  ]
}

/** The two writes, the weathers, and what the full matrix once found; one real kill. */
export const short = (): Cell[] => [
  ...cross({ scene: 'cold', steps: [record, message], hows: hard, subjects: ['input-required'] }),
  ...cross({
    ...{ scene: 'cold', steps: [message] },
    ...{ hows: ['fail before', 'kill before'], subjects: ['working'] },
  }),
  ...cross({ scene: 'cold', steps: [record], hows: ['blip after', 'kill after'], subjects: ['unbound'] }),
  ...cross({ scene: 'signed', steps: ['PutItem A keys'], hows: ['kill after'], subjects: one }),
  ...cross({ scene: 'new rule', steps: ['GetItem S'], hows: ['fail before'], subjects: one }),
  ...dry(quick().filter(({ weather, scene }) => weather !== undefined && scene === 'warm')),
  ...cross({ scene: 'large', steps: [message], hows: ['fail before'], subjects: one }),
]

/** Where a door that makes no others than the two writes shows their order. */
export const writes = (): Cell[] =>
  cross({
    ...{ scene: 'cold', steps: [record, message] },
    ...{ hows: ['fail before', 'kill before'], subjects: two },
  })

/** The places of rows in which nothing goes wrong but the weather. */
export const dry = (rows: readonly Row[]): Cell[] =>
  rows.flatMap(({ scene, weather = 'clear', subjects }) =>
    subjects.map(subject => ({ scene, weather, how: 'nothing', subject }) as const),
  )

/**
 * The cells of rows.
 * @param callsOf what a door waited for in a place where nothing went wrong but the weather
 */
export function planned(rows: readonly Row[], callsOf: (place: Cell) => readonly string[]): Cell[] {
  const found = new Set<string>()
  return rows.flatMap(row => {
    const places = dry([row]).map(place => ({ place, calls: callsOf(place) }))
    const cells = places.flatMap(({ place, calls }) =>
      calls.flatMap(step =>
        (found.has(step) ? row.known : row.fresh)
          .filter(({ subjects }) => subjects.includes(place.subject))
          .flatMap(({ hows }) => hows)
          .filter(how => isPlayable(place.weather, step, how))
          .map(how => ({ ...place, step, how })),
      ),
    )
    for (const { calls } of places) for (const step of calls) found.add(step)
    return cells
  })
}

/** A fetch has no effect and is not tried twice; what is away in any case can only be where the process ends. */
function isPlayable(weather: Weather, step: string, how: How): boolean {
  if (step.startsWith(fetchKeys)) return !how.startsWith('blip') && how !== 'kill after'
  const isAway =
    weather === 'both away' || weather === (step.startsWith(message) ? 'queue away' : 'table away')
  return !isAway || how === 'kill before'
}

type Crossed = { scene: Scene; steps: readonly string[]; hows: readonly How[]; subjects: readonly Subject[] }

const cross = ({ scene, steps, hows, subjects }: Crossed): Cell[] =>
  steps.flatMap(step =>
    hows.flatMap(how => subjects.map(subject => ({ scene, weather: 'clear', step, how, subject }) as const)),
  )
