// Reads for how long a server asks to be left alone. Pure.

/**
 * Reads `Retry-After`: whole seconds or an HTTP date (RFC 9110 section 10.2.3).
 * @param nowMs milliseconds since 1970
 * @param mostMs the longest wish that is heeded
 * @returns milliseconds from now, within 0 and `mostMs`, or undefined if there is none that can be read
 */
export function readRetryAfter(header: string | null, nowMs: number, mostMs: number): number | undefined {
  const text = header?.trim() ?? ''
  const date = /^[A-Z][a-z]+, /.test(text) ? Date.parse(text) : Number.NaN
  const wish = /^\d+$/.test(text) ? Number(text) * 1000 : date - nowMs
  return Number.isNaN(wish) ? undefined : Math.min(Math.max(wish, 0), mostMs)
}
