// The rules that the model keeps, by name, so that each can be switched off to see what it is for.

/** Every rule says what holds while it is on. */
export const rules = {
  /** A push needs no look once one that completed started a window after it; one that merely started would not do. */
  completed: true,
  /** A revision is marked as published once its entries and wakes are queued, not before. */
  queueFirst: true,
  /** The record that marks a push as seen has a timer until it is settled. */
  noticeTimers: true,
  /** A look has the task to itself, and saves only if nobody took that from it. */
  fence: true,
  /** A lease lasts longer than whoever holds it can. */
  outlives: true,
  /** What a look finds unpublished it publishes before anything else. */
  publishFirst: true,
  /** The timer of an ended task goes only when everybody was told. */
  timerStays: true,
  /** A look is repeated while the agent does not show the news that a push named. */
  patience: true,
  /** Pushes that wait for the agent to show what they named share each other's looks. */
  sharesLooks: true,
  /** An answer that was seen before and left is an older replica's. */
  ring: true,
  /** So is one whose own time is before that of what is known. */
  stamps: true,
  /** A step back is looked at again once it can no longer be a replica's. */
  backSoon: true,
  /** What is known stays: a state is replaced only by a newer one. */
  endStays: true,
  /** Only who was told counts as told; the timer stays while somebody who joined meanwhile was not. */
  joiners: true,
  /** The look for a late subscriber waits its turn though the task ended. */
  lateWaits: true,
  /** The push of an unbound subscription is settled by a look of its own only, for that one binds it. */
  unboundLooks: true,
  /** The SDK's own retry takes no second number of an inbox: a gap would hide the entry from who was just woken. */
  countsOnce: true,
  /** A gap in an inbox is as old as the number that was taken last before it ended, not as the entry behind it. */
  gapsAge: true,
  /** A trailing look does not ride along on its own mark: clocks differ. */
  marks: true,
}

export type Rules = typeof rules
