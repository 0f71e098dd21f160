// Starts the fuzzer's thread and watches it: an input that takes longer than any may ends it and is named.
import { Worker } from 'node:worker_threads'
import type { Order, Report } from './worker.ts'

/** No honest machine is so busy that one input takes longer; the door itself gives up on AWS after 3.5 s. */
const longestMs = 20_000
const turnMs = 1000

/**
 * Fuzzes the receive door.
 * @param runs inputs
 * @param seed makes the same inputs again, but for signatures and ids that are random
 * @returns what the inputs came to, and the first fault if there was one
 */
export function watchFuzz({ runs, seed }: { runs: number; seed: number }): Promise<Report> {
  const order: Order = { runs, seed, beat: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT) }
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: order })
  const begun = new Int32Array(order.beat)
  return new Promise((resolve, reject) => {
    let [last, since] = [-1, 0]
    const timer = setInterval(() => {
      const now = Atomics.load(begun, 0)
      since = now === last ? since + turnMs : 0
      last = now
      if (since < longestMs) return
      clearInterval(timer)
      const fault = `Input ${now} of seed ${seed} does not end`
      worker.terminate().then(() => resolve({ runs: now, outcomes: {}, fault }), reject)
    }, turnMs)
    const end = (settle: () => void): void => {
      clearInterval(timer)
      settle()
    }
    worker.once('message', (report: Report) => end(() => resolve(report)))
    worker.once('error', error => end(() => reject(error)))
  })
}
