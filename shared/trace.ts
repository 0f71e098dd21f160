// Reads, makes and hands on W3C trace context, level 1 (https://www.w3.org/TR/trace-context-1/). Pure.

const shape = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/

/**
 * Reads a `traceparent` (section 3.2) strictly: lower-case hex of the right lengths, no id of all zeros, no version `ff`.
 * Of a later version only the four fields that we know count, and are handed on as version `00` (section 3.2.4).
 * @returns the header as we send it on, with no flag but `sampled`; undefined for one that is to be ignored
 */
export function readTraceparent(value: unknown): string | undefined {
  const parts = typeof value === 'string' ? shape.exec(value) : null
  if (parts === null) return undefined
  const [, version = '', trace = '', span = '', flags = '', more] = parts
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(trace) || /^0+$/.test(span)) return undefined
  return write(trace, span, Number.parseInt(flags, 16) % 2 === 1)
}

/**
 * Begins a trace of our own. It is not marked as sampled: nobody asked for its spans to be kept.
 * @param random24 24 fresh random bytes
 */
export function beginTrace(random24: Uint8Array): string {
  const hex = Buffer.from(random24).toString('hex')
  return write(hex.slice(0, 32), hex.slice(32, 48), false)
}

/**
 * The `traceparent` of one call that is made in a trace: the same trace, a span of its own.
 * @param random8 8 fresh random bytes
 */
export const nextSpan = (traceparent: string, random8: Uint8Array): string =>
  write(traceIdOf(traceparent), Buffer.from(random8).toString('hex'), traceparent.endsWith('1'))

/** The trace id of a `traceparent` that was read or made here. */
export const traceIdOf = (traceparent: string): string => traceparent.slice(3, 35)

const write = (trace: string, span: string, sampled: boolean): string =>
  `00-${trace}-${span}-0${sampled ? 1 : 0}`
