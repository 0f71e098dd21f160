// Lets workers that share a DynamoDB client call it strictly in turns, so that a test chooses every interleaving of their calls.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'

export type Worker = {
  /** Lets it make its next call, and resolves once it stands before another one or has ended. @throws what its work threw */
  step: () => Promise<void>
  /** True when its work is done. */
  ended: () => boolean
}

type Gate = { arrive: () => void; open: Promise<void> }

/** Makes the client wait before each call of a worker; everybody else calls it as before. */
export function takeTurns(client: DynamoDBClient): (work: () => Promise<void>) => Promise<Worker> {
  const gates = new AsyncLocalStorage<() => Gate>()
  client.middlewareStack.add(
    next => async args => {
      const gate = gates.getStore()?.()
      gate?.arrive()
      await gate?.open
      return next(args)
    },
    { step: 'initialize' },
  )
  return async work => {
    let open = Promise.withResolvers<void>()
    let stands = Promise.withResolvers<void>()
    let over = false
    const gate = (): Gate => {
      open = Promise.withResolvers<void>()
      return { arrive: stands.resolve, open: open.promise }
    }
    let failure: { error: unknown } | undefined
    void gates
      .run(gate, work)
      .catch((error: unknown) => {
        failure = { error }
      })
      .finally(() => {
        over = true
        stands.resolve()
      })
    const wait = async (): Promise<void> => {
      await stands.promise
      if (failure !== undefined) throw failure.error
    }
    await wait()
    return {
      ended: () => over,
      step: async () => {
        if (over) return
        stands = Promise.withResolvers<void>()
        open.resolve()
        await wait()
      },
    }
  }
}
