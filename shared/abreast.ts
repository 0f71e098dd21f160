// Does several things at the same time and leaves none of them behind.

/**
 * Waits until all have ended, whatever came of them: what goes on after an answer may freeze with its process.
 * @throws the first fault, once nothing is under way any more
 */
export async function allEnded<T>(works: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(works)
  return Promise.all(works)
}
