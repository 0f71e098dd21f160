// The kinds of agents and of targets, as plain data. Pure.
import type { Protocol } from './words.ts'

/** How an agent answers GetTask wrongly. */
export type Trick =
  /** Closes the connection within its answer. */
  | 'cut'
  /** 429 with Retry-After. */
  | 'busy'
  /** Answers with a task of another id. */
  | 'other'
  /** Says that there is no such task. */
  | 'forget'

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
  trick?: { how: Trick; chance: number /** For how long after a change, in bent ms. */; forMs: number }
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
}

const minute = 60_000

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
  { ...honest, name: 'dying', trick: { how: 'cut', chance: 0.4, forMs: Number.POSITIVE_INFINITY } },
  { ...honest, name: 'busy', trick: { how: 'busy', chance: 1, forMs: minute } },
  { ...honest, name: 'confused', trick: { how: 'other', chance: 0.5, forMs: 3 * minute } },
  { ...honest, name: 'forgetful', trick: { how: 'forget', chance: 0.7, forMs: 3 * minute } },
]

/** True for kinds whose pushed news must be known soon: they push everything, and play no tricks. */
export const isPrompt = ({ pushes, trick }: AgentKind): boolean => pushes === 1 && trick === undefined

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
