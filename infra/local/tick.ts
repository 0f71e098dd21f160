// Calls the tick function at a pace, never two at once, as the schedule on AWS does.
export type Ticker = {
  /** Runs one tick after any that is under way. @throws what the function threw */
  tick: () => Promise<void>
  /** Ends the pace and waits for the tick under way. */
  stop: () => Promise<void>
  /** Ends the pace. */
  kill: () => void
}

/**
 * Starts the pace.
 * @param every milliseconds between two ticks; undefined leaves them to `tick`
 * @param onFailure told of a tick of the pace that threw
 */
export function startTicker(
  every: number | undefined,
  run: () => Promise<unknown>,
  onFailure: (error: unknown) => void,
): Ticker {
  let last: Promise<void> = Promise.resolve()
  let waiting = 0
  const tick = () => {
    waiting += 1
    const next = last.then(async () => {
      try {
        await run()
      } finally {
        waiting -= 1
      }
    })
    last = next.catch(() => {})
    return next
  }
  const pace = () => {
    if (waiting === 0) tick().catch(onFailure)
  }
  const timer = every === undefined ? undefined : setInterval(pace, every)
  return {
    tick,
    stop: () => {
      clearInterval(timer)
      return last
    },
    kill: () => clearInterval(timer),
  }
}
