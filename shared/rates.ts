// Counts what happens how often, in this process's memory only. Pure but for what it remembers; time is an argument.

/** So many a second in the long run, and `burst` at once. */
export type Rate = { perSecond: number; burst: number }

export type Rates = {
  /** Counts one; false when that is more than the rate allows. */
  take: (name: string, rate: Rate, nowMs: number) => boolean
  /** Whether one more would be allowed, without counting it. */
  allows: (name: string, rate: Rate, nowMs: number) => boolean
}

/** Names remembered; past it the longest untouched are forgotten, which only ever allows more. */
const remembered = 20_000

/**
 * Makes counters by the generic cell rate algorithm: one number a name, the time at which its burst would be used up
 * again.
 */
export function createRates(): Rates {
  const full = new Map<string, number>()
  const next = (name: string, { perSecond }: Rate, nowMs: number): number =>
    Math.max(full.get(name) ?? 0, nowMs) + 1000 / perSecond
  const fits = (at: number, { perSecond, burst }: Rate, nowMs: number): boolean =>
    at - nowMs <= (burst * 1000) / perSecond
  return {
    take: (name, rate, nowMs) => {
      const at = next(name, rate, nowMs)
      if (!fits(at, rate, nowMs)) return false
      full.delete(name)
      full.set(name, at)
      const [oldest] = full.keys()
      if (full.size > remembered && oldest !== undefined) full.delete(oldest)
      return true
    },
    allows: (name, rate, nowMs) => fits(next(name, rate, nowMs), rate, nowMs),
  }
}
