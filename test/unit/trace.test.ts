// What is taken for a traceparent, and what is made of it.
import { expect, test } from 'vitest'
import { beginTrace, nextSpan, readTraceparent, traceIdOf } from '../../shared/trace.ts'

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const span = '00f067aa0ba902b7'
const whole = `00-${trace}-${span}-01`

test.each([
  ['as it is', whole, whole],
  ['unsampled', `00-${trace}-${span}-00`, `00-${trace}-${span}-00`],
  ['with flags that nobody knows, which are not passed on', `00-${trace}-${span}-ff`, whole],
  ['of a later version, as far as it is known', `cc-${trace}-${span}-01-what-the-future-will-be`, whole],
  ['of a later version that adds nothing', `01-${trace}-${span}-01`, whole],
])('a traceparent is read %s', (_, text, read) => {
  expect(readTraceparent(text)).toBe(read)
})

test.each([
  ['nothing', undefined],
  ['a number', 7],
  ['an empty one', ''],
  ['upper case', whole.toUpperCase()],
  ['upper case in the span', `00-${trace}-${span.toUpperCase()}-01`],
  ['a trace id of zeros', `00-${'0'.repeat(32)}-${span}-01`],
  ['a span id of zeros', `00-${trace}-${'0'.repeat(16)}-01`],
  ['the version that is none', `ff-${trace}-${span}-01`],
  ['more than version 00 has', `${whole}-more`],
  ['a later version without its dash', `01-${trace}-${span}-01more`],
  ['a short trace id', `00-${trace.slice(1)}-${span}-01`],
  ['a long span id', `00-${trace}-${span}0-01`],
  ['one digit of flags', `00-${trace}-${span}-1`],
  ['blanks', ` ${whole}`],
  ['a line more', `${whole}\n`],
  ['two of them', `${whole},${whole}`],
])('%s is no traceparent', (_, value) => {
  expect(readTraceparent(value)).toBeUndefined()
})

test('a trace of our own is one that everybody can read, and is not sampled', () => {
  const made = beginTrace(new Uint8Array(24).fill(0xa5))
  expect(made).toBe(`00-${'a5'.repeat(16)}-${'a5'.repeat(8)}-00`)
  expect(readTraceparent(made)).toBe(made)
})

test('each call has a span of its own in the same trace, sampled as the trace is', () => {
  expect(nextSpan(whole, new Uint8Array(8).fill(1))).toBe(`00-${trace}-${'01'.repeat(8)}-01`)
  expect(nextSpan(`00-${trace}-${span}-00`, new Uint8Array(8).fill(2))).toBe(
    `00-${trace}-${'02'.repeat(8)}-00`,
  )
  expect(traceIdOf(whole)).toBe(trace)
})
