// The stated limits of number and size, in one place, which the README's table repeats; limits of time stand where they are kept. Pure.
import type { Rate } from './rates.ts'

/**
 * Rates of the receive door, each counted by every instance for itself. Beyond those of authentic pushes nothing is
 * refused: the push is answered 202, and one delayed look a second tells what it would have told.
 */
export const rates = {
  task: { perSecond: 20, burst: 60 },
  hook: { perSecond: 100, burst: 300 },
  agent: { perSecond: 500, burst: 1500 },
  tenant: { perSecond: 1000, burst: 3000 },
  /** Refused pushes of one address to one hook, beyond which it is answered 429 unread. */
  refused: { perSecond: 5, burst: 50 },
} as const satisfies Record<string, Rate>

/**
 * What a tenant may have, and how many subscriptions it may make in a day: those end by themselves, so that nobody
 * counts down. Targets given inline belong to their subscription and are not counted.
 */
export const tenantLimits = { agents: 1000, targets: 10_000, subscriptions: 100_000 } as const

/** What one thing may have or be: counts, and sizes in bytes or characters as the name says. */
export const limits = {
  subscriptionsOfTask: 50,
  targetsOfSubscription: 10,
  targetsOfOperations: 10,
  originsOfAgent: 10,
  callsOfAgent: 10,
  mostCallsOfAgent: 100,
  attemptsAtTarget: 10,
  mostAttemptsAtTarget: 100,
  attemptsInSecond: 1000,
  /** Beside the present one. */
  secretsOfTarget: 4,
  agentsSearched: 20,
  /** Decoded: what Lambda takes as base64. */
  pushBytes: 4_400_000,
  requestBytes: 256 * 1024,
  answerBytes: 8 * 1024 * 1024,
  snapshotBytes: 256 * 1024,
  /** Room for every honest set (real ones pass 50 kB), small enough to be stored. */
  keySetBytes: 512 * 1024,
  keysOfSet: 200,
  /** More than any honest push token, less than the header limits of the gateways in front. */
  jwtCharacters: 8192,
  taskIdBytes: 256,
  idCharacters: 64,
  itemsOfPage: 100,
} as const

export type Counted = keyof typeof tenantLimits
