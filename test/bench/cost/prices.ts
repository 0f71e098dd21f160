// What AWS asks, and what a laptop cannot know about it. Plain data with its date: whoever doubts a figure changes it here.

/** On demand, us-east-1, arm64, USD, free tiers left out; as published on 2026-12-01. */
export const prices = {
  /** Per million write and read units of a table, on demand, and a GB kept for a month. */
  writeUnits: 0.625,
  readUnits: 0.125,
  gigabyteMonth: 0.25,
  /** Per million requests to a standard queue, begun 64 KB each, and what a group id adds to a send. */
  queueRequests: 0.4,
  fairSends: 0.1,
  /** Per million calls of a function, and per GB and second. */
  functionCalls: 0.2,
  gigabyteSecond: 0.0000133334,
  /** Per GB of logs taken in. */
  logGigabyte: 0.5,
} as const

/** Bytes that CloudWatch counts on top of each log line. */
export const logLineBytes = 26
/** Bytes that DynamoDB counts on top of each stored item. */
export const itemBytes = 100

/** Assumed, not measured: a laptop has no such network and no such processor. */
export const assumed = {
  /** Milliseconds that a call takes from within AWS. */
  tableMs: 5,
  queueMs: 10,
  agentMs: 150,
  targetMs: 150,
  /** A function gets one whole processor at so much memory, and a share of it below (Lambda's documentation). */
  wholeProcessorMegabytes: 1769,
  /** How much slower such a processor is than a core of the machine that measures. */
  slower: 1,
  /** Messages in a batch, under load and without any. */
  busyBatch: 10,
  idleBatch: 1,
} as const
