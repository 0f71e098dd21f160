// The kinds of agents, of credentials and of targets, as plain data. Pure.
import type { Protocol } from './words.ts'

/** What an agent answers to GetTask instead of the task. */
export type Trick =
  /** Closes the connection within its answer. */
  | 'cut'
  /** 429 with a Retry-After of some seconds, or of half an hour. */
  | 'busy'
  | 'wait'
  /** Answers with a task of another id. */
  | 'other'
  /** Says that there is no such task. */
  | 'forget'
  /** 401, 403, 500. */
  | 'refuse'
  | 'forbid'
  | 'fail'

/** What it answers to whom it does not serve, whatever is asked. */
export type Bar = Exclude<Trick, 'other'>

export type AgentKind = {
  name: string
  protocol: Protocol
  /** Share of its events that it pushes; null for one whose card says that it cannot. */
  pushes: number | null
  /** How often it sends each push. */
  copies: number
  /** Longest time that a push comes late, in bent ms: the later ones may come first. */
  lateMs: number
  /** How far the replica that answers may be behind, in bent ms. */
  lagMs: number
  /** Longest time to answer, in real ms. */
  slowMs: number
  /** Whether its statuses have timestamps. */
  stamps: boolean
  /** Whether it signs its pushes, instead of sending a token. */
  signs: boolean
  /** Whether it wants credentials, and answers to each as it deserves. */
  guarded: boolean
  /** What it does when it is asked to cancel a task, as budgets of its subscriptions have it asked; unless given nobody asks. */
  cancels?: 'heeds' | 'refuses'
  trick?: {
    /** Each for an equal part of the time; which comes first is another one after each change. */
    how: readonly Trick[]
    chance: number
    /** For how long after a change, in bent ms. */
    forMs: number
  }
}

const honest: AgentKind = {
  name: 'fast',
  protocol: '1.0',
  pushes: 1,
  copies: 1,
  lateMs: 0,
  lagMs: 0,
  slowMs: 0,
  stamps: true,
  signs: false,
  guarded: false,
}

const minute = 60_000
const inTurn: readonly Trick[] = ['refuse', 'forget', 'fail']

export const agentKinds: readonly AgentKind[] = [
  honest,
  { ...honest, name: 'older', protocol: '0.3' },
  { ...honest, name: 'slow', slowMs: 300 },
  { ...honest, name: 'bare', protocol: '0.3', stamps: false },
  { ...honest, name: 'doubling', copies: 3 },
  { ...honest, name: 'signing', signs: true, copies: 2 },
  { ...honest, name: 'reordering', lateMs: 3000 },
  { ...honest, name: 'lagging', lagMs: 4000 },
  { ...honest, name: 'terse', pushes: 0.4 },
  { ...honest, name: 'silent', pushes: 0 },
  { ...honest, name: 'polled', pushes: null },
  { ...honest, name: 'dying', trick: { how: ['cut'], chance: 0.4, forMs: Number.POSITIVE_INFINITY } },
  { ...honest, name: 'busy', trick: { how: ['busy'], chance: 1, forMs: minute } },
  { ...honest, name: 'confused', trick: { how: ['other'], chance: 0.5, forMs: 3 * minute } },
  { ...honest, name: 'forgetful', trick: { how: ['forget'], chance: 0.7, forMs: 3 * minute } },
  { ...honest, name: 'troubled', trick: { how: inTurn, chance: 1, forMs: 36 * minute } },
  { ...honest, name: 'obedient', cancels: 'heeds' },
  { ...honest, name: 'obedient-silent', protocol: '0.3', pushes: 0, cancels: 'heeds' },
  { ...honest, name: 'stubborn', cancels: 'refuses' },
  { ...honest, name: 'guarded', guarded: true },
  { ...honest, name: 'guarded-silent', guarded: true, pushes: 0 },
  { ...honest, name: 'guarded-polled', guarded: true, pushes: null },
]

const never = (): boolean => false

/** By each field, whether it keeps an agent from answering what it knows: a new one is a fault of type until it says so. */
const withholds: Record<keyof AgentKind, (kind: AgentKind) => boolean> = {
  ...{ name: never, protocol: never, pushes: never, copies: never, lateMs: never },
  ...{ lagMs: never, slowMs: never, stamps: never, signs: never, cancels: never },
  guarded: ({ guarded }) => guarded,
  trick: ({ trick }) => trick !== undefined,
}

/** True for kinds that answer what they know to whoever asks, at any time. */
export const isPlain = (kind: AgentKind): boolean =>
  !Object.values(withholds).some(withheld => withheld(kind))

/** True for kinds whose pushed news must be known soon. */
export const isPrompt = (kind: AgentKind): boolean => kind.pushes === 1 && isPlain(kind)

/**
 * A kind of credentials: what a guarded agent answers to whoever shows them, always or while they lapse. The agent's own
 * are given by no subscription.
 */
export type PassKind = { name: string; how?: Bar; lapses?: true; isOwn?: true }

/** What is registered with a guarded agent: it wants to be left alone by whoever shows nothing else. */
export const ownPass: PassKind = { name: 'own', how: 'wait', isOwn: true }

export const passKinds: readonly PassKind[] = [
  ownPass,
  { name: 'good' },
  { name: 'refused', how: 'refuse' },
  { name: 'forbidden', how: 'forbid' },
  { name: 'blind', how: 'forget' },
  { name: 'unserved', how: 'fail' },
  { name: 'crowded', how: 'busy' },
  { name: 'limited', how: 'wait' },
  { name: 'expiring', how: 'refuse', lapses: true },
  { name: 'fading', how: 'forget', lapses: true },
  { name: 'spent', how: 'wait', lapses: true },
]

/** True for credentials that show the task, if not at any time. */
export const isSeeing = ({ how, lapses }: PassKind): boolean => how === undefined || lapses === true

/** True for credentials that never show a task, and of which the agent says so. */
export const isBarred = ({ how, lapses }: PassKind): boolean =>
  lapses !== true && (how === 'refuse' || how === 'forbid' || how === 'forget')

export const targetKinds = [
  'fine',
  'slow',
  /** Answers 500 for a while. */
  'failing',
  /** Resets some connections. */
  'resetting',
  /** Answers some webhooks after the deadline. */
  'late',
  /** Answers 410 from its third webhook on. */
  'gone',
] as const

export type TargetKind = (typeof targetKinds)[number]
