// Reads for how long a server asks to be left alone. Pure.

/**
 * Reads `Retry-After`: whole seconds or an HTTP date (RFC 9110 section 10.2.3). Of several, which come joined by commas,
 * the longest that can be read is heeded: whoever came back sooner would come too early for one of those who asked.
 * @param nowMs milliseconds since 1970
 * @param mostMs the longest wish that is heeded
 * @returns milliseconds from now, within 0 and `mostMs`, or undefined if there is none that can be read
 */
export function readRetryAfter(header: string | null, nowMs: number, mostMs: number): number | undefined {
  const wishes = (header ?? '')
    .split(afterWish)
    .map(text => wishOf(text.trim(), nowMs))
    .filter(wish => !Number.isNaN(wish))
  return wishes.length === 0 ? undefined : Math.min(Math.max(...wishes, 0), mostMs)
}

/** A comma that does not stand behind the day of a date. */
const afterWish = /(?<![A-Z][a-z]+),/

function wishOf(text: string, nowMs: number): number {
  if (/^\d+$/.test(text)) return Number(text) * 1000
  return /^[A-Z][a-z]+, /.test(text) ? Date.parse(text) - nowMs : Number.NaN
}
