// The rules that the model keeps, by name, so that each can be switched off to see what it is for.

/** Every rule says what holds while it is on. */
export const rules = {
  /** A push needs no look once one that completed started a window after it; one that merely started would not do. */
  completed: true,
  /** What is queued is queued before it is marked as queued: trailing looks, ticks, wakes. */
  queueFirst: true,
  /** A look has the task to itself, and saves only if nobody took that from it. */
  fence: true,
  /** What a look finds unpublished it publishes before anything else. */
  publishFirst: true,
  /** The timer of an ended task goes only when everybody was told. */
  timerStays: true,
  /** A look is repeated while the agent does not show the news that a push named. */
  patience: true,
  /** An answer that was seen before and left is an older replica's. */
  ring: true,
  /** Only those who were told count as told; the timer stays while somebody who joined meanwhile was not. */
  joiners: true,
  /** The push of an unbound subscription needs a look of its own, for only that look binds it. */
  unboundLooks: true,
  /** What was known stays known: a state is replaced only by a newer one. */
  endStays: true,
  /** A look that binds publishes first, too. */
  bindsLast: true,
  /** A late subscriber's look waits its turn though the task ended. */
  lateWaits: true,
  /** A step back is looked at again once it can no longer be a replica's. */
  backSoon: true,
  /** A trailing look is one that starts after it was queued. */
  trails: true,
  /** Pushes that wait for the agent to show what they named share each other's looks. */
  sharesLooks: true,
  /** A trailing look does not ride along on its own mark: clocks differ. */
  marks: true,
}

export type Rules = typeof rules
