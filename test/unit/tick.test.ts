// The pace of the schedule: regular, and never two ticks at once.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startTicker } from '../../infra/local/tick.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

/** A tick that stays under way until it is let go. */
function slowTick() {
  const state = { begun: 0, under: 0, most: 0, letGo: () => {} }
  const run = async () => {
    state.begun += 1
    state.under += 1
    state.most = Math.max(state.most, state.under)
    await new Promise<void>(resolve => {
      state.letGo = resolve
    })
    state.under -= 1
  }
  return { state, run }
}

test('a tick that takes longer than the pace is neither joined nor made up for', async () => {
  const { state, run } = slowTick()
  const ticker = startTicker(1000, run, () => {})
  await vi.advanceTimersByTimeAsync(5000)
  expect(state.begun).toBe(1)
  state.letGo()
  await vi.advanceTimersByTimeAsync(999)
  expect(state.begun).toBe(1)
  await vi.advanceTimersByTimeAsync(1)
  expect(state.begun).toBe(2)
  ticker.kill()
})

test('a tick that is asked for waits for the one under way', async () => {
  const { state, run } = slowTick()
  const ticker = startTicker(undefined, run, () => {})
  const both = Promise.all([ticker.tick(), ticker.tick()])
  await vi.advanceTimersByTimeAsync(0)
  expect(state.begun).toBe(1)
  state.letGo()
  await vi.advanceTimersByTimeAsync(0)
  state.letGo()
  await both
  expect([state.begun, state.most]).toEqual([2, 1])
})

test('a tick that fails is reported and does not end the pace', async () => {
  const failures: unknown[] = []
  const ticker = startTicker(
    1000,
    () => Promise.reject(new Error('broken')),
    error => failures.push(error),
  )
  await vi.advanceTimersByTimeAsync(3000)
  expect(failures).toHaveLength(3)
  await expect(ticker.tick()).rejects.toThrow('broken')
  await ticker.stop()
  await vi.advanceTimersByTimeAsync(3000)
  expect(failures).toHaveLength(3)
})
